//! What the program takes of memory while handlers allocate as much as they may.

use anyhow::{Context as _, Result};

use crate::place::Place;

/// Objects whose handlers allocate.
const OBJECTS: usize = 8;

#[test]
fn handlers_that_allocate_leave_the_program_under_its_limit() -> Result<()> {
    let place = Place::new()?;
    let mut manifests = r#"
apiVersion: configurator.dev/v1alpha1
kind: Configurator
metadata: {name: greedy}
spec:
  watch: {version: v1, kind: ConfigMap, labelSelector: greedy=yes}
  module: {file: scripted.wasm}
  phases: [{name: root}]
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
