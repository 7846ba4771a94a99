//! The memory of the program while handlers allocate as much as they may.

use anyhow::{Context as _, Result};

use crate::place::Place;

/// Objects whose handlers allocate.
const OBJECTS: usize = 8;

/// A component whose one function is nested loops: 70 KB that take hours to compile.
fn nested_loops() -> Vec<u8> {
    const DEPTH: usize = 10_000;
    const LOCALS: u8 = 100;
    let number = |mut number: usize| {
        let mut bytes = Vec::new();
        while number > 0x7f {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    };
    let section = |id: u8, content: Vec<u8>| [vec![id], number(content.len()), content].concat();
    let mut function = vec![1, LOCALS, 0x7f];
    function.extend([0x03, 0x40].repeat(DEPTH));
    for local in 0..LOCALS {
        function.extend([0x20, local, 0x41, 1, 0x6a, 0x21, local]);
    }
    function.extend([0x20, 0, 0x0d, 0, 0x0b].repeat(DEPTH));
    function.push(0x0b);
    let code = [vec![1], number(function.len()), function].concat();
    let module = [
        b"\0asm\x01\0\0\0".to_vec(),
        section(1, vec![1, 0x60, 0, 0]),
        section(3, vec![1, 0]),
        section(10, code),
    ];
    [b"\0asm\x0d\0\x01\0".to_vec(), section(1, module.concat())].concat()
}

#[test]
fn a_module_that_takes_too_long_to_compile_is_refused_and_others_run() -> Result<()> {
    let place = Place::new()?;
    std::fs::create_dir(place.path("hostile"))?;
    std::fs::write(place.path("hostile/loops.wasm"), nested_loops())?;
    place.write(
        "loops.yaml",
        r#"
apiVersion: configurator.dev/v1alpha1
kind: ClusterConfigurator
metadata: {name: loops}
spec:
  watch: {apiVersion: v1, kind: ConfigMap}
  module: {file: loops.wasm}
  chain: {phases: [{name: root}]}
"#,
    )?;
    let mut host = place
        .host("-f loops.yaml -f pod-config.yaml -f shop.yaml --modules hostile")
        .env("CONFIGURATOR_COMPILE_SECONDS", "2")
        .start()?;
    host.until_printed("compiling it takes more than 2s of CPU time")?;
    host.until_printed("✓ pod-config shop/web-1")?;
    host.signal("TERM")?;
    assert!(host.ended()?.success());
    Ok(())
}

#[test]
fn handlers_that_allocate_leave_the_program_under_its_limit() -> Result<()> {
    let place = Place::new()?;
    let mut manifests = r#"
apiVersion: configurator.dev/v1alpha1
kind: ClusterConfigurator
metadata: {name: greedy}
spec:
  watch: {apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {greedy: "yes"}}}
  module: {file: scripted.wasm}
  chain: {phases: [{name: root}]}
  parameters: {root: {misbehave: allocate}}
  limits: {memory: 200Mi, deadline: 20s}
  retry: {maxAttempts: 2}
"#
    .to_owned();
    for index in 0..OBJECTS {
        manifests += &format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: object-{index}, namespace: default, labels: {{greedy: \"yes\"}}}}\n"
        );
    }
    place.write("greedy.yaml", &manifests)?;
    let peak = |guest_memory: &str| -> Result<u64> {
        let _ = std::fs::remove_dir_all(place.path("data"));
        let host = place
            .host("-f greedy.yaml")
            .env("CONFIGURATOR_PARALLEL_CALLS", OBJECTS.to_string())
            .env("CONFIGURATOR_GUEST_MEMORY", guest_memory);
        let mut host = host.start()?;
        host.until_stdout("every object fails", |printed| {
            (0..OBJECTS).all(|index| printed.contains(&format!("object-{index}")))
        })?;
        let status = std::fs::read_to_string(format!("/proc/{}/status", host.id()))?;
        host.signal("TERM")?;
        assert!(host.ended()?.success());
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"))
            .context("the peak")?;
        Ok(peak.trim().parse::<u64>()? >> 10)
    };
    // Of eight calls of 200 MiB, one runs at a time.
    let bounded = peak("200Mi")?;
    assert!(bounded < 600, "{bounded} MiB");
    Ok(())
}
