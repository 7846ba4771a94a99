//! Modules in ConfigMaps.

use anyhow::Result;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use configurator_host::module_source::oci::RegistryOptions;
use configurator_tests::guests::digest;
use serde_json::{Value, json};

use crate::bench::{Given, configurator, runs, told, variant, world};

fn config_map(name: &str, data: Value) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "shop", "name": name},
    });
    object
        .as_object_mut()
        .unwrap()
        .extend(data.as_object().unwrap().clone());
    object
}

#[tokio::test]
async fn a_module_is_binary_data() -> Result<()> {
    let world = world(RegistryOptions::default(), Given::default()).await?;
    let module = |name: &str, digest: String| json!({"configMap": {"namespace": "shop", "name": name}, "digest": digest});
    let wanted = digest(&variant(1));
    world
        .apply(&configurator(&module("greeter", wanted.clone())))
        .await?;
    told(
        &world,
        ("False", "ModuleNotFound"),
        "the ConfigMap shop/greeter is not there",
    )
    .await?;
    world
        .apply(&config_map(
            "greeter",
            json!({"data": {"module.wasm": "x"}}),
        ))
        .await?;
    told(
        &world,
        ("False", "ModuleNotFound"),
        "a module is binaryData",
    )
    .await?;
    world
        .apply(&config_map(
            "named",
            json!({"binaryData": {"other.wasm": "eA=="}}),
        ))
        .await?;
    world
        .apply(&configurator(&module("named", wanted.clone())))
        .await?;
    told(&world, ("False", "ModuleNotFound"), "it has: other.wasm").await?;
    let bytes = BASE64_STANDARD.encode(variant(1));
    world
        .apply(&config_map(
            "right",
            json!({"binaryData": {"module.wasm": bytes}}),
        ))
        .await?;
    world
        .apply(&configurator(&module("right", digest(&variant(2)))))
        .await?;
    told(&world, ("False", "DigestMismatch"), &wanted).await?;
    world.apply(&configurator(&module("right", wanted))).await?;
    runs(&world, &variant(1)).await?;
    world.stop().await
}

#[tokio::test]
async fn one_without_a_digest_is_refused_and_so_are_two_sources() -> Result<()> {
    let world = world(RegistryOptions::default(), Given::default()).await?;
    for (module, why) in [
        (
            json!({"configMap": {"namespace": "shop", "name": "a"}}),
            "needs a digest",
        ),
        (
            json!({"file": "a.wasm", "oci": {"reference": "a/b"}}),
            "needs one source",
        ),
        (json!({}), "needs one source"),
    ] {
        let refused = world.apply(&configurator(&module)).await.unwrap_err();
        assert!(format!("{refused:#}").contains(why), "{refused:#}");
    }
    world.stop().await
}

#[tokio::test]
async fn who_wants_signatures_takes_none_of_a_config_map() -> Result<()> {
    let key = rcgen::KeyPair::generate()?.public_key_pem();
    let given = Given {
        policy: json!({"signers": [key]}),
        ..Given::default()
    };
    let world = world(RegistryOptions::default(), given).await?;
    let bytes = BASE64_STANDARD.encode(variant(1));
    world
        .apply(&config_map(
            "greeter",
            json!({"binaryData": {"module.wasm": bytes}}),
        ))
        .await?;
    let module = json!({"configMap": {"namespace": "shop", "name": "greeter"}, "digest": digest(&variant(1))});
    world.apply(&configurator(&module)).await?;
    told(&world, ("False", "ModuleNotFound"), "has no signature").await?;
    world.stop().await
}
