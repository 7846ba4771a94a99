//! Modules that must be signed, and registries that are allowed.

use std::sync::Arc;

use anyhow::Result;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use configurator_host::module_source::ModuleDirectory;
use configurator_host::module_source::oci::{Artifact, Login, SigningKey};
use configurator_tests::guests::digest;
use configurator_tests::registry::RegistryServer;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::json;

use crate::bench::{
    Given, at, configurator, oci, options, push, runs, told, variant, world, world_with,
};
use crate::liars::{Asked, Said, manifest, module, ok, plain, registry, status};

pub fn key() -> (SigningKey, String) {
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

/// Puts a bundle beside a manifest, as cosign does where a registry has no referrers.
async fn attach(server: &RegistryServer, manifest: &Artifact, bundle: &[u8]) -> Result<()> {
    let client = server.client()?;
    let repository = format!("https://{}/v2/team/scripted", server.address);
    for blob in [b"{}", bundle] {
        let begun = client.post(format!("{repository}/blobs/uploads/")).send();
        let begun = begun.await?.error_for_status()?;
        let place = begun.headers()["location"].to_str()?;
        let place = reqwest::Url::parse_with_params(place, [("digest", digest(blob))])?;
        let put = client.put(place).body(blob.to_vec()).send();
        put.await?.error_for_status()?;
    }
    let kind = "application/vnd.dev.sigstore.bundle.v0.3+json";
    let oci = |what: &str| format!("application/vnd.oci.image.{what}.v1+json");
    let bundled = json!({
        "schemaVersion": 2, "mediaType": oci("manifest"), "artifactType": kind,
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": kind, "digest": digest(bundle), "size": bundle.len()}],
        "subject": {"mediaType": oci("manifest"), "digest": manifest.digest(), "size": manifest.text().len()},
    });
    let bundled = bundled.to_string();
    let named = digest(bundled.as_bytes());
    let index = json!({
        "schemaVersion": 2, "mediaType": oci("index"),
        "manifests": [{"mediaType": oci("manifest"), "digest": named, "size": bundled.len(), "artifactType": kind}],
    });
    let tag = manifest.digest().replace(':', "-");
    for (name, what, text) in [
        (named, "manifest", bundled),
        (tag, "index", index.to_string()),
    ] {
        let put = client
            .put(format!("{repository}/manifests/{name}"))
            .header("content-type", oci(what))
            .body(text);
        put.send().await?.error_for_status()?;
    }
    Ok(())
}

/// A statement that a manifest is signed, in the envelope of a bundle.
fn bundle(key: &KeyPair, manifest: &Artifact) -> Vec<u8> {
    let kind = "application/vnd.in-toto+json";
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": manifest.digest().trim_start_matches("sha256:")}}],
        "predicateType": "https://sigstore.dev/cosign/sign/v1",
        "predicate": {},
    });
    let statement = statement.to_string();
    let signed = format!(
        "DSSEv1 {} {kind} {} {statement}",
        kind.len(),
        statement.len()
    );
    let signature = rcgen::SigningKey::sign(key, signed.as_bytes()).unwrap();
    let envelope = json!({
        "payload": BASE64_STANDARD.encode(statement),
        "payloadType": kind,
        "signatures": [{"sig": BASE64_STANDARD.encode(signature)}],
    });
    json!({"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": envelope})
        .to_string()
        .into_bytes()
}

#[tokio::test]
async fn a_module_may_be_signed_by_a_bundle() -> Result<()> {
    let server = RegistryServer::start().await?;
    let [ours, strange] = [(); 2].map(|()| KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap());
    let given = Given {
        policy: json!({"signers": [ours.public_key_pem()]}),
        ..Given::default()
    };
    let world = world(options(&server), given).await?;
    let name = "team/scripted:1";
    let pushed = push(&server, name, variant(1)).await?;
    attach(&server, &pushed, &bundle(&strange, &pushed)).await?;
    world.apply(&configurator(&oci(&server, name))).await?;
    told(
        &world,
        ("False", "ModuleNotFound"),
        "none of the 1 signatures",
    )
    .await?;
    attach(&server, &pushed, &bundle(&ours, &pushed)).await?;
    runs(&world, &variant(1)).await?;
    world.stop().await
}

#[tokio::test]
async fn a_signature_that_is_damaged_hides_no_other() -> Result<()> {
    let (ours, public) = key();
    let text = manifest(&variant(1), variant(1).len());
    let signature = ours.sign("anywhere", &digest(&text))?;
    let layer = |payload: &[u8]| {
        json!({
            "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json",
            "digest": digest(payload),
            "size": payload.len(),
            "annotations": {"dev.cosignproject.cosign/signature": signature.signature},
        })
    };
    let (payload, other) = (signature.payload.clone().into_bytes(), b"other");
    let signatures = json!({
        "schemaVersion": 2,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(b"{}"), "size": 2},
        "layers": [layer(b"gone"), layer(other), layer(&payload)],
    })
    .to_string();
    let (address, _) = registry(Arc::new(move |asked: &Asked| {
        let is = |bytes: &[u8]| asked.path.ends_with(&digest(bytes));
        Said::This(match &*asked.path {
            _ if is(&payload) => ok(&payload),
            _ if is(other) => ok(b"short"),
            _ if is(&variant(1)) => ok(&variant(1)),
            path if path.ends_with(".sig") => ok(signatures.as_bytes()),
            path if path.ends_with("/manifests/1") => ok(&text),
            _ => status("404 Not Found"),
        })
    }))
    .await?;
    let options = plain(&[&address]);
    let given = Given {
        policy: json!({"signers": [public]}),
        ..Given::default()
    };
    let world = world(options, given).await?;
    world.apply(&configurator(&module(&address))).await?;
    runs(&world, &variant(1)).await?;
    world.stop().await
}

#[tokio::test]
async fn what_a_registry_gave_is_no_file_and_in_no_config_map() -> Result<()> {
    let server = RegistryServer::start().await?;
    push(&server, "team/scripted:1", variant(1)).await?;
    let folder = tempfile::tempdir()?;
    let given = Given {
        copies: Some(folder.path()),
        ..Given::default()
    };
    let first = world(options(&server), given.clone()).await?;
    first
        .apply(&configurator(&oci(&server, "team/scripted:1")))
        .await?;
    runs(&first, &variant(1)).await?;
    first.stop().await?;

    // The operator allows the registry no longer.
    let given = Given {
        policy: json!({"registries": []}),
        ..given
    };
    let files = tempfile::tempdir()?;
    let files = ModuleDirectory::new(files.path());
    let world = world_with(options(&server), given, |builder, sources| {
        builder.modules(sources.files(files))
    })
    .await?;
    let mut pinned = oci(&server, "team/scripted:1");
    pinned["digest"] = digest(&variant(1)).into();
    world.apply(&configurator(&pinned)).await?;
    told(&world, ("False", "ModuleNotFound"), "the host's policy").await?;
    let file = json!({"file": "scripted.wasm", "digest": digest(&variant(1))});
    world.apply(&configurator(&file)).await?;
    told(&world, ("False", "ModuleNotFound"), "No such file").await?;
    let map =
        json!({"configMap": {"namespace": "shop", "name": "a"}, "digest": digest(&variant(1))});
    world.apply(&configurator(&map)).await?;
    told(&world, ("False", "ModuleNotFound"), "is not there").await?;
    world.stop().await
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
