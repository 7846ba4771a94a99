//! How Vault is reached, and as whom.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use configurator_core::backoff::DEFAULT_MAX_RETRY_AFTER;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// How Vault is reached, and as whom.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultOptions {
    /// The nodes, or what stands before them, as in `https://vault.example.com:8200`: a list, or one text in which
    /// commas part them. The first that can be reached is used.
    #[serde(alias = "address", deserialize_with = "addresses")]
    pub addresses: Vec<String>,
    /// The namespace, where the server has them.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Where the KV engine of version 2 is mounted. Default: `secret`.
    #[serde(default = "default_mount")]
    pub mount: String,
    /// What every name begins with under the mount, as in `clusters/one`. Default: nothing.
    #[serde(default)]
    pub prefix: String,
    /// The authority of the servers' certificates, in PEM; then no other is trusted. Default: the system's.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// Seconds that one exchange with a node may take. Default: 10.
    #[serde(default = "default_timeout_seconds")]
    pub timeout_seconds: u64,
    /// The longest `Retry-After` of a node that is honored. Default: 1 h.
    #[serde(skip, default = "default_max_retry_after")]
    pub max_retry_after: Duration,
    /// How to log in.
    pub auth: VaultAuth,
}

/// How to log in. What is in a file is read at each login, so it may be replaced at any time.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "method", rename_all = "lowercase", deny_unknown_fields)]
pub enum VaultAuth {
    /// A token that somebody else has made. One that can be renewed is.
    Token {
        /// The token.
        #[serde(default)]
        token: Option<SecretText>,
        /// The file with the token, as Vault Agent writes it.
        #[serde(default)]
        token_file: Option<PathBuf>,
    },
    /// A role for machines.
    AppRole {
        /// Where the login is mounted. Default: `approle`.
        #[serde(default = "default_approle")]
        mount: String,
        /// The role.
        role_id: String,
        /// Its secret.
        #[serde(default)]
        secret_id: Option<SecretText>,
        /// The file with its secret.
        #[serde(default)]
        secret_id_file: Option<PathBuf>,
    },
    /// The service account of the pod that the host runs in.
    Kubernetes {
        /// Where the login is mounted. Default: `kubernetes`.
        #[serde(default = "default_kubernetes")]
        mount: String,
        /// The role.
        role: String,
        /// The file with the account's token. Default: where the kubelet puts it.
        #[serde(default = "default_jwt_file")]
        jwt_file: PathBuf,
    },
}

/// A text that nobody is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl VaultOptions {
    /// These nodes, and everything else as by default.
    #[must_use]
    pub fn new(addresses: Vec<String>, auth: VaultAuth) -> Self {
        Self {
            addresses,
            namespace: None,
            mount: default_mount(),
            prefix: String::new(),
            ca: None,
            timeout_seconds: default_timeout_seconds(),
            max_retry_after: DEFAULT_MAX_RETRY_AFTER,
            auth,
        }
    }

    /// How long one exchange with a node may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }
}

impl VaultAuth {
    /// A token.
    #[must_use]
    pub fn token(token: impl Into<String>) -> Self {
        Self::Token {
            token: Some(SecretText(token.into())),
            token_file: None,
        }
    }

    /// A role for machines, by the login's default mount.
    #[must_use]
    pub fn approle(role_id: impl Into<String>, secret_id: impl Into<String>) -> Self {
        Self::AppRole {
            mount: default_approle(),
            role_id: role_id.into(),
            secret_id: Some(SecretText(secret_id.into())),
            secret_id_file: None,
        }
    }

    /// The service account of the pod, by the login's default mount.
    #[must_use]
    pub fn kubernetes(role: impl Into<String>) -> Self {
        Self::Kubernetes {
            mount: default_kubernetes(),
            role: role.into(),
            jwt_file: default_jwt_file(),
        }
    }
}

