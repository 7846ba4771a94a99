//! Registries that know who asks.

use std::sync::Arc;

use anyhow::Result;
use configurator_host::module_source::oci::{About, Login};
use configurator_tests::registry::RegistryServer;
use serde_json::{Value, json};

use crate::bench::{
    Given, at, configurator, oci, options, runs, status as status_of, told, variant, world,
};
use crate::liars::{
    Asked, Said, challenge, host_of, manifest, module, ok, plain, registry, status,
};

fn secret(name: &str, registry: &str, password: &str) -> Value {
    let login = json!({"username": "me", "password": password});
    logins(name, &json!({registry: login}))
}

fn logins(name: &str, auths: &Value) -> Value {
    let auths = json!({"auths": auths});
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "shop", "name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": auths.to_string()},
    })
}

#[tokio::test]
async fn a_pull_secret_has_the_login() -> Result<()> {
    let server = RegistryServer::with_login("me", "right").await?;
    let name = "team/scripted:1";
    let stranger = at(&server, name, Login::anonymous());
    let refused = stranger.push(variant(1), &About::default()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("login"), "{refused}");
    at(&server, name, Login::basic("me", "right"))
        .push(variant(1), &About::default())
        .await?;

    let world = world(options(&server), Given::default()).await?;
    let mut module = oci(&server, name);
    world.apply(&configurator(&module)).await?;
    told(&world, ("False", "ModuleNotFound"), "it wants a login").await?;

    let mut with = async |secret: &str| {
        module["oci"]["pullSecret"] = json!({"namespace": "shop", "name": secret});
        world.apply(&configurator(&module)).await
    };
    with("none").await?;
    told(
        &world,
        ("False", "ModuleNotFound"),
        "the pull secret shop/none is not there",
    )
    .await?;
    world
        .apply(&secret("elsewhere", "ghcr.io", "right"))
        .await?;
    with("elsewhere").await?;
    told(&world, ("False", "ModuleNotFound"), "has no login at").await?;
    world
        .apply(&secret("wrong", &server.address, "wrong"))
        .await?;
    with("wrong").await?;
    told(&world, ("False", "ModuleNotFound"), "it wants a login").await?;
    world
        .apply(&json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "shop", "name": "opaque"},
            "stringData": {".dockerconfigjson": "{}"},
        }))
        .await?;
    with("opaque").await?;
    told(&world, ("False", "ModuleNotFound"), "is of another type").await?;
    // What a person has written into it by mistake stays there.
    let pasted = logins("pasted", &json!({&server.address: "czNjcmV0OnMzY3JldA=="}));
    world.apply(&pasted).await?;
    with("pasted").await?;
    told(&world, ("False", "ModuleNotFound"), "cannot be used").await?;
    let said = status_of(&world).await?.to_string();
    assert!(!said.contains("czNjcmV0"), "{said}");
    world
        .apply(&secret("right", &server.address, "right"))
        .await?;
    with("right").await?;
    runs(&world, &variant(1)).await?;
    world.stop().await
}

#[tokio::test]
async fn an_identity_token_is_exchanged() -> Result<()> {
    let (address, _) = registry(Arc::new(|asked: &Asked| {
        let body = String::from_utf8_lossy(&asked.body).into_owned();
        Said::This(match (&*asked.method, &*asked.path) {
            ("POST", "/token") => {
                let scope = "scope=repository%3Ateam%2Fscripted%3Apull";
                let wanted = [
                    scope,
                    "service=tests",
                    "grant_type=refresh_token",
                    "refresh_token=long%0Alived",
                ];
                match wanted.iter().all(|wanted| body.contains(wanted)) {
                    true => ok(br#"{"access_token": "short"}"#),
                    false => status("400 Bad Request"),
                }
            }
            _ if !asked.head.contains("authorization: bearer short") => challenge(&host_of(asked)),
            (_, path) if path.contains("/blobs/") => ok(&variant(1)),
            _ => ok(&manifest(&variant(1), variant(1).len())),
        })
    }))
    .await?;
    let options = plain(&[&address]);
    let world = world(options, Given::default()).await?;
    for (name, token) in [("old", "forgotten"), ("new", "long\nlived")] {
        let login = json!({&address: {"auth": "bWU6", "identitytoken": token}});
        world.apply(&logins(name, &login)).await?;
    }
    let mut module = module(&address);
    module["oci"]["pullSecret"] = json!({"namespace": "shop", "name": "old"});
    world.apply(&configurator(&module)).await?;
    told(&world, ("False", "ModuleNotFound"), "it wants a login").await?;
    module["oci"]["pullSecret"]["name"] = "new".into();
    world.apply(&configurator(&module)).await?;
    runs(&world, &variant(1)).await?;
    world.stop().await
}
