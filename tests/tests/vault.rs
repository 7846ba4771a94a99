//! The secret store on a real Vault: logins, their life, outages, refusals. What it stores is held to the other stores in
//! `sink_conformance.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_host::sinks::secretstore::SecretStore as _;
use configurator_host::sinks::secretstore::vault::{
    VaultAuth, VaultError, VaultOptions, VaultSecretStore,
};
use configurator_tests::controlplane::{About, ControlPlane, Do, Plan};
use configurator_tests::guests::workspace;
use configurator_tests::operator::Operator;
use configurator_tests::world::PATIENCE;
use expect_test::{Expect, expect};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, PostParams};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

// ---- A test's part of Vault ----

/// One test's part of Vault: its policies, roles and secrets are under its name.
struct Tenant {
    operator: Operator,
    about: About,
    name: String,
    folder: tempfile::TempDir,
}

impl Tenant {
    /// Of the servers that tests share.
    async fn of_shared(name: &str) -> Result<Self> {
        Self::new(ControlPlane::shared().await?, name)
    }

    fn new(about: About, name: &str) -> Result<Self> {
        Ok(Self {
            operator: Operator::new(&about)?,
            about,
            name: name.into(),
            folder: tempfile::tempdir()?,
        })
    }

    /// The policy that `docs/vault.md` tells people to write, for this test's names.
    async fn policy(&self) -> Result<()> {
        let page = std::fs::read_to_string(workspace().join("docs/vault.md"))?;
        let policy = page
            .split_once("```hcl\n")
            .and_then(|(_, rest)| Some(rest.split_once("```")?.0))
            .context("docs/vault.md shows no policy")?;
        let policy = policy.replace("/configurator/", &format!("/{}/", self.name));
        self.operator
            .write(
                &format!("sys/policies/acl/{}", self.name),
                json!({ "policy": policy }),
            )
            .await
            .map(drop)
    }

    /// A role for machines with that policy and nothing else; `more` adds to it.
    async fn approle(&self, more: Value) -> Result<(String, String)> {
        self.policy().await?;
        let role = format!("auth/approle/role/{}", self.name);
        let mut body = json!({
            "token_policies": [&self.name], "token_no_default_policy": true, "token_ttl": "1h"
        });
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        self.operator.write(&role, body).await?;
        let role_id = self.operator.read(&format!("{role}/role-id")).await?;
        let secret_id = self
            .operator
            .write(&format!("{role}/secret-id"), json!({}))
            .await?;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Ok((
            text(&role_id["data"]["role_id"]),
            text(&secret_id["data"]["secret_id"]),
        ))
    }

    /// A token with that policy and nothing else; `more` adds to it.
    async fn token(&self, more: Value) -> Result<String> {
        self.policy().await?;
        let mut body = json!({"policies": [&self.name], "no_default_policy": true, "ttl": "1h"});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        self.operator.token(body).await
    }

    fn options(&self, auth: VaultAuth) -> VaultOptions {
        VaultOptions {
            prefix: self.name.clone(),
            ca: Some(self.about.ca.clone()),
            ..VaultOptions::new(vec![self.about.vault.url.clone()], auth)
        }
    }

    fn store(&self, auth: VaultAuth) -> Result<Arc<VaultSecretStore>> {
        Ok(Arc::new(VaultSecretStore::new(self.options(auth))?))
    }

    fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// What Vault has answered, as its record has it.
    fn answers(&self, is_meant: impl Fn(&Value) -> bool) -> Vec<Value> {
        let record = std::fs::read_to_string(&self.about.vault.audit).unwrap_or_default();
        record
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|event| event["type"] == "response" && is_meant(event))
            .collect()
    }

    /// The accessors of the tokens that this role was given, in order.
    fn logins(&self, role_id: &str) -> Vec<String> {
        self.answers(|event| {
            event["request"]["path"] == "auth/approle/login"
                && event["request"]["data"]["role_id"] == role_id
        })
        .iter()
        .filter_map(|event| event["response"]["auth"]["accessor"].as_str())
        .map(str::to_owned)
        .collect()
    }

    /// How often the token of this accessor was renewed.
    fn renewals(&self, accessor: &str) -> usize {
        self.answers(|event| {
            event["request"]["path"] == "auth/token/renew-self"
                && event["request"]["client_token_accessor"] == accessor
                && event["response"]["auth"].is_object()
        })
        .len()
    }

    async fn accessor(&self, token: &str) -> Result<String> {
        let body = json!({ "token": token });
        let answer = self.operator.write("auth/token/lookup", body).await?;
        Ok(answer["data"]["accessor"].as_str().unwrap().to_owned())
    }

    async fn revoke(&self, accessor: &str) -> Result<()> {
        let body = json!({ "accessor": accessor });
        let revoked = self
            .operator
            .write("auth/token/revoke-accessor", body)
            .await;
        revoked.map(drop)
    }
}

/// Returns when `holds` does.
async fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .with_context(|| format!("in vain: {what}"))
}

