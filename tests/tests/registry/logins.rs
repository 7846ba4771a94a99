//! Registries that know who asks.

use anyhow::Result;
use configurator_host::module_source::oci::{About, Login};
use configurator_tests::registry::RegistryServer;
use serde_json::{Value, json};

use crate::bench::{Given, at, configurator, oci, options, runs, told, variant, world};

fn secret(name: &str, registry: &str, password: &str) -> Value {
    let auths = json!({"auths": {registry: {"username": "me", "password": password}}});
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
    world
        .apply(&secret("right", &server.address, "right"))
        .await?;
    with("right").await?;
    runs(&world, &variant(1)).await?;
    world.stop().await
}