impl SecretText {
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The error of another type would show the value.
        String::deserialize(deserializer)
            .map(Self)
            .map_err(|_| D::Error::custom("a secret is a text; write it in quotes"))
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

fn default_mount() -> String {
    "secret".into()
}

const fn default_max_retry_after() -> Duration {
    DEFAULT_MAX_RETRY_AFTER
}

fn default_timeout_seconds() -> u64 {
    10
}

fn default_approle() -> String {
    "approle".into()
}

fn default_kubernetes() -> String {
    "kubernetes".into()
}

fn default_jwt_file() -> PathBuf {
    "/var/run/secrets/kubernetes.io/serviceaccount/token".into()
}

fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Addresses {
        List(Vec<String>),
        Text(String),
    }
    Ok(match Addresses::deserialize(deserializer)? {
        Addresses::List(addresses) => addresses,
        Addresses::Text(text) => text
            .split(',')
            .map(|address| address.trim().to_owned())
            .filter(|address| !address.is_empty())
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "as expectations are given")]
    fn check(text: &str, expected: Expect) {
        let shown = match serde_json::from_str::<VaultOptions>(text) {
            Ok(options) => format!("{options:#?}"),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn little_has_to_be_said_and_no_secret_is_shown() {
        check(
            r#"{"address": "https://a:8200, https://b:8200", "auth": {"method": "token", "token": "hvs.x"}}"#,
            expect![[r#"
                VaultOptions {
                    addresses: [
                        "https://a:8200",
                        "https://b:8200",
                    ],
                    namespace: None,
                    mount: "secret",
                    prefix: "",
                    ca: None,
                    timeout_seconds: 10,
                    max_retry_after: 3600s,
                    auth: Token {
                        token: Some(
                            …,
                        ),
                        token_file: None,
                    },
                }"#]],
        );
        check(
            r#"{"addresses": ["https://a"], "namespace": "team", "mount": "kv", "prefix": "one", "ca": "/ca.pem",
                "timeout_seconds": 3, "auth": {"method": "approle", "role_id": "r", "secret_id": "s"}}"#,
            expect![[r#"
                VaultOptions {
                    addresses: [
                        "https://a",
                    ],
                    namespace: Some(
                        "team",
                    ),
                    mount: "kv",
                    prefix: "one",
                    ca: Some(
                        "/ca.pem",
                    ),
                    timeout_seconds: 3,
                    max_retry_after: 3600s,
                    auth: AppRole {
                        mount: "approle",
                        role_id: "r",
                        secret_id: Some(
                            …,
                        ),
                        secret_id_file: None,
                    },
                }"#]],
        );
        check(
            r#"{"addresses": ["https://a"], "auth": {"method": "kubernetes", "role": "r"}}"#,
            expect![[r#"
                VaultOptions {
                    addresses: [
                        "https://a",
                    ],
                    namespace: None,
                    mount: "secret",
                    prefix: "",
                    ca: None,
                    timeout_seconds: 10,
                    max_retry_after: 3600s,
                    auth: Kubernetes {
                        mount: "kubernetes",
                        role: "r",
                        jwt_file: "/var/run/secrets/kubernetes.io/serviceaccount/token",
                    },
                }"#]],
        );
    }

    #[test]
    fn what_has_no_sense_is_named() {
        check(
            r#"{"address": "https://a", "auth": {"method": "token", "token": 12345}}"#,
            expect!["a secret is a text; write it in quotes at line 1 column 69"],
        );
        check(
            r#"{"address": "https://a"}"#,
            expect!["missing field `auth` at line 1 column 24"],
        );
        check(
            r#"{"address": "https://a", "auth": {"method": "password"}}"#,
            expect![
                "unknown variant `password`, expected one of `token`, `approle`, `kubernetes` at line 1 column 54"
            ],
        );
        check(
            r#"{"address": "https://a", "auth": {"method": "kubernetes", "role": "r", "secret_id": "s"}}"#,
            expect![
                "unknown field `secret_id`, expected one of `mount`, `role`, `jwt_file` at line 1 column 89"
            ],
        );
        check(
            r#"{"address": "https://a", "adress": "b", "auth": {"method": "token"}}"#,
            expect![
                "unknown field `adress`, expected one of `address`, `addresses`, `namespace`, `mount`, `prefix`, `ca`, `timeout_seconds`, `auth` at line 1 column 33"
            ],
        );
    }
}