/// Returns when the store can be used. Until then it has to say that it is away.
async fn until_back(store: &VaultSecretStore) -> Result<()> {
    let waiting = async {
        while let Err(fault) = store.probe().await {
            assert_eq!(fault.kind, FaultKind::SecretstoreUnavailable, "{fault}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .context("the store did not come back")
}

fn document(text: &str) -> Document {
    Document::parse(text).unwrap()
}

/// A secret is made, read and deleted.
async fn check_use(store: &VaultSecretStore) -> Result<()> {
    let (secret, is_new) = store.create("a", document("{\"n\":1}")).await?;
    assert!(is_new);
    assert_eq!(store.get("a").await?, Some(secret));
    assert!(store.delete("a").await?);
    assert_eq!(store.get("a").await?, None);
    // As when a namespace is deleted.
    let secret = "namespaces/team/uid/a";
    store.create(secret, document("{\"n\":1}")).await?;
    let folders: Vec<String> = store.folders("namespaces/").await?.into_iter().collect();
    assert_eq!(folders, ["team"]);
    store.delete_all("namespaces/team/uid/").await?;
    assert_eq!(store.get(secret).await?, None);
    store.probe().await?;
    Ok(())
}

/// A fault in one line, with what differs from run to run named.
fn shown(fault: &Fault, names: &[(&str, &str)]) -> String {
    let mut text = format!("{fault}\n");
    for (part, name) in names {
        text = text.replace(part, name);
    }
    text
}

// ---- Logins ----

#[tokio::test]
async fn a_token_of_the_documented_policy_suffices() -> Result<()> {
    let vault = Tenant::of_shared("by-token").await?;
    let token = vault.token(json!({})).await?;
    check_use(&*vault.store(VaultAuth::token(&token))?).await?;
    // With what an editor leaves at the end of a file.
    let file = vault.file("token", &format!("{token}\n"))?;
    let store = vault.store(VaultAuth::Token {
        token: None,
        token_file: Some(file),
    })?;
    check_use(&store).await
}

#[tokio::test]
async fn a_role_for_machines_logs_in() -> Result<()> {
    let vault = Tenant::of_shared("by-approle").await?;
    let (role_id, secret_id) = vault.approle(json!({})).await?;
    check_use(&*vault.store(VaultAuth::approle(&role_id, &secret_id))?).await?;
    let file = vault.file("secret-id", &secret_id)?;
    let store = vault.store(VaultAuth::AppRole {
        mount: "approle".into(),
        role_id,
        secret_id: None,
        secret_id_file: Some(file),
    })?;
    check_use(&store).await
}

#[tokio::test]
async fn a_service_account_logs_in() -> Result<()> {
    let vault = Tenant::of_shared("by-kubernetes").await?;
    vault.policy().await?;
    let client = vault.about.client().await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let named = |name: &str| -> Result<ServiceAccount> {
        Ok(serde_json::from_value(json!({"metadata": {"name": name}}))?)
    };
    let token_of = async |name: &str| -> Result<String> {
        accounts
            .create(&PostParams::default(), &named(name)?)
            .await?;
        let request: TokenRequest =
            serde_json::from_value(json!({"metadata": {}, "spec": {"audiences": []}}))?;
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await?;
        answer
            .status
            .and_then(|status| status.token)
            .context("no token")
    };
    let reviewer = token_of("vault").await?;
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "vault-reviews-tokens"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:auth-delegator"},
        "subjects": [{"kind": "ServiceAccount", "name": "vault", "namespace": "default"}],
    }))?;
    Api::all(client)
        .create(&PostParams::default(), &binding)
        .await?;
    vault
        .operator
        .write(
            "auth/kubernetes/config",
            json!({
                "kubernetes_host": vault.about.kubernetes.url,
                "kubernetes_ca_cert": std::fs::read_to_string(&vault.about.ca)?,
                "token_reviewer_jwt": reviewer,
                "disable_local_ca_jwt": true,
            }),
        )
        .await?;
    vault
        .operator
        .write(
            &format!("auth/kubernetes/role/{}", vault.name),
            json!({
                "bound_service_account_names": ["configurator"],
                "bound_service_account_namespaces": ["default"],
                "token_policies": [&vault.name],
                "token_no_default_policy": true,
                "token_ttl": "1h",
            }),
        )
        .await?;
    let jwt_file = vault.file("jwt", &token_of("configurator").await?)?;
    let auth = VaultAuth::Kubernetes {
        mount: "kubernetes".into(),
        role: vault.name.clone(),
        jwt_file,
    };
    check_use(&*vault.store(auth)?).await?;

    // Somebody else's account is refused, and the message does not hold its token.
    let jwt = token_of("stranger").await?;
    let auth = VaultAuth::Kubernetes {
        mount: "kubernetes".into(),
        role: vault.name.clone(),
        jwt_file: vault.file("jwt", &jwt)?,
    };
    let fault = vault.store(auth)?.get("a").await.unwrap_err();
    assert!(!fault.message.contains(&jwt), "{fault}");
    expect![[r#"
        SecretstoreUnavailable: the login at Vault's auth/kubernetes: Vault at URL answers 403: service account name not authorized; check the role, its credential, and where the login is mounted
    "#]].assert_eq(&shown(&fault, &[(&vault.about.vault.url, "URL")]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_share_one_login_and_so_after_it_was_revoked() -> Result<()> {
    let vault = Tenant::of_shared("single-flight").await?;
    let (role_id, secret_id) = vault.approle(json!({})).await?;
    let store = vault.store(VaultAuth::approle(&role_id, secret_id))?;
    for logins in 1..=3 {
        let mut readers = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let store = store.clone();
            readers.spawn(async move { store.get("a").await });
        }
        while let Some(read) = readers.join_next().await {
            read??;
        }
        let made = vault.logins(&role_id);
        assert_eq!(made.len(), logins);
        vault.revoke(made.last().unwrap()).await?;
    }
    // A write is sent again after the login, and once.
    let (secret, is_new) = store.create("a", document("1")).await?;
    assert_eq!((secret.version, is_new), (1, true));
    Ok(())
}

#[tokio::test]
async fn a_login_is_renewed_before_it_ends_and_made_anew_at_the_end_of_its_life() -> Result<()> {
    let vault = Tenant::of_shared("renewal").await?;
    let (role_id, secret_id) = vault
        .approle(json!({"token_ttl": "3s", "token_max_ttl": "9s"}))
        .await?;
    let store = vault.store(VaultAuth::approle(&role_id, secret_id))?;
    store.create("a", document("1")).await?;
    let first = vault.logins(&role_id)[0].clone();
    // Nothing is asked meanwhile.
    until("two renewals", || vault.renewals(&first) >= 2).await?;
    store.get("a").await?;
    assert_eq!(vault.logins(&role_id), std::slice::from_ref(&first));
    let waiting = async {
        while vault.logins(&role_id).len() < 2 {
            store.get("a").await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, waiting).await??;
    // Vault tells seconds: one renewal may come too late for the longest life, and no other follows it.
    let refused = vault.answers(|event| {
        event["request"]["path"] == "auth/token/renew-self"
            && event["request"]["client_token_accessor"] == first
            && event["error"].is_string()
    });
    assert!(refused.len() <= 1, "{refused:?}");
    let second = vault.logins(&role_id)[1].clone();
    until("a renewal of the second login", || {
        vault.renewals(&second) >= 1
    })
    .await?;
    // With the store its renewals end: the token does as well.
    drop(store);
    let look = async {
        loop {
            let body = json!({ "accessor": second });
            let url = &vault.about.vault.url;
            let path = "auth/token/lookup-accessor";
            if vault
                .operator
                .ask_at(url, Method::POST, path, body)
                .await?
                .0
                >= 400
            {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await??;
    Ok(())
}

#[tokio::test]
async fn a_token_of_somebody_else_is_renewed_as_well() -> Result<()> {
    let vault = Tenant::of_shared("periodic").await?;
    let token = vault.token(json!({"period": "2s"})).await?;
    let store = vault.store(VaultAuth::token(&token))?;
    store.create("a", document("1")).await?;
    let accessor = vault.accessor(&token).await?;
    until("three renewals", || vault.renewals(&accessor) >= 3).await?;
    assert!(store.get("a").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_wrong_credential_parks_and_a_right_one_heals() -> Result<()> {
    let vault = Tenant::of_shared("healing").await?;
    let (role_id, secret_id) = vault.approle(json!({})).await?;
    let missing = vault.folder.path().join("secret-id");
    let store = vault.store(VaultAuth::AppRole {
        mount: "approle".into(),
        role_id: role_id.clone(),
        secret_id: None,
        secret_id_file: Some(missing.clone()),
    })?;
    let path = missing.display().to_string();
    let names = [(vault.about.vault.url.as_str(), "URL"), (&path, "FILE")];
    let mut said = shown(&store.get("a").await.unwrap_err(), &names);
    vault.file("secret-id", "\n")?;
    said += &shown(&store.get("a").await.unwrap_err(), &names);
    vault.file("secret-id", "0-1-2-3")?;
    said += &shown(&store.get("a").await.unwrap_err(), &names);
    said += &shown(&store.probe().await.unwrap_err(), &names);
    let elsewhere = vault.store(VaultAuth::AppRole {
        mount: "elsewhere".into(),
        role_id,
        secret_id: Some("0-1-2-3".to_owned().into()),
        secret_id_file: None,
    })?;
    said += &shown(&elsewhere.get("a").await.unwrap_err(), &names);

    let token = vault.token(json!({})).await?;
    let by_token = vault.store(VaultAuth::token(&token))?;
    by_token.get("a").await?;
    vault.revoke(&vault.accessor(&token).await?).await?;
    said += &shown(&by_token.get("a").await.unwrap_err(), &names);
    said += &shown(&by_token.probe().await.unwrap_err(), &names);
    expect![[r#"
        SecretstoreUnavailable: the credential for Vault in FILE cannot be read: No such file or directory (os error 2)
        SecretstoreUnavailable: the credential for Vault in FILE is empty
        SecretstoreUnavailable: the login at Vault's auth/approle: Vault at URL answers 500: invalid secret id; check the role, its credential, and where the login is mounted
        SecretstoreUnavailable: the login at Vault's auth/approle: Vault at URL answers 500: invalid secret id; check the role, its credential, and where the login is mounted
        SecretstoreUnavailable: the login at Vault's auth/elsewhere: Vault at URL answers 403: permission denied; check the role, its credential, and where the login is mounted
        SecretstoreUnavailable: the token for Vault: Vault at URL answers 403: permission denied; it has ended, was revoked, or may not look itself up. Give another
        SecretstoreUnavailable: the token for Vault: Vault at URL answers 403: permission denied; it has ended, was revoked, or may not look itself up. Give another
    "#]].assert_eq(&said);

    // Vault locks out who is refused too often.
    let wait = store.probe().await.unwrap_err().retry_after;
    assert_eq!(wait, Some(Duration::from_secs(15)));

    vault.file("secret-id", &secret_id)?;
    store.probe().await?;
    check_use(&store).await
}

// ---- What is refused ----

#[tokio::test]
async fn what_cannot_be_used_is_said() -> Result<()> {
    let vault = Tenant::of_shared("refusals").await?;
    let token = vault.token(json!({})).await?;
    vault
        .operator
        .write(
            "sys/policies/acl/refusals-wide",
            json!({"policy": r#"
                path "nothing/*" { capabilities = ["create", "read", "update"] }
                path "old/*" { capabilities = ["create", "read", "update"] }
                path "secret/data/refusals/read" { capabilities = ["read"] }
                path "auth/token/lookup-self" { capabilities = ["read"] }"#}),
        )
        .await?;
    let answer = vault
        .operator
        .write(
            "auth/token/create",
            json!({"policies": ["refusals-wide"], "no_default_policy": true}),
        )
        .await?;
    let wide = answer["auth"]["client_token"].as_str().unwrap();
    let mut said = String::new();
    for (token, mount) in [
        (&*token, "secret"),
        (wide, "secret"),
        (wide, "nothing"),
        (&*token, "nothing"),
        (wide, "old"),
        (&*token, "old"),
        (&vault.about.vault.token, "nothing"),
        (&vault.about.vault.token, "secret/within"),
        (&vault.about.vault.token, "cubbyhole"),
    ] {
        let whose = match token {
            _ if token == vault.about.vault.token => "root",
            _ if token == wide => "wide",
            _ => "documented",
        };
        let store = VaultSecretStore::new(VaultOptions {
            mount: mount.into(),
            ..vault.options(VaultAuth::token(token))
        })?;
        // Whether there is a login and a mount has nothing to do with what it may do.
        said += &format!("{mount}, {whose}: ");
        said += &match store.probe().await {
            Ok(()) => "it is there\n".to_owned(),
            Err(fault) => shown(&fault, &[(&vault.about.vault.url, "URL")]),
        };
        for (name, verb) in [("read", "get"), ("read", "create"), ("other", "get")] {
            let result = match verb {
                "get" => store.get(name).await.map(|found| format!("{found:?}")),
                _ => store
                    .create(name, document("1"))
                    .await
                    .map(|made| format!("{made:?}")),
            };
            said += &format!("{mount}, {whose}: ");
            said += &match result {
                Ok(result) => format!("{verb} {name}: {result}\n"),
                Err(fault) => shown(&fault, &[(&vault.about.vault.url, "URL")]),
            };
        }
    }
    expect![[r#"
        secret, documented: it is there
        secret, documented: get read: None
        secret, documented: create read: (Secret { version: 1, value: … }, true)
        secret, documented: get other: None
        secret, wide: it is there
        secret, wide: get read: Some(Secret { version: 1, value: … })
        secret, wide: create read: (Secret { version: 1, value: … }, false)
        secret, wide: ResourcePermission: get secret "other": Vault at URL answers 403: permission denied; a policy of the host's token has to allow it
        nothing, wide: SecretstoreUnavailable: the secret store: Vault has nothing mounted at nothing/: mount a KV engine of version 2 there with `vault secrets enable -path=nothing kv-v2`, or correct the setting `mount`
        nothing, wide: SecretstoreUnavailable: get secret "read": Vault has nothing mounted at nothing/: mount a KV engine of version 2 there with `vault secrets enable -path=nothing kv-v2`, or correct the setting `mount`
        nothing, wide: SecretstoreUnavailable: create secret "read": Vault has nothing mounted at nothing/: mount a KV engine of version 2 there with `vault secrets enable -path=nothing kv-v2`, or correct the setting `mount`
        nothing, wide: SecretstoreUnavailable: get secret "other": Vault has nothing mounted at nothing/: mount a KV engine of version 2 there with `vault secrets enable -path=nothing kv-v2`, or correct the setting `mount`
        nothing, documented: it is there
        nothing, documented: ResourcePermission: get secret "read": Vault at URL answers 403: permission denied; a policy of the host's token has to allow it
        nothing, documented: ResourcePermission: create secret "read": Vault at URL answers 403: permission denied; a policy of the host's token has to allow it
        nothing, documented: ResourcePermission: get secret "other": Vault at URL answers 403: permission denied; a policy of the host's token has to allow it
        old, wide: SecretstoreUnavailable: the secret store: the KV engine that Vault has mounted at old/ is of version 1, which cannot write without overwriting: upgrade it with `vault kv enable-versioning old`, or correct the setting `mount`
        old, wide: SecretstoreUnavailable: get secret "read": the KV engine that Vault has mounted at old/ is of version 1, which cannot write without overwriting: upgrade it with `vault kv enable-versioning old`, or correct the setting `mount`
        old, wide: SecretstoreUnavailable: create secret "read": the KV engine that Vault has mounted at old/ is of version 1, which cannot write without overwriting: upgrade it with `vault kv enable-versioning old`, or correct the setting `mount`
        old, wide: SecretstoreUnavailable: get secret "other": the KV engine that Vault has mounted at old/ is of version 1, which cannot write without overwriting: upgrade it with `vault kv enable-versioning old`, or correct the setting `mount`
        old, documented: it is there
        old, documented: ResourcePermission: get secret "read": Vault at URL answers 403: permission denied; a policy of the host's token has to allow it
        old, documented: ResourcePermission: create secret "read": Vault at URL answers 403: permission denied; a policy of the host's token has to allow it
        old, documented: ResourcePermission: get secret "other": Vault at URL answers 403: permission denied; a policy of the host's token has to allow it
        nothing, root: SecretstoreUnavailable: the secret store: Vault has nothing mounted at nothing/: mount a KV engine of version 2 there with `vault secrets enable -path=nothing kv-v2`, or correct the setting `mount`
        nothing, root: SecretstoreUnavailable: get secret "read": Vault has nothing mounted at nothing/: mount a KV engine of version 2 there with `vault secrets enable -path=nothing kv-v2`, or correct the setting `mount`
        nothing, root: SecretstoreUnavailable: create secret "read": Vault has nothing mounted at nothing/: mount a KV engine of version 2 there with `vault secrets enable -path=nothing kv-v2`, or correct the setting `mount`
        nothing, root: SecretstoreUnavailable: get secret "other": Vault has nothing mounted at nothing/: mount a KV engine of version 2 there with `vault secrets enable -path=nothing kv-v2`, or correct the setting `mount`
        secret/within, root: SecretstoreUnavailable: the secret store: Vault has nothing mounted at secret/within/: mount a KV engine of version 2 there with `vault secrets enable -path=secret/within kv-v2`, or correct the setting `mount`
        secret/within, root: SecretstoreUnavailable: get secret "read": Vault has nothing mounted at secret/within/: mount a KV engine of version 2 there with `vault secrets enable -path=secret/within kv-v2`, or correct the setting `mount`
        secret/within, root: SecretstoreUnavailable: create secret "read": Vault has nothing mounted at secret/within/: mount a KV engine of version 2 there with `vault secrets enable -path=secret/within kv-v2`, or correct the setting `mount`
        secret/within, root: SecretstoreUnavailable: get secret "other": Vault has nothing mounted at secret/within/: mount a KV engine of version 2 there with `vault secrets enable -path=secret/within kv-v2`, or correct the setting `mount`
        cubbyhole, root: SecretstoreUnavailable: the secret store: what Vault has mounted at cubbyhole/ is "cubbyhole"; a KV engine of version 2 is needed
        cubbyhole, root: SecretstoreUnavailable: get secret "read": what Vault has mounted at cubbyhole/ is "cubbyhole"; a KV engine of version 2 is needed
        cubbyhole, root: SecretstoreUnavailable: create secret "read": what Vault has mounted at cubbyhole/ is "cubbyhole"; a KV engine of version 2 is needed
        cubbyhole, root: SecretstoreUnavailable: get secret "other": what Vault has mounted at cubbyhole/ is "cubbyhole"; a KV engine of version 2 is needed
    "#]].assert_eq(&said);
    // In version 1 nothing was written.
    let (status, _) = vault
        .operator
        .ask_at(
            &vault.about.vault.url,
            Method::GET,
            "old/data/refusals/read",
            Value::Null,
        )
        .await?;
    assert_eq!(status, 404);
    Ok(())
}

#[tokio::test]
async fn options_without_sense_are_refused_and_nothing_is_sent() -> Result<()> {
    let vault = Tenant::of_shared("options").await?;
    let check = |change: &dyn Fn(&mut VaultOptions), expected: Expect| {
        let mut options = vault.options(VaultAuth::token("x"));
        change(&mut options);
        let error = VaultSecretStore::new(options).err().unwrap();
        expected.assert_eq(&error.to_string());
    };
    check(
        &|options| options.addresses.clear(),
        expect![
            "vault: no address is given; set `addresses`, as in `https://vault.example.com:8200`"
        ],
    );
    check(
        &|options| options.addresses = vec!["vault:8200".into()],
        expect![[
            r#"vault: "vault:8200" is no address of a server; write it as in `https://vault.example.com:8200`"#
        ]],
    );
    check(
        &|options| options.addresses = vec!["https://me:secret@vault".into()],
        expect![[
            r#"vault: "…@…" is no address of a server; write it as in `https://vault.example.com:8200`"#
        ]],
    );
    check(
        &|options| options.mount = "../sys".into(),
        expect![[
            r#"vault: the mount "../sys" is no path: write segments of printable characters, with single slashes between them"#
        ]],
    );
    check(
        &|options| options.prefix = "a//b".into(),
        expect![[
            r#"vault: the prefix "a//b" is no path: write segments of printable characters, with single slashes between them"#
        ]],
    );
    check(
        &|options| options.namespace = Some("\n".into()),
        expect![[r#"vault: the namespace "\n" cannot be sent in a header"#]],
    );
    check(
        &|options| options.timeout_seconds = 0,
        expect!["vault: `timeout_seconds` must be at least 1"],
    );
    check(
        &|options| options.ca = Some("/nowhere.pem".into()),
        expect![
            "vault: the authority /nowhere.pem cannot be read: No such file or directory (os error 2)"
        ],
    );
    check(
        &|options| {
            options.auth = VaultAuth::Token {
                token: None,
                token_file: None,
            };
        },
        expect!["vault: give either `token` or `token_file`"],
    );
    let mut options = vault.options(VaultAuth::token("x"));
    options.ca = Some(vault.file("empty.pem", "nothing")?);
    let error = VaultSecretStore::new(options).err().unwrap();
    assert!(matches!(error, VaultError::Ca { .. }), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_server_that_the_authority_does_not_vouch_for_gets_nothing() -> Result<()> {
    let vault = Tenant::of_shared("authority").await?;
    let key = rcgen_ca()?;
    let mut options = vault.options(VaultAuth::token("hvs.never-sent"));
    options.ca = Some(vault.file("other.pem", &key)?);
    let store = VaultSecretStore::new(options)?;
    let names = [(vault.about.vault.url.as_str(), "URL")];
    let mut said = shown(&store.get("a").await.unwrap_err(), &names);
    said += &shown(&store.probe().await.unwrap_err(), &names);
    // The system's authorities do not know the test's either.
    let mut options = vault.options(VaultAuth::token("hvs.never-sent"));
    options.ca = None;
    let fault = VaultSecretStore::new(options)?.get("a").await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::SecretstoreUnavailable);
    expect![[r#"
        SecretstoreUnavailable: the token for Vault: Vault at URL cannot be reached: error sending request: client error (Connect): invalid peer certificate: UnknownIssuer
        SecretstoreUnavailable: the secret store: Vault at URL cannot be reached: error sending request: client error (Connect): invalid peer certificate: UnknownIssuer
    "#]].assert_eq(&said);
    let heard = vault.answers(|event| event["request"]["client_token"] == "hvs.never-sent");
    assert!(heard.is_empty());
    Ok(())
}

/// The certificate of an authority that nobody has.
fn rcgen_ca() -> Result<String> {
    let key = rcgen::KeyPair::generate()?;
    let mut params = rcgen::CertificateParams::new(Vec::new())?;
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    Ok(params.self_signed(&key)?.pem())
}

#[tokio::test]
async fn a_quota_is_respected() -> Result<()> {
    let vault = Tenant::of_shared("quota").await?;
    vault
        .operator
        .write(
            "sys/mounts/limited",
            json!({"type": "kv", "options": {"version": "2"}}),
        )
        .await?;
    vault
        .operator
        .write(
            "sys/quotas/config",
            json!({"enable_rate_limit_response_headers": true}),
        )
        .await?;
    vault
        .operator
        .write(
            "sys/quotas/rate-limit/limited",
            json!({"path": "limited/", "rate": 1, "interval": "60s"}),
        )
        .await?;
    let store = VaultSecretStore::new(VaultOptions {
        mount: "limited".into(),
        ..vault.options(VaultAuth::token(&vault.about.vault.token))
    })?;
    let waiting = async {
        loop {
            // A mount that is new needs a moment.
            match store.get("a").await {
                Ok(_) => {}
                Err(fault) => {
                    assert_eq!(fault.kind, FaultKind::SecretstoreUnavailable, "{fault}");
                    if fault.status == Some(429) {
                        return fault;
                    }
                }
            }
        }
    };
    let fault = tokio::time::timeout(PATIENCE, waiting).await?;
    let wait = fault.retry_after.unwrap();
    assert!(wait > Duration::from_secs(1) && wait <= Duration::from_secs(60));
    expect![[r#"
        SecretstoreUnavailable: get secret "a": Vault at URL answers 429: request path "limited/data/quota/a": rate limit quota exceeded
    "#]].assert_eq(&shown(&fault, &[(&vault.about.vault.url, "URL")]));
    Ok(())
}

// ---- What is stored ----

#[tokio::test]
async fn what_others_wrote_is_handed_out_as_its_fields() -> Result<()> {
    let vault = Tenant::of_shared("others").await?;
    let store = vault.store(VaultAuth::token(vault.token(json!({})).await?))?;
    let mut said = String::new();
    for fields in [
        json!({"user": "x", "password": "y", "n": 1.5}),
        json!({"value": "{}"}),
        json!({"json": "{\"n\": 12345678901234567890123}"}),
        json!({"json": "no JSON"}),
        json!({"json": "{}", "more": 1}),
        json!({"json": 1}),
        json!({}),
    ] {
        vault
            .operator
            .write("secret/data/others/a", json!({ "data": fields }))
            .await?;
        let secret = store.get("a").await?.unwrap();
        said += &format!("{fields} → {} {}\n", secret.version, secret.value);
    }
    let mut deep = json!(1);
    for _ in 0..110 {
        deep = json!([deep]);
    }
    vault
        .operator
        .write("secret/data/others/a", json!({"data": {"deep": deep}}))
        .await?;
    said += &shown(&store.get("a").await.unwrap_err(), &[]);
    expect![[r#"
        {"n":1.5,"password":"y","user":"x"} → 1 {"n":1.5,"password":"y","user":"x"}
        {"value":"{}"} → 2 {"value":"{}"}
        {"json":"{\"n\": 12345678901234567890123}"} → 3 {"n": 12345678901234567890123}
        {"json":"no JSON"} → 4 {"json":"no JSON"}
        {"json":"{}","more":1} → 5 {"json":"{}","more":1}
        {"json":1} → 6 {"json":1}
        {} → 7 {}
        ResourceGeneric: get secret "a": the value is nested more than 100 levels deep (at byte 107)
    "#]]
    .assert_eq(&said);
    Ok(())
}

#[tokio::test]
async fn operators_who_restore_destroy_and_remove_are_understood() -> Result<()> {
    let vault = Tenant::of_shared("restores").await?;
    let store = vault.store(VaultAuth::token(vault.token(json!({})).await?))?;
    store.create("a", document("1")).await?;
    store.delete("a").await?;
    vault
        .operator
        .write("secret/undelete/restores/a", json!({"versions": [1]}))
        .await?;
    assert_eq!(store.get("a").await?.unwrap().value.as_str(), "1");
    assert!(!store.create("a", document("2")).await?.1);
    vault
        .operator
        .write("secret/destroy/restores/a", json!({"versions": [1]}))
        .await?;
    assert_eq!(store.get("a").await?, None);
    assert!(!store.delete("a").await?);
    assert_eq!(store.create("a", document("2")).await?.0.version, 2);
    let url = &vault.about.vault.url;
    vault
        .operator
        .ask_at(
            url,
            Method::DELETE,
            "secret/metadata/restores/a",
            Value::Null,
        )
        .await?;
    assert_eq!(store.get("a").await?, None);
    assert_eq!(store.create("a", document("3")).await?.0.version, 1);
    Ok(())
}

#[tokio::test]
async fn a_create_whose_answer_was_lost_is_decided_by_what_is_there() -> Result<()> {
    let vault = Tenant::of_shared("lost").await?;
    let token = vault.token(json!({})).await?;
    let is_write = |seen: &Seen| seen.line.starts_with("POST /v1/secret/");
    let door = Door::to(&vault, move |seen| match is_write(seen) {
        true => Act::Lose,
        false => Act::Forward,
    })
    .await?;
    let options = VaultOptions {
        addresses: vec![door.url.clone()],
        ..vault.options(VaultAuth::token(&token))
    };
    let store = VaultSecretStore::new(options)?;
    let fault = store.create("a", document("1")).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::SecretstoreUnavailable);
    expect![[r#"
        SecretstoreUnavailable: create secret "a": Vault at URL broke off: error sending request: client error (SendRequest): connection closed before message completed
    "#]].assert_eq(&shown(&fault, &[(&door.url, "URL")]));
    // It was sent once, it was carried out, and what it wrote is what everybody gets from now on.
    assert_eq!(door.seen().iter().filter(|seen| is_write(seen)).count(), 1);
    let (secret, is_new) = store.create("a", document("2")).await?;
    assert_eq!(
        (secret.version, secret.value.as_str(), is_new),
        (1, "1", false)
    );
    // So is a deletion.
    store.delete("a").await.unwrap_err();
    assert!(!store.delete("a").await?);
    Ok(())
}

// ---- Outages ----

#[tokio::test]
async fn outages_park_and_end() -> Result<()> {
    let plane = ControlPlane::start(&Plan {
        audit: false,
        ..Plan::default()
    })
    .await?;
    let vault = Tenant::new(plane.about().clone(), "outages")?;
    let (role_id, secret_id) = vault.approle(json!({})).await?;
    let mut options = vault.options(VaultAuth::approle(&role_id, secret_id));
    options.timeout_seconds = 1;
    let store = VaultSecretStore::new(options)?;
    store.create("a", document("1")).await?;
    // Its logins end during the outages.
    let other = Tenant::new(plane.about().clone(), "outages-short")?;
    let (role_id, secret_id) = other.approle(json!({"token_ttl": "1s"})).await?;
    let short = other.store(VaultAuth::approle(&role_id, secret_id))?;
    short.create("a", document("1")).await?;
    let names = [(vault.about.vault.url.as_str(), "URL")];
    let mut said = String::new();
    let away = async || {
        // A process that is told to stop may still answer once.
        while store.probe().await.is_ok() {}
        let mut said = String::new();
        for fault in [
            store.get("a").await.unwrap_err(),
            store.create("b", document("1")).await.unwrap_err(),
            store.probe().await.unwrap_err(),
        ] {
            assert_eq!(fault.kind, FaultKind::SecretstoreUnavailable);
            said += &shown(&fault, &names);
        }
        said
    };

    vault.operator.write("sys/seal", json!({})).await?;
    said += &away().await;
    plane.unseal().await?;
    for store in [&store, &*short] {
        until_back(store).await?;
        assert!(store.get("a").await?.is_some());
    }

    plane.command(Do::Pause, "vault").await?;
    said += &away().await;
    plane.command(Do::Resume, "vault").await?;
    for store in [&store, &*short] {
        until_back(store).await?;
        assert!(store.get("a").await?.is_some());
    }

    plane.command(Do::Kill, "vault").await?;
    said += &away().await;
    plane.command(Do::Start, "vault").await?;
    plane.unseal().await?;
    for store in [&store, &*short] {
        until_back(store).await?;
        assert!(store.get("a").await?.is_some());
    }
    assert!(store.create("b", document("1")).await?.1);
    expect![[r#"
        SecretstoreUnavailable: get secret "a": Vault at URL is sealed: unseal it with `vault operator unseal`
        SecretstoreUnavailable: create secret "b": Vault at URL is sealed: unseal it with `vault operator unseal`
        SecretstoreUnavailable: the secret store: Vault at URL is sealed: unseal it with `vault operator unseal`
        SecretstoreUnavailable: get secret "a": Vault at URL did not answer within 1s
        SecretstoreUnavailable: create secret "b": Vault at URL did not answer within 1s
        SecretstoreUnavailable: the secret store: Vault at URL did not answer within 1s
        SecretstoreUnavailable: get secret "a": Vault at URL cannot be reached: error sending request: client error (Connect): tcp connect error: Connection refused (os error 111)
        SecretstoreUnavailable: create secret "b": Vault at URL cannot be reached: error sending request: client error (Connect): tcp connect error: Connection refused (os error 111)
        SecretstoreUnavailable: the secret store: Vault at URL cannot be reached: error sending request: client error (Connect): tcp connect error: Connection refused (os error 111)
    "#]].assert_eq(&said);
    Ok(())
}

#[tokio::test]
async fn a_standby_names_the_active_node_and_is_followed() -> Result<()> {
    let plane = ControlPlane::start(&Plan {
        standby: true,
        audit: false,
        ..Plan::default()
    })
    .await?;
    let vault = Tenant::new(plane.about().clone(), "standby")?;
    let (role_id, secret_id) = vault.approle(json!({})).await?;
    let auth = VaultAuth::approle(&role_id, secret_id);
    let standby = vault.about.vault.standby.clone().unwrap();
    let store_at = |addresses: Vec<String>| {
        VaultSecretStore::new(VaultOptions {
            addresses,
            ..vault.options(auth.clone())
        })
    };
    // The standby alone, with names that a URL writes in several ways.
    let store = store_at(vec![standby.clone()])?;
    check_use(&store).await?;
    assert!(store.create("a b@c/ü/..", document("1")).await?.1);

    // From a node that has shown no certificate nobody is sent elsewhere.
    let door = Door::new({
        let standby = standby.clone();
        move |_| Act::Say(307, vec![("location", format!("{standby}/v1/secret"))], "")
    })
    .await?;
    let refused = store_at(vec![door.url.clone()])?;
    let fault = refused.get("a").await.unwrap_err();
    let names = [(&*door.url, "DOOR"), (&*standby, "STANDBY")];
    let mut said = shown(&fault, &names);
    let door = Door::new({
        let standby = standby.clone();
        move |seen| {
            Act::Say(
                307,
                vec![("location", format!("{standby}{}", seen.path()))],
                "",
            )
        }
    })
    .await?;
    let refused = store_at(vec![door.url.clone()])?;
    let names = [(&*door.url, "DOOR"), (&*standby, "STANDBY")];
    said += &shown(&refused.get("a").await.unwrap_err(), &names);
    // Unless the operator has named that node.
    let store_by_door = store_at(vec![door.url.clone(), standby.clone()])?;
    check_use(&store_by_door).await?;
    expect![[r#"
        SecretstoreUnavailable: the login at Vault's auth/approle: Vault at DOOR sends requests on, and not to an active node
        SecretstoreUnavailable: the login at Vault's auth/approle: Vault at DOOR is a standby, and the active node at STANDBY may not be sent the token: use https, or list it in `addresses`
    "#]].assert_eq(&said);

    // The active node steps down: whatever is said until the other has taken over, it is that the store is away.
    let both = store_at(vec![vault.about.vault.url.clone(), standby.clone()])?;
    for store in [&store, &both] {
        store.get("a").await?;
    }
    vault.operator.write("sys/step-down", json!({})).await?;
    for store in [&store, &both] {
        let waiting = async {
            loop {
                match store.get("a b@c/ü/..").await {
                    Ok(found) => return found,
                    Err(fault) => {
                        assert_eq!(fault.kind, FaultKind::SecretstoreUnavailable, "{fault}");
                    }
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, waiting).await?;
        assert_eq!(found.unwrap().value.as_str(), "1");
    }
    until_back(&both).await
}

#[tokio::test]
async fn another_node_is_asked_when_one_is_away() -> Result<()> {
    let vault = Tenant::of_shared("several").await?;
    let token = vault.token(json!({})).await?;
    let nobody = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let sealed = Door::new(|_| Act::Say(503, vec![], r#"{"errors":["Vault is sealed"]}"#)).await?;
    let store = VaultSecretStore::new(VaultOptions {
        addresses: vec![
            format!("https://{nobody}"),
            sealed.url.clone(),
            vault.about.vault.url.clone(),
        ],
        ..vault.options(VaultAuth::token(&token))
    })?;
    check_use(&store).await?;
    // The one that answers is asked first from then on.
    assert_eq!(
        sealed
            .seen()
            .iter()
            .map(|seen| seen.line.clone())
            .collect::<Vec<_>>(),
        ["GET /v1/auth/token/lookup-self HTTP/1.1"]
    );
    Ok(())
}

/// What a node says of itself, and what comes of it.
#[tokio::test]
async fn sealed_uninitialised_and_strangers_are_told_apart() -> Result<()> {
    let mut said = String::new();
    for (status, body) in [
        (503, r#"{"initialized":true,"sealed":true,"standby":true}"#),
        (501, r#"{"initialized":false,"sealed":true,"standby":true}"#),
        (472, "{}"),
        (502, "<html>Bad Gateway</html>"),
        (503, "<html>No backend</html>"),
        (
            500,
            r#"{"errors":["local node not active but active cluster node not found"]}"#,
        ),
        (404, "<html>Not Found</html>"),
    ] {
        let door =
            Door::new(move |_| Act::Say(status, vec![("retry-after", "7".into())], body)).await?;
        let store = VaultSecretStore::new(VaultOptions::new(
            vec![door.url.clone()],
            VaultAuth::token("x"),
        ))?;
        for fault in [
            store.probe().await.unwrap_err(),
            store.get("a").await.unwrap_err(),
        ] {
            // What is left of it, when it is asked again.
            let left = fault.retry_after.unwrap();
            assert!(
                left.abs_diff(Duration::from_secs(7)) < Duration::from_secs(6),
                "{fault}"
            );
            said += &shown(&fault, &[(&door.url, "URL")]);
        }
    }
    expect![[r#"
        SecretstoreUnavailable: the secret store: Vault at URL is sealed: unseal it with `vault operator unseal`
        SecretstoreUnavailable: the token for Vault: Vault at URL is sealed: unseal it with `vault operator unseal`; it has asked to be left alone for now
        SecretstoreUnavailable: the secret store: Vault at URL is not initialised: initialise it with `vault operator init`
        SecretstoreUnavailable: the token for Vault: Vault at URL is not initialised: initialise it with `vault operator init`
        SecretstoreUnavailable: the secret store: Vault at URL is a disaster-recovery replica, which serves no requests
        SecretstoreUnavailable: the token for Vault: Vault at URL is a disaster-recovery replica, which serves no requests
        SecretstoreUnavailable: the secret store: Vault at URL answers 502, and not as Vault does
        SecretstoreUnavailable: the token for Vault: Vault at URL answers 502, and not as Vault does
        SecretstoreUnavailable: the secret store: Vault at URL answers 503, and not as Vault does
        SecretstoreUnavailable: the token for Vault: Vault at URL answers 503, and not as Vault does; it has asked to be left alone for now
        SecretstoreUnavailable: the secret store: Vault at URL is a standby, and there is no active node
        SecretstoreUnavailable: the token for Vault: Vault at URL is a standby, and there is no active node
        SecretstoreUnavailable: the secret store: Vault at URL answers 404, and not as Vault does
        SecretstoreUnavailable: the token for Vault: Vault at URL answers 404, and not as Vault does
    "#]].assert_eq(&said);

    // Once logged in, what has nothing to do with Vault is no absent secret.
    let is_data = |seen: &Seen| seen.line.contains("/v1/secret/data/");
    let vault = Tenant::of_shared("strangers").await?;
    let token = vault.token(json!({})).await?;
    for body in ["<html>Not Found</html>", r#"{"message":"no route"}"#] {
        let door = Door::to(&vault, move |seen| match is_data(seen) {
            true => Act::Say(404, vec![], body),
            false => Act::Forward,
        })
        .await?;
        let store = VaultSecretStore::new(VaultOptions {
            addresses: vec![door.url.clone()],
            ..vault.options(VaultAuth::token(&token))
        })?;
        let fault = store.get("a").await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::SecretstoreUnavailable, "{fault}");
    }
    Ok(())
}

#[tokio::test]
async fn the_namespace_goes_with_every_request_but_health() -> Result<()> {
    let vault = Tenant::of_shared("namespaces").await?;
    let (role_id, secret_id) = vault.approle(json!({})).await?;
    let door = Door::to(&vault, |_| Act::Forward).await?;
    let store = VaultSecretStore::new(VaultOptions {
        addresses: vec![door.url.clone()],
        namespace: Some("teams/one".into()),
        ..vault.options(VaultAuth::approle(role_id, secret_id))
    })?;
    check_use(&store).await?;
    let said: BTreeSet<String> = door
        .seen()
        .iter()
        .map(|seen| {
            let namespace = seen.header("x-vault-namespace").unwrap_or("none");
            let token = seen.header("x-vault-token").map_or("no token", |_| "token");
            format!("{}: {namespace}, {token}\n", seen.line)
        })
        .collect();
    expect![[r#"
        DELETE /v1/secret/metadata/namespaces/namespaces/team/uid/a HTTP/1.1: teams/one, token
        GET /v1/auth/token/lookup-self HTTP/1.1: teams/one, token
        GET /v1/secret/data/namespaces/a HTTP/1.1: teams/one, token
        GET /v1/secret/data/namespaces/namespaces/team/uid/a HTTP/1.1: teams/one, token
        GET /v1/sys/health HTTP/1.1: none, no token
        GET /v1/sys/internal/ui/mounts/secret HTTP/1.1: teams/one, token
        LIST /v1/secret/metadata/namespaces/namespaces HTTP/1.1: teams/one, token
        LIST /v1/secret/metadata/namespaces/namespaces/team/uid HTTP/1.1: teams/one, token
        POST /v1/auth/approle/login HTTP/1.1: teams/one, no token
        POST /v1/secret/data/namespaces/a HTTP/1.1: teams/one, token
        POST /v1/secret/data/namespaces/namespaces/team/uid/a HTTP/1.1: teams/one, token
        POST /v1/secret/delete/namespaces/a HTTP/1.1: teams/one, token
    "#]]
    .assert_eq(&said.into_iter().collect::<String>());
    Ok(())
}

// ---- Secrets ----

/// What is written somewhere.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_secret_is_shown_to_anybody() -> Result<()> {
    let page = Page::default();
    let writer = page.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // For every thread: what is logged at a place is decided by whoever gets there first.
    tracing::subscriber::set_global_default(subscriber)?;

    let vault = Tenant::of_shared("silence").await?;
    let (role_id, secret_id) = vault.approle(json!({"token_ttl": "2s"})).await?;
    let options = vault.options(VaultAuth::approle(&role_id, &secret_id));
    let mut said = format!("{options:?}");
    let store = VaultSecretStore::new(options)?;
    let (secret, _) = store
        .create("a", document("\"a value for nobody\""))
        .await?;
    said += &format!("{secret:?}");
    let accessor = vault.logins(&role_id)[0].clone();
    until("a renewal", || vault.renewals(&accessor) >= 1).await?;
    vault.revoke(&accessor).await?;
    store.get("a").await?;
    // A server that repeats what it was sent.
    let door = Door::new(|seen| {
        let told = json!({"errors": [format!("{seen:?}")]}).to_string();
        Act::Say(400, vec![], Box::leak(told.into_boxed_str()))
    })
    .await?;
    let by_door = VaultSecretStore::new(VaultOptions {
        addresses: vec![door.url.clone()],
        ..vault.options(VaultAuth::approle(&role_id, &secret_id))
    })?;
    said += &by_door.get("a").await.unwrap_err().to_string();
    let token = vault.token(json!({})).await?;
    let by_door = VaultSecretStore::new(VaultOptions {
        addresses: vec![door.url.clone()],
        ..vault.options(VaultAuth::token(&token))
    })?;
    said += &by_door.get("a").await.unwrap_err().to_string();

    let logged = String::from_utf8(page.0.lock().unwrap().clone())?;
    assert!(logged.contains("logged in at Vault"));
    said += &logged;
    // Vault writes a token in two ways.
    let accessors = vault.logins(&role_id);
    assert_eq!(accessors.len(), 2);
    let tokens: BTreeSet<String> = vault
        .answers(|event| {
            let whose = event["request"]["client_token_accessor"].as_str();
            whose.is_some_and(|whose| accessors.iter().any(|accessor| accessor == whose))
        })
        .iter()
        .flat_map(|event| {
            [
                event["auth"]["client_token"].as_str(),
                event["request"]["client_token"].as_str(),
            ]
        })
        .flatten()
        .map(str::to_owned)
        .collect();
    assert!(tokens.len() >= 2);
    for secret in tokens
        .into_iter()
        .chain([token, secret_id, "a value for nobody".into()])
    {
        assert!(!said.contains(&secret), "{secret} is shown");
    }
    Ok(())
}

// ---- A door before Vault, at which a test stands ----

/// What came to a [`Door`].
#[derive(Debug, Clone)]
struct Seen {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// What a [`Door`] does with a request.
enum Act {
    /// Hands it on, and the answer back.
    Forward,
    /// Hands it on, and closes the connection.
    Lose,
    /// Answers itself.
    Say(u16, Vec<(&'static str, String)>, &'static str),
}

/// A server before another one, or in its place.
struct Door {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name)?;
        Some(&found.1)
    }

    fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap()
    }
}

impl Door {
    async fn new(act: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Result<Self> {
        Self::before(None, act).await
    }

    async fn to(
        vault: &Tenant,
        act: impl Fn(&Seen) -> Act + Send + Sync + 'static,
    ) -> Result<Self> {
        let target = (vault.operator.http().clone(), vault.about.vault.url.clone());
        Self::before(Some(target), act).await
    }

    async fn before(
        target: Option<(reqwest::Client, String)>,
        act: impl Fn(&Seen) -> Act + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let keeps = seen.clone();
        let act = Arc::new(act);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (act, keeps, target) = (act.clone(), keeps.clone(), target.clone());
                tokio::spawn(async move {
                    pass(connection, target, &*act, &keeps).await.unwrap();
                });
            }
        });
        Ok(Self { url, seen })
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn pass(
    mut connection: TcpStream,
    target: Option<(reqwest::Client, String)>,
    act: &(impl Fn(&Seen) -> Act + Send + Sync),
    keeps: &Mutex<Vec<Seen>>,
) -> Result<()> {
    let Some(seen) = receive(&mut connection).await? else {
        return Ok(());
    };
    keeps.lock().unwrap().push(seen.clone());
    let act = act(&seen);
    let (status, headers, body) = match act {
        Act::Say(status, headers, body) => (status, headers, body.as_bytes().to_vec()),
        Act::Forward | Act::Lose => {
            let (http, url) = target.context("there is nothing behind this door")?;
            let method = seen.line.split(' ').next().unwrap().parse()?;
            let mut request = http.request(method, format!("{url}{}", seen.path()));
            for (name, value) in &seen.headers {
                if name != "host" && name != "content-length" {
                    request = request.header(name, value);
                }
            }
            let answer = request.body(seen.body.clone()).send().await?;
            let status = answer.status().as_u16();
            let body = answer.bytes().await?.to_vec();
            if matches!(act, Act::Lose) {
                return Ok(());
            }
            (status, Vec::new(), body)
        }
    };
    let mut answer = format!(
        "HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        answer += &format!("{name}: {value}\r\n");
    }
    answer += "\r\n";
    connection.write_all(answer.as_bytes()).await?;
    connection.write_all(&body).await?;
    connection.shutdown().await?;
    Ok(())
}

async fn receive(connection: &mut TcpStream) -> Result<Option<Seen>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec())?;
            let mut lines = head.lines();
            let line = lines.next().unwrap_or_default().to_owned();
            let headers: Vec<(String, String)> = lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect();
            let mut seen = Seen {
                line,
                headers,
                body: Vec::new(),
            };
            let length: usize = seen.header("content-length").unwrap_or("0").parse()?;
            if bytes.len() >= end + 4 + length {
                seen.body = bytes[end + 4..].to_vec();
                return Ok(Some(seen));
            }
        }
        let read = connection.read(&mut buffer).await?;
        if read == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&buffer[..read]);
    }
}
