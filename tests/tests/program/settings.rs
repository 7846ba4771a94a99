//! Settings, and what the program says of itself.

use anyhow::Result;
use configurator_tests::program::Program;
use expect_test::{Expect, expect};

use crate::place::Place;

/// In which form a run of these settings logs.
fn format_of(program: Program) -> Result<&'static str> {
    let output = program.output()?;
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout)?;
    Ok(match text.starts_with('{') {
        true => "json",
        false => "text",
    })
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() -> Result<()> {
    let place = Place::new()?;
    place.write("settings.toml", "log_format = \"json\"\n")?;
    let run = |arguments: &str| {
        place
            .program(
                "run",
                "-f pod-config.yaml --modules modules --until-settled",
            )
            .args(arguments)
    };
    let variable = "CONFIGURATOR_LOG_FORMAT";
    assert_eq!(format_of(run(""))?, "text");
    assert_eq!(format_of(run("--config settings.toml"))?, "json");
    assert_eq!(
        format_of(run("").env("CONFIGURATOR_CONFIG", "settings.toml"))?,
        "json"
    );
    assert_eq!(
        format_of(run("--config settings.toml").env(variable, "text"))?,
        "text"
    );
    assert_eq!(
        format_of(run("--config settings.toml --log-format json").env(variable, "text"))?,
        "json"
    );
    Ok(())
}

#[test]
fn variables_of_builds_are_no_settings() -> Result<()> {
    let place = Place::new()?;
    let run = place.program(
        "run",
        "-f pod-config.yaml --modules modules --until-settled",
    );
    let run = run
        .env("CONFIGURATOR_NODE_MODULES", "/node_modules")
        .env("CONFIGURATOR_PYTHON_VENV", "/venv");
    assert_eq!(format_of(run)?, "text");
    Ok(())
}

