//! Subcommands that need no host: `inspect` and `validate`.

use anyhow::Result;
use expect_test::expect;

use crate::place::Place;

#[test]
fn inspect_shows_what_a_module_offers() -> Result<()> {
    let place = Place::new()?;
    let printed = place
        .program("inspect", "modules/pod_config.wasm")
        .succeeds()?;
    // The version of what made it, digest and size are of the build.
    let lines: Vec<&str> = printed.lines().skip(3).collect();
    assert!(
        printed.starts_with("made by wit-component ") && printed.contains("\ndigest  sha256:"),
        "{printed}"
    );
    expect![[r#"
        world   configurator:handler@0.1.0
        imports configurator:handler/log@0.1.0, configurator:handler/types@0.1.0, configurator:handler/requests@0.1.0, configurator:handler/desired@0.1.0
        handlers
          root (one object) Asks for the Pod's Node, Namespace, workload and stored configuration.
          write-config (one object) Writes the Pod's effective configuration, its secret and its ConfigMap.
          cleanup (one object) Asks for what is stored of a Pod that is gone.
          delete-config (one object) Deletes what is stored of a Pod that is gone."#]].assert_eq(&lines.join("\n"));
    Ok(())
}

#[test]
fn inspect_says_what_is_no_module_and_why() -> Result<()> {
    let place = Place::new()?;
    std::fs::write(place.path("core.wasm"), b"\0asm\x01\0\0\0")?;
    place.write("script.wasm", "#!/bin/sh\n")?;
    place.write("empty.wasm", "")?;
    place.write("text.wat", "(component)\n")?;
    let module = std::fs::read(place.path("modules/rust_hello.wasm"))?;
    std::fs::write(place.path("half.wasm"), &module[..module.len() / 2])?;
    let mut said = String::new();
    for name in [
        "core.wasm",
        "script.wasm",
        "empty.wasm",
        "text.wat",
        "gone.wasm",
    ] {
        said += &place.program("inspect", name).fails()?;
    }
    expect![[r#"
        error: core.wasm is a core WebAssembly module, not a component. Make it one with `wasm-tools component new`
        error: script.wasm is not a WebAssembly file: it does not begin with \0asm. A module is a component of the world configurator:handler/configurator@0.1.0
        error: empty.wasm is not a WebAssembly file: it is empty. A module is a component of the world configurator:handler/configurator@0.1.0
        error: text.wat is not a WebAssembly file: it seems to be WebAssembly text; convert it with `wasm-tools parse`. A module is a component of the world configurator:handler/configurator@0.1.0
        error: cannot read gone.wasm: No such file or directory (os error 2)
    "#]].assert_eq(&said);
    let half = place.program("inspect", "half.wasm").fails()?;
    assert!(
        half.starts_with("error: half.wasm is not a valid component: "),
        "{half}"
    );
    Ok(())
}

#[test]
fn validate_accepts_what_the_host_would_run() -> Result<()> {
    let place = Place::new()?;
    let hello =
        configurator_tests::guests::workspace().join("examples/rust-hello/configurator.yaml");
    std::fs::copy(hello, place.path("rust-hello.yaml"))?;
    expect![[r#"
        ✓ pod-config.yaml pod-config
        ✓ rust-hello.yaml rust-hello
    "#]]
    .assert_eq(
        &place
            .program(
                "validate",
                "pod-config.yaml rust-hello.yaml --modules modules",
            )
            .succeeds()?,
    );
    Ok(())
}

#[test]
fn validate_shows_every_mistake_with_its_place() -> Result<()> {
    let place = Place::new()?;
    let good = place.read("pod-config.yaml")?;
    let mistakes = [
        (
            "phases:",
            "pases:",
            expect![[r#"
                ✗ wrong.yaml pod-config
                  spec.chain.pases: unknown field
                  spec.deletion.pases: unknown field
                  spec.chain.phases: Required value
                  <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
            "#]],
        ),
        (
            "verbs: [apply]",
            "verbs: [aply]",
            expect![[r#"
                ✗ wrong.yaml pod-config
                  spec.capabilities.kubernetes[3].verbs[0]: Unsupported value: "aply": supported values: "get", "list", "patch", "delete", "create", "replace", "apply", "watch"
                  <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
            "#]],
        ),
        (
            "handler: write-config",
            "handler: rite-config",
            expect![[r#"
                ✗ wrong.yaml pod-config
                  phase "write" names the handler "rite-config", which the module lacks; it has: root, write-config, cleanup, delete-config
            "#]],
        ),
        (
            "{file: pod_config.wasm}",
            "{file: gone.wasm}",
            expect![[r#"
                ✗ wrong.yaml pod-config
                  spec.module: the module gone.wasm cannot be read: No such file or directory (os error 2)
            "#]],
        ),
        (
            "{file: pod_config.wasm}",
            "{file: ../pod_config.wasm}",
            expect![[r#"
                ✗ wrong.yaml pod-config
                  spec.module: module.file "../pod_config.wasm" must be a plain relative path inside the module directory
            "#]],
        ),
        (
            "by: Ledger",
            "by: Finalizer",
            expect![[r#"
                ✗ wrong.yaml pod-config
                  spec.deletion.by: Invalid value: a finalizer is never placed on Pods, Nodes or Namespaces: use deletion.by: Ledger
            "#]],
        ),
    ];
    for (right, wrong, expected) in mistakes {
        place.write("wrong.yaml", &good.replace(right, wrong))?;
        let program = place.program("validate", "wrong.yaml --modules modules");
        let output = program.output()?;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        expected.assert_eq(&String::from_utf8(output.stdout)?);
    }
    // What is elsewhere is looked at by a host.
    let elsewhere = good.replace(
        "{file: pod_config.wasm}",
        "{oci: {reference: 'ghcr.io/team/pod-config:1'}}",
    );
    place.write("elsewhere.yaml", &elsewhere)?;
    expect![[r#"
        ✓ elsewhere.yaml pod-config without its module, which is no file
    "#]]
    .assert_eq(&place.program("validate", "elsewhere.yaml").succeeds()?);
    place.write("configurator.yaml", &elsewhere)?;
    let folder = place.folder().canonicalize()?.display().to_string();
    let told = place
        .program("dev", ".")
        .fails()?
        .replace(&folder, "FOLDER");
    expect![[r#"
        error: FOLDER/configurator.yaml: spec.module has to be `{file: …}`, without a digest: `dev` runs what it builds. Where other hosts have the module from is for their manifest
    "#]]
    .assert_eq(&told);
    // One bad manifest among good ones.
    let both = place.program("validate", "pod-config.yaml wrong.yaml --modules modules");
    expect![[r#"
        ✓ pod-config.yaml pod-config
        ✗ wrong.yaml pod-config
          spec.deletion.by: Invalid value: a finalizer is never placed on Pods, Nodes or Namespaces: use deletion.by: Ledger
    "#]].assert_eq(&both.fails()?);
    expect![[r#"
        error: there is no Configurator in these files
    "#]]
    .assert_eq(&place.program("validate", "shop.yaml").fails()?);
    Ok(())
}

#[test]
fn validate_checks_settings() -> Result<()> {
    let place = Place::new()?;
    let shared =
        "in_cluster = true\netcd.endpoints = [\"https://etcd:2379\"]\nsharding.shards = 2\n";
    place.write("settings.toml", shared)?;
    let validate = |arguments: &str| place.program("validate", arguments);
    expect![[r#"
        ✗ settings.toml
          sharding.shards: hosts that share objects need one secret store, and the embedded one belongs to one host. Each host would generate secrets of its own, and reject the states that the others have sealed: set vault.addresses and vault.auth
    "#]].assert_eq(&validate("--config settings.toml").fails()?);
    expect![[r#"
        ✗ settings.toml
          sharding.shards: hosts that share objects need one secret store, and the embedded one belongs to one host. Each host would generate secrets of its own, and reject the states that the others have sealed: set vault.addresses and vault.auth
        ✓ pod-config.yaml pod-config
    "#]].assert_eq(&validate("--config settings.toml pod-config.yaml --modules modules").fails()?);
    let vault = "[vault]\naddresses = [\"https://vault:8200\"]\nauth = {method = \"kubernetes\", role = \"configurator\"}\n";
    place.write("settings.toml", &format!("{shared}{vault}"))?;
    expect![[r#"
        ✓ settings.toml
    "#]]
    .assert_eq(&validate("--config settings.toml").succeeds()?);
    place.write("settings.toml", "guest_memory = \"32Mi\"\n")?;
    expect![[r#"
        ✓ settings.toml
        ✗ pod-config.yaml pod-config
          spec.limits.memory is 64Mi, and the modules of this host have 32Mi of memory in all; lower spec.limits.memory, or raise the setting guest_memory of the host
    "#]].assert_eq(&validate("--config settings.toml pod-config.yaml --modules modules").fails()?);
    place.write("settings.toml", "polcy = \"policy.yaml\"\n")?;
    let folder = place.folder().canonicalize()?.display().to_string();
    let told = validate("--config settings.toml").fails()?;
    expect![[r#"
        ✗ settings.toml
          FOLDER/settings.toml: polcy: unknown setting; did you mean policy?
    "#]]
    .assert_eq(&told.replace(&folder, "FOLDER"));
    Ok(())
}
