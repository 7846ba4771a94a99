//! Modules that must be signed, and registries that are allowed.

use anyhow::Result;
use configurator_host::module_source::oci::{Login, SigningKey};
use configurator_tests::registry::RegistryServer;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::json;

use crate::bench::{Given, at, configurator, oci, options, push, runs, told, variant, world};

fn key() -> (SigningKey, String) {
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let private = SigningKey::from_pem(&pair.serialize_pem(), "").unwrap();
    (private, pair.public_key_pem())
}

#[tokio::test]
async fn a_module_that_must_be_signed_is() -> Result<()> {
    let mut server = RegistryServer::start().await?;
    let (ours, our_public) = key();
    let (strange, _) = key();
    let name = "team/scripted:1";
    let folder = tempfile::tempdir()?;
    let given = Given {
        copies: Some(folder.path()),
        policy: json!({"signers": [our_public]}),
    };
    let one = world(options(&server), given.clone()).await?;
    let first = push(&server, name, variant(1)).await?;
    one.apply(&configurator(&oci(&server, name))).await?;
    told(&one, ("False", "ModuleNotFound"), "has no signature").await?;
    let registry = at(&server, name, Login::anonymous());
    registry.sign(&first, &strange).await?;
    told(
        &one,
        ("False", "ModuleNotFound"),
        "none of the 1 signatures",
    )
    .await?;
    registry.sign(&first, &ours).await?;
    runs(&one, &variant(1)).await?;

    // What takes its place must be signed as well; until then the last good one runs.
    let second = push(&server, name, variant(2)).await?;
    told(&one, ("False", "ModuleNotFound"), "has no signature").await?;
    runs(&one, &variant(1)).await?;
    registry.sign(&second, &ours).await?;
    runs(&one, &variant(2)).await?;
    one.stop().await?;

    // A copy is held to the policy of the day.
    server.end().await?;
    let other = world(options(&server), given).await?;
    other.apply(&configurator(&oci(&server, name))).await?;
    runs(&other, &variant(2)).await?;
    other.stop().await?;
    let (_, new_public) = key();
    let given = Given {
        copies: Some(folder.path()),
        policy: json!({"signers": [new_public]}),
    };
    let last = world(options(&server), given).await?;
    last.apply(&configurator(&oci(&server, name))).await?;
    told(
        &last,
        ("False", "ModuleNotFound"),
        "the registry cannot be asked now",
    )
    .await?;
    last.stop().await
}

#[tokio::test]
async fn a_registry_that_is_not_allowed_is_not_asked() -> Result<()> {
    let server = RegistryServer::start().await?;
    push(&server, "team/scripted:1", variant(1)).await?;
    push(&server, "other/scripted:1", variant(2)).await?;
    let given = Given {
        policy: json!({"registries": [format!("{}/team/*", server.address)]}),
        ..Given::default()
    };
    let world = world(options(&server), given).await?;
    world
        .apply(&configurator(&oci(&server, "other/scripted:1")))
        .await?;
    told(
        &world,
        ("False", "ModuleNotFound"),
        "the host's policy allows no modules of",
    )
    .await?;
    world
        .apply(&configurator(&oci(&server, "team/scripted:1")))
        .await?;
    runs(&world, &variant(1)).await?;
    world.stop().await
}
