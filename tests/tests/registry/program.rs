//! `configurator push` and `pull`.

use anyhow::Result;
use configurator_tests::guests;
use configurator_tests::guests::digest;
use configurator_tests::program::Program;
use configurator_tests::registry::RegistryServer;
use expect_test::{Expect, expect};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};

use crate::bench::scripted;

/// What the program says, with what differs from time to time left out.
fn check(server: &RegistryServer, program: Program, expected: Expect) -> Result<()> {
    let output = program.output()?;
    let text = [&*output.stdout, &*output.stderr].concat();
    let text = String::from_utf8(text)?.replace(&server.address, "REGISTRY");
    let lines = text
        .lines()
        .map(|line| match line.strip_prefix("manifest sha256:") {
            Some(_) => "manifest sha256:…",
            None => line,
        });
    let lines: Vec<&str> = lines.collect();
    expected.assert_eq(&(lines.join("\n") + "\n"));
    Ok(())
}

fn program(server: &RegistryServer, subcommand: &str, name: &str) -> Program {
    Program::new(subcommand)
        .arg(format!("{}/{name}", server.address))
        .arg("--ca")
        .arg(&server.ca)
        .without_env("REGISTRY_AUTH_FILE")
        .env("DOCKER_CONFIG", "/nonexistent")
}

#[tokio::test]
async fn a_module_that_was_pushed_is_pulled() -> Result<()> {
    let server = RegistryServer::start().await?;
    let folder = tempfile::tempdir()?;
    let module = guests::folder()?.join("scripted.wasm");
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let (private, public) = (folder.path().join("key"), folder.path().join("key.pub"));
    std::fs::write(&private, pair.serialize_pem())?;
    std::fs::write(&public, pair.public_key_pem())?;
    let push = Program::new("push")
        .arg(&module)
        .arg(format!("{}/team/scripted:1", server.address))
        .arg("--ca")
        .arg(&server.ca)
        .env("DOCKER_CONFIG", "/nonexistent");
    let output = push.output()?;
    let text = String::from_utf8(output.stdout)?;
    assert!(text.contains(&digest(&scripted())), "{text}");
    let pulled = program(&server, "pull", "team/scripted:1").folder(folder.path());
    assert!(pulled.output()?.status.success());
    assert_eq!(
        std::fs::read(folder.path().join("scripted.wasm"))?,
        scripted()
    );

    let strict = || {
        program(&server, "pull", "team/scripted:1")
            .arg("--verify-key")
            .arg(&public)
            .folder(folder.path())
    };
    check(
        &server,
        strict(),
        expect![[r"
            error: REGISTRY/team/scripted:1: none of its 0 signatures is by the owner of a key that was given
        "]],
    )?;
    let push = Program::new("push")
        .arg(&module)
        .arg(format!("{}/team/scripted:1", server.address))
        .arg("--ca")
        .arg(&server.ca)
        .arg("--sign-key")
        .arg(&private)
        .env("DOCKER_CONFIG", "/nonexistent");
    assert!(push.output()?.status.success());
    assert!(strict().output()?.status.success());
    Ok(())
}

/// The format: <https://tag-runtime.cncf.io/wgs/wasm/deliverables/wasm-oci-artifact/>.
#[tokio::test]
async fn what_was_pushed_is_a_wasm_artifact() -> Result<()> {
    let server = RegistryServer::start().await?;
    let module = guests::folder()?.join("scripted.wasm");
    let push = Program::new("push")
        .arg(&module)
        .arg(format!("{}/team/scripted:1", server.address))
        .arg("--ca")
        .arg(&server.ca)
        .env("DOCKER_CONFIG", "/nonexistent");
    assert!(push.output()?.status.success());
    let client = server.client()?;
    let get = async |path: &str| -> Result<Value> {
        let url = format!("https://{}/v2/team/scripted/{path}", server.address);
        let accept = "application/vnd.oci.image.manifest.v1+json";
        let answer = client.get(url).header("accept", accept).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    };
    let mut manifest = get("manifests/1").await?;
    let named = manifest["config"]["digest"].take();
    let mut config = get(&format!("blobs/{}", named.as_str().unwrap_or_default())).await?;
    // What differs from build to build.
    assert_eq!(
        manifest["layers"][0]["size"].take(),
        json!(scripted().len())
    );
    for pointer in [
        "/config/size",
        "/annotations/org.opencontainers.image.created",
        "/annotations/org.opencontainers.image.revision",
    ] {
        manifest.pointer_mut(pointer).map(Value::take);
    }
    config["created"].take();
    let shown = serde_json::to_string_pretty(&json!({"manifest": manifest, "config": config}))?;
    expect![[r#"
        {
          "config": {
            "architecture": "wasm",
            "component": {
              "exports": [
                "configurator:handler/handler@0.1.0"
              ],
              "imports": [
                "configurator:handler/log@0.1.0",
                "configurator:handler/types@0.1.0",
                "configurator:handler/requests@0.1.0"
              ],
              "target": null
            },
            "created": null,
            "layerDigests": [
              "MODULE"
            ],
            "os": "wasip2"
          },
          "manifest": {
            "annotations": {
              "org.opencontainers.image.created": null
            },
            "config": {
              "digest": null,
              "mediaType": "application/vnd.wasm.config.v0+json",
              "size": null
            },
            "layers": [
              {
                "digest": "MODULE",
                "mediaType": "application/wasm",
                "size": null
              }
            ],
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "schemaVersion": 2
          }
        }"#]]
    .assert_eq(&shown.replace(&digest(&scripted()), "MODULE"));
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_is_said_with_what_to_do() -> Result<()> {
    let server = RegistryServer::with_login("me", "right").await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("text.wasm"), "text")?;
    let push = |module: &str| {
        Program::new("push")
            .arg(module)
            .arg(format!("{}/team/scripted:1", server.address))
            .arg("--ca")
            .arg(&server.ca)
            .env("DOCKER_CONFIG", "/nonexistent")
            .folder(folder.path())
    };
    check(
        &server,
        push("none.wasm"),
        expect![[r"
        error: cannot read none.wasm: No such file or directory (os error 2)
    "]],
    )?;
    check(
        &server,
        push("."),
        expect![[r"
        error: cannot read .; a folder is built to a module by `configurator build`: Is a directory (os error 21)
    "]],
    )?;
    check(
        &server,
        push("text.wasm"),
        expect![[r"
        error: text.wasm is not a WebAssembly file: it does not begin with \0asm. A module is a component of the world configurator:handler/configurator@0.1.0
    "]],
    )?;
    let module = guests::folder()?.join("scripted.wasm");
    check(
        &server,
        push(&module.display().to_string()),
        expect![[r"
        error: REGISTRY/team/scripted:1: the registry does not know who asks, or does not let them: it wants a login that has the right; log in with `docker login REGISTRY`, or give --username
    "]],
    )?;
    check(
        &server,
        program(&server, "pull", "team/scripted:1").folder(folder.path()),
        expect![[r"
            error: REGISTRY/team/scripted:1: the registry does not know who asks, or does not let them: it wants a login that has the right; log in with `docker login REGISTRY`, or give --username
        "]],
    )?;
    Ok(())
}
