//! Who the host is to a registry.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

/// A login at one registry. Its text is never shown.
#[derive(Clone)]
pub struct Login(Who);

/// Who logs in.
#[derive(Clone)]
pub(super) enum Who {
    /// Nobody.
    Nobody,
    /// Somebody with a password.
    User {
        /// Their name.
        name: String,
        /// Their password.
        password: String,
    },
    /// Whoever has this, which the registry's token server exchanges for a token.
    Identity(String),
}

/// Why a configuration has no login.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// It has another form.
    #[error("it is no configuration of logins as `docker login` writes it: {0}")]
    Form(String),
    /// It names a program that has the login.
    #[error(
        "the login at {registry} is kept by the program docker-credential-{program}, which is not asked"
    )]
    Elsewhere {
        /// The registry.
        registry: String,
        /// What the program's name ends in.
        program: String,
    },
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Configuration {
    auths: BTreeMap<String, Entry>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

impl Login {
    /// Nobody.
    #[must_use]
    pub const fn anonymous() -> Self {
        Self(Who::Nobody)
    }

    /// By name and password.
    #[must_use]
    pub fn basic(user: &str, password: &str) -> Self {
        Self(Who::User {
            name: user.to_owned(),
            password: password.to_owned(),
        })
    }

    /// That of a registry, or of a repository there, in a configuration as `docker login` writes it, and as Secrets of the type
    /// `kubernetes.io/dockerconfigjson` have it. A login is given to the registry that it is for, and to no other. Of several, the one for the
    /// longest path counts, as with the kubelet. `None` where there is none.
    ///
    /// # Errors
    /// When the text has another form, or says that another program has the login.
    pub fn of(
        configuration: &[u8],
        registry: &str,
        repository: &str,
    ) -> Result<Option<Self>, LoginError> {
        // The parser's own message quotes what it has found, which may be a password.
        let configuration: Configuration =
            serde_json::from_slice(configuration).map_err(|error| {
                let (line, column) = (error.line(), error.column());
                LoginError::Form(format!("line {line}, column {column} is not as expected"))
            })?;
        let mut best: Option<(usize, &Entry)> = None;
        for (key, entry) in &configuration.auths {
            let place = place(key);
            if covers(&place, registry, repository)
                && best.is_none_or(|(length, _)| length < place.len())
            {
                best = Some((place.len(), entry));
            }
        }
        if let Some(login) = best.map(|(_, entry)| login(entry)).transpose()?.flatten() {
            return Ok(Some(login));
        }
        let helper = configuration.cred_helpers.get(registry);
        let kept = best.and(configuration.creds_store.as_ref());
        match helper.or(kept) {
            Some(program) => Err(LoginError::Elsewhere {
                registry: registry.to_owned(),
                program: program.clone(),
            }),
            None => Ok(None),
        }
    }

    /// Whether it is that of anybody.
    #[must_use]
    pub const fn is_somebody(&self) -> bool {
        !matches!(self.0, Who::Nobody)
    }

    pub(super) const fn who(&self) -> &Who {
        &self.0
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Who::Nobody => "anonymous",
            Who::User { .. } | Who::Identity(_) => "a login",
        })
    }
}

/// A key without what docker writes around registry and path.
fn place(key: &str) -> String {
    let bare = key.split_once("://").map_or(key, |(_, rest)| rest);
    let bare = bare.trim_end_matches('/');
    let bare = bare
        .strip_suffix("/v1")
        .or(bare.strip_suffix("/v2"))
        .unwrap_or(bare);
    match bare {
        "index.docker.io" | "registry-1.docker.io" => "docker.io".to_owned(),
        bare => bare.to_owned(),
    }
}

