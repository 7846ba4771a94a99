//! `configurator push` and `pull`.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use configurator_tests::guests;
use configurator_tests::guests::digest;
use configurator_tests::program::Program;
use configurator_tests::registry::RegistryServer;
use expect_test::{Expect, expect};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};

use crate::bench::{push, scripted};
use crate::liars::{Asked, Said, registry};

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
                "configurator:handler/requests@0.1.0",
                "configurator:handler/desired@0.1.0"
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

/// What `push` says with this registry.
fn pushed(address: &str, name: &str) -> Result<String> {
    let push = Program::new("push")
        .arg(guests::folder()?.join("scripted.wasm"))
        .arg(format!("{address}/{name}"))
        .arg("--plain-http")
        .without_env("REGISTRY_AUTH_FILE")
        .env("DOCKER_CONFIG", "/nonexistent");
    let output = push.output()?;
    let text = [&*output.stdout, &*output.stderr].concat();
    Ok(String::from_utf8(text)?.replace(address, "REGISTRY"))
}

fn answer(line: &str, headers: &str) -> Said {
    Said::This(format!("HTTP/1.1 {line}\r\n{headers}content-length: 0\r\n\r\n").into_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_goes_on_wherever_the_registry_says() -> Result<()> {
    let uploads = Arc::new(Mutex::new(Vec::new()));
    let seen = uploads.clone();
    let (address, _) = registry(Arc::new(move |asked: &Asked| match &*asked.method {
        "GET" => answer("200 OK", ""),
        "POST" => answer("202 Accepted", "location: ../../begun?at=1\r\n"),
        _ => {
            let place = asked.path.split("&digest=").next().unwrap_or_default();
            seen.lock()
                .unwrap()
                .push((place.to_owned(), asked.body.len()));
            answer("201 Created", "")
        }
    }))
    .await?;
    let text = pushed(&address, "team/scripted:1")?;
    assert!(text.contains(&digest(&scripted())), "{text}");
    let uploads = uploads.lock().unwrap();
    let places: Vec<&str> = uploads.iter().map(|(place, _)| &**place).collect();
    let begun = "/v2/team/scripted/begun?at=1";
    assert_eq!(places, [begun, begun, "/v2/team/scripted/manifests/1"]);
    assert_eq!(uploads[1].1, scripted().len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_registry_does_not_take_is_said_with_what_to_do() -> Result<()> {
    for (line, expected) in [
        (
            "500 Internal Server Error",
            expect![[r"
                error: REGISTRY/team/login-ui:1: the registry cannot be asked now: it answers 500; where that stays so, the registry may have no space left
            "]],
        ),
        (
            "413 Content Too Large",
            expect![[r"
                error: REGISTRY/team/login-ui:1: the registry, or a proxy before it, takes nothing of this size: it answers 413
            "]],
        ),
        (
            "404 Not Found",
            expect![[r"
                error: REGISTRY/team/login-ui:1: the registry has nothing of this name; the registry may want the repository to be made first
            "]],
        ),
        (
            "403 Forbidden",
            expect![[r"
                error: REGISTRY/team/login-ui:1: the registry does not let whoever asks do this: it wants a login that has the right; log in with `docker login REGISTRY`, or give --username
            "]],
        ),
        // An upload that goes on nowhere.
        (
            "202 Accepted",
            expect![[r"
                error: REGISTRY/team/login-ui:1: the registry takes an upload and does not say where it goes on
            "]],
        ),
    ] {
        let (address, _) = registry(Arc::new(move |asked: &Asked| match &*asked.method {
            "GET" => answer("200 OK", ""),
            _ => answer(line, ""),
        }))
        .await?;
        expected.assert_eq(&pushed(&address, "team/login-ui:1")?);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_in_the_way_here_is_said_with_what_to_do() -> Result<()> {
    let server = RegistryServer::start().await?;
    push(&server, "team/scripted:1", scripted()).await?;
    let folder = tempfile::tempdir()?;
    let full = Program::after("trap '' XFSZ; ulimit -f 0 || exit 9", "pull")
        .arg(format!("{}/team/scripted:1", server.address))
        .arg("--ca")
        .arg(&server.ca)
        .env("DOCKER_CONFIG", "/nonexistent")
        .folder(folder.path());
    check(
        &server,
        full,
        expect![[r"
            error: no space is left for scripted.wasm: free some, or name another place by --output: File too large (os error 27)
        "]],
    )?;
    let module = std::fs::File::create(folder.path().join("large.wasm"))?;
    module.set_len((128 << 20) + 1)?;
    let large = Program::new("push")
        .arg("large.wasm")
        .arg(format!("{}/team/scripted:1", server.address))
        .folder(folder.path());
    check(
        &server,
        large,
        expect![[r"
            error: large.wasm has 134217729 bytes; at most 134217728 are loaded
        "]],
    )?;
    // A key is no certificate.
    std::fs::write(
        folder.path().join("ca.pem"),
        KeyPair::generate()?.public_key_pem(),
    )?;
    let strange = Program::new("pull")
        .arg(format!("{}/team/scripted:1", server.address))
        .args("--ca ca.pem")
        .folder(folder.path());
    check(
        &server,
        strange,
        expect![[r"
            error: ca.pem: there is no certificate in it: one in PEM begins with -----BEGIN CERTIFICATE-----
        "]],
    )?;
    std::fs::write(
        folder.path().join("settings.toml"),
        "[registries]\nca = [\"ca.pem\"]\n",
    )?;
    let host = Program::new("run").args("--config settings.toml");
    let output = host.folder(folder.path()).output()?;
    let text = String::from_utf8(output.stderr)?;
    assert!(
        text.contains("cannot use registries.ca ca.pem: there is no certificate in it"),
        "{text}"
    );
    Ok(())
}