#[test]
fn a_mistake_in_the_settings_is_named_with_its_place() -> Result<()> {
    let place = Place::new()?;
    let folder = place.folder().canonicalize()?.display().to_string();
    let check = |program: Program, expected: Expect| {
        let output = program.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        expected.assert_eq(&String::from_utf8_lossy(&output.stderr).replace(&folder, "FOLDER"));
    };
    let files = [
        (
            "lissen = \"127.0.0.1:0\"",
            expect![[r#"
                error: FOLDER/settings.toml: lissen: unknown setting; did you mean listen?
            "#]],
        ),
        (
            "log_levle = \"info\"",
            expect![[r#"
                error: FOLDER/settings.toml: log_levle: unknown setting; did you mean log?
            "#]],
        ),
        (
            "[vault]\naddres = \"https://vault:8200\"",
            expect![[r#"
                error: FOLDER/settings.toml: vault.addres: unknown setting; did you mean address?
            "#]],
        ),
        (
            "colour = true",
            expect![[r#"
                error: FOLDER/settings.toml: colour: unknown setting; there are data_dir, listen, metrics_listen, modules, kubeconfig, in_cluster, etcd, sharding, namespaces, selector, vault, secret_key_file, secret_key, registries, module_copies, record, policy, http_inner_hosts, http_servers, http_idle_connections, http_idle_seconds, max_retry_after_seconds, max_status_size, max_pending_commands, command_ttl_seconds, state_retention_seconds, log_format, log, otlp_endpoint, parallel_calls, parallel_long_calls, background_work, guest_memory, answer_memory, parallel_compilations, compile_memory, compile_seconds, max_module_size, max_code_size, max_function_size, max_functions, module_cache, grace_seconds
            "#]],
        ),
        (
            "listen = 6480",
            expect![[r#"
            error: FOLDER/settings.toml: listen: invalid type: found signed int `6480`, expected socket address
        "#]],
        ),
        (
            "log_format = \"xml\"",
            expect![[r#"
            error: FOLDER/settings.toml: log_format: "xml" is none of text, json
        "#]],
        ),
        (
            "grace_seconds = -1",
            expect![[r#"
            error: FOLDER/settings.toml: grace_seconds: invalid value signed int `-1`, expected u64
        "#]],
        ),
        (
            "log = \"info,=\"",
            expect![[r#"
            error: "info,=" is no filter of log lines; try info,configurator=debug: invalid filter directive
        "#]],
        ),
        (
            "data_dir = ",
            expect![[r#"
            error: FOLDER/settings.toml: TOML parse error at line 1, column 12
              |
            1 | data_dir = 
              |            ^
        "#]],
        ),
    ];
    for (text, expected) in files {
        place.write("settings.toml", text)?;
        check(place.program("run", "--config settings.toml"), expected);
    }
    check(
        place.program("run", "--config gone.toml"),
        expect![[r#"
        error: the configuration file gone.toml does not exist
    "#]],
    );
    let variables = [
        (
            "CONFIGURATOR_LISSEN",
            "127.0.0.1:0",
            expect![[r#"
                error: CONFIGURATOR_LISSEN is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_LISTEN, or remove it
            "#]],
        ),
        (
            "CONFIGURATOR_ETCD__ENDPOINT",
            "https://127.0.0.1:1",
            expect![[r#"
                error: CONFIGURATOR_ETCD__ENDPOINT: unknown setting; did you mean endpoints?
            "#]],
        ),
        (
            "CONFIGURATOR_GRACE_SECONDS",
            "soon",
            expect![[r#"
            error: CONFIGURATOR_GRACE_SECONDS: invalid type: found string "soon", expected u64
        "#]],
        ),
        (
            "CONFIGURATOR_HTTP_INNER_HOSTS",
            "hooks.shop.svc = everything",
            expect![[r#"
                error: CONFIGURATOR_HTTP_INNER_HOSTS: "hooks.shop.svc = everything": "everything" is not an address, a network such as 10.0.0.0/8, or one of the classes private and shared; loopback, link-local and metadata addresses must be listed one by one
            "#]],
        ),
        (
            "CONFIGURATOR_POLICY",
            "gone.yaml",
            expect![[r#"
            error: cannot read the policy gone.yaml: No such file or directory (os error 2)
        "#]],
        ),
        (
            "CONFIGURATOR_KUBECONFIG",
            "gone",
            expect![[r#"
            error: cannot read gone: failed to read kubeconfig from '"gone"': No such file or directory (os error 2)
        "#]],
        ),
    ];
    for (name, value, expected) in variables {
        check(place.program("run", "").env(name, value), expected);
    }
    Ok(())
}

#[test]
fn a_variable_that_is_not_a_setting_is_ignored_with_a_warning() -> Result<()> {
    let place = Place::new()?;
    let run = |arguments: &str| {
        place
            .program(
                "run",
                "-f pod-config.yaml --modules modules --until-settled",
            )
            .args(arguments)
            .env("CONFIGURATOR_VERSION", "1.2.3")
    };
    let output = run("").output()?;
    assert!(output.status.success(), "{output:?}");
    let warning = "CONFIGURATOR_VERSION is not a setting and is ignored; the nearest setting is CONFIGURATOR_METRICS_LISTEN";
    let logged = String::from_utf8(output.stderr)?;
    assert!(logged.contains(warning), "{logged}");
    let printed = run("--log-format json").succeeds()?;
    assert!(printed.contains(warning), "{printed}");
    Ok(())
}

#[test]
fn help_begins_with_a_sentence() -> Result<()> {
    let place = Place::new()?;
    let mut sentences = String::new();
    for name in [
        "help",
        "run",
        "simulate",
        "validate",
        "inspect",
        "crds",
        "kubeconfig",
    ] {
        let text = match name {
            "help" => place.program(name, ""),
            _ => place.program(name, "--help"),
        }
        .succeeds()?;
        let (sentence, rest) = text.split_once("\n\n").unwrap();
        assert!(rest.starts_with("Usage: configurator"), "{text}");
        sentences += &format!("{name}: {sentence}\n");
    }
    expect![[r#"
        help: Runs Kubernetes controllers as sandboxed WebAssembly modules
        run: Run the host, on an embedded API and stores or on a cluster
        simulate: Test modules without a cluster: play scenarios against scripted servers in virtual time
        validate: Check Configurators and settings without running anything
        inspect: Show a module's handlers, imports, digest and size
        crds: Print the CustomResourceDefinitions of the host
        kubeconfig: Print the kubeconfig of the embedded API, or write it to a file
    "#]].assert_eq(&sentences);
    assert_eq!(
        Program::new("--version").succeeds()?,
        concat!("configurator ", env!("CARGO_PKG_VERSION"), "\n")
    );
    let output = Program::new("start").output()?;
    assert_eq!(output.status.code(), Some(2));
    expect![[r#"
        error: unrecognized subcommand 'start'

        Usage: configurator <COMMAND>

        For more information, try '--help'.
    "#]]
    .assert_eq(&String::from_utf8(output.stderr)?);
    Ok(())
}

#[test]
fn a_misspelt_policy_is_refused_before_it_allows_too_much() -> Result<()> {
    let place = Place::new()?;
    place.write(
        "policy.yaml",
        "kubernetes:\n  - {apiGroups: [\"\"], resources: [configmaps], verbs: [get], namespacs: [shop]}\n",
    )?;
    let output = place.program("run", "--policy policy.yaml").output()?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    expect![[r#"
        error: the policy policy.yaml does not have the form of spec.capabilities: spec.capabilities.kubernetes[0].namespacs: unknown field
    "#]].assert_eq(&String::from_utf8(output.stderr)?);
    Ok(())
}

#[test]
fn variables_of_a_service_of_this_name_are_left_alone() -> Result<()> {
    let place = Place::new()?;
    let program = place
        .program("run", "-f pod-config.yaml --until-settled")
        .env("CONFIGURATOR_SERVICE_HOST", "10.0.0.1")
        .env("CONFIGURATOR_PORT_80_TCP", "tcp://10.0.0.1:80")
        .env("CONFIGURATOR_MODULES", "nowhere:modules");
    let output = program.output()?;
    assert!(output.status.success(), "{output:?}");
    Ok(())
}