fn covers(place: &str, registry: &str, repository: &str) -> bool {
    let whole = format!("{registry}/{repository}");
    let rest = whole.strip_prefix(place);
    !place.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn login(entry: &Entry) -> Result<Option<Login>, LoginError> {
    if let Some(token) = entry
        .identitytoken
        .as_ref()
        .filter(|token| !token.is_empty())
    {
        return Ok(Some(Login(Who::Identity(token.clone()))));
    }
    if let (Some(user), Some(password)) = (&entry.username, &entry.password) {
        return Ok(Some(Login::basic(user, password)));
    }
    let Some(auth) = entry.auth.as_ref().filter(|auth| !auth.is_empty()) else {
        return Ok(None);
    };
    let text = BASE64_STANDARD.decode(auth).ok();
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    let parts = text.as_deref().and_then(|text| text.split_once(':'));
    let (user, password) =
        parts.ok_or_else(|| LoginError::Form("`auth` is no Base64 of NAME:PASSWORD".to_owned()))?;
    Ok(Some(Login::basic(user, password)))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(configuration: &str, reference: &str, expected: Expect) {
        let (registry, repository) = reference.split_once('/').unwrap();
        let told = match Login::of(configuration.as_bytes(), registry, repository) {
            Ok(Some(Login(Who::User { name, password }))) => format!("{name} {password}"),
            Ok(Some(Login(Who::Identity(token)))) => format!("identity {token}"),
            Ok(_) => "nobody".to_owned(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&told);
    }

    #[test]
    fn a_login_is_for_one_registry() {
        let text = r#"{"auths": {"ghcr.io": {"auth": "bWU6YTpi"}}}"#;
        check(text, "ghcr.io/team/a", expect!["me a:b"]);
        check(text, "ghcr.io.evil.com/team/a", expect!["nobody"]);
        check(text, "evil.com/ghcr.io", expect!["nobody"]);
    }

    #[test]
    fn the_longest_path_counts() {
        let text = r#"{"auths": {
            "https://example.com/v2/": {"username": "all", "password": "1"},
            "example.com/team": {"username": "team", "password": "2"}
        }}"#;
        check(text, "example.com/team/a", expect!["team 2"]);
        check(text, "example.com/teams/a", expect!["all 1"]);
    }

    #[test]
    fn docker_writes_its_own_registry_by_another_name() {
        let text = r#"{"auths": {"https://index.docker.io/v1/": {"identitytoken": "t"}}}"#;
        check(text, "docker.io/library/a", expect!["identity t"]);
    }

    #[test]
    fn what_is_kept_elsewhere_is_said() {
        let text = r#"{"auths": {"example.com": {}}, "credsStore": "desktop"}"#;
        check(
            text,
            "example.com/a",
            expect![
                "the login at example.com is kept by the program docker-credential-desktop, which is not asked"
            ],
        );
        check(text, "other.com/a", expect!["nobody"]);
    }

    #[test]
    fn another_form_is_refused_without_being_shown() {
        check(
            r#"{"auths": {"a.com": {"auth": "!secret!"}}}"#,
            "a.com/a",
            expect![
                "it is no configuration of logins as `docker login` writes it: `auth` is no Base64 of NAME:PASSWORD"
            ],
        );
        check(
            r#"{"auths": {"a.com": "dXNlcjpwdw=="}}"#,
            "a.com/a",
            expect![
                "it is no configuration of logins as `docker login` writes it: line 1, column 34 is not as expected"
            ],
        );
    }

    #[test]
    fn nothing_of_a_login_is_in_a_message() {
        for text in [
            r#"{"auths": {"a.com": "s3cret"}}"#,
            r#"{"auths": {"a.com": {"auth": ["s3cret"], "username": 1}}}"#,
            r#"{"auths": {"a.com": {"auth": {"s3cret": 1}}}}"#,
            r#"{"auths": {"a.com": {"auth": "s3cret"}}}"#,
            r#"{"auths": "s3cret"}"#,
            r#"{"auths": {"a.com": {"auth": 73737373}}}"#,
            r#""s3cret""#,
            "s3cret",
        ] {
            let error = Login::of(text.as_bytes(), "a.com", "a").unwrap_err();
            let told = format!("{error} {error:?}");
            assert!(!told.contains("s3cret") && !told.contains("7373"), "{told}");
        }
    }
}
