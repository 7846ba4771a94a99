//! Vault's tokens, which end or are revoked while the host works.

use anyhow::Result;
use configurator_host::sinks::secretstore::vault::VaultAuth;
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::operator::Operator;
use serde_json::json;

use crate::scene::{Options, Scene, patiently};

async fn token(vault: &Operator, name: &str, ttl: &str) -> Result<String> {
    vault
        .token(json!({"policies": ["root"], "display_name": name, "ttl": ttl, "renewable": false}))
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_ends_and_another_is_given() -> Result<()> {
    let vault = Operator::new(&ControlPlane::shared().await?)?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("token");
    // The scene's turn may be long in coming.
    let first = token(&vault, "ended", "1h").await?;
    std::fs::write(&file, &first)?;
    let auth = VaultAuth::Token {
        token: None,
        token_file: Some(file.clone()),
    };
    let options = Options {
        auth: Some(auth),
        ..Options::default()
    };
    let scene = Scene::on_shared("ended", options).await?;
    let short = token(&vault, "ended", "3s").await?;
    std::fs::write(&file, &short)?;
    // The host has used it when it looked for partitions of namespaces that are gone.
    vault
        .write("auth/token/revoke", json!({"token": first}))
        .await?;
    scene.begin().await?;
    scene.until_ended(&short).await?;
    scene.go_on().await?;
    scene.outlasts_every_backoff("secretstore").await?;
    std::fs::write(&file, token(&vault, "ended", "1h").await?)?;
    scene.converges(0).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_revoked_and_the_host_logs_in_anew() -> Result<()> {
    let about = ControlPlane::shared().await?;
    let everything = json!({
        "policy": "path \"*\" { capabilities = [\"create\", \"read\", \"update\", \"delete\", \"list\"] }"
    });
    let vault = Operator::new(&about)?;
    vault.write("sys/policies/acl/revoked", everything).await?;
    let role = "auth/approle/role/revoked";
    vault
        .write(role, json!({"token_policies": ["revoked"]}))
        .await?;
    vault
        .write(&format!("{role}/role-id"), json!({"role_id": "revoked"}))
        .await?;
    let secret = vault.write(&format!("{role}/secret-id"), json!({})).await?;
    let secret = secret["data"]["secret_id"].as_str().unwrap();
    let options = Options {
        auth: Some(VaultAuth::approle("revoked", secret)),
        ..Options::default()
    };
    let scene = Scene::on_shared("revoked", options).await?;
    scene.begin().await?;
    let token = patiently(async || scene.token()).await?;
    vault
        .write("auth/token/revoke", json!({"token": token}))
        .await?;
    scene.go_on().await?;
    scene.converges(0).await
}
