//! `configurator flow`: what machines are doing, and orders for them.

use anyhow::Result;
use configurator_tests::program::{PATIENCE, Running, until};
use expect_test::{Expect, expect};

use crate::place::Place;

const MACHINE: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: moves.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: moves, singular: move, kind: Move}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties:
              phase: {type: string}
              state: {type: object, x-kubernetes-preserve-unknown-fields: true}
              memento: {type: string}
---
apiVersion: configurator.dev/v1alpha1
kind: ClusterConfigurator
metadata: {name: moves}
spec:
  watch: {apiVersion: example.org/v1, kind: Move}
  module: {file: scripted.wasm}
  machine:
    phases:
    - name: PreFlight
      view: CheckList
      onDone: InFlight
      parallel:
      - {name: account, description: The key belongs to the account, handler: root}
      - {name: network, parallel: [{name: vpc, handler: root}, {name: subnets, handler: root}]}
    - name: InFlight
      onDone: Succeeded
      onError: Interrupted
      flow: move
    - {name: Interrupted, stable: true}
    - {name: Succeeded, terminal: true}
    errorCodes:
      BUSY: {guidance: "Detach the interface in the **console**.\nThen resume."}
---
apiVersion: example.org/v1
kind: Move
metadata: {name: web, namespace: default}
"#;

/// A flow as its authors wrote it down, with nothing around it.
const FLOW: &str = r#"
flowName: move
recoverFromFirstStep: false
steps:
- className: root
  stepName: pause
  parameters: {scripts: [{wait: {signals: [confirmed]}, progress: [25, "waits for a person"]}, {}]}
- className: root
  stepName: attach
  parameters: {script: {fail: {message: it is attached elsewhere, code: BUSY}}}
- className: root
  stepName: clean-up
"#;

struct Host {
    place: Place,
    _running: Running,
}

impl Host {
    fn start() -> Result<Self> {
        let place = Place::new()?;
        place.write("moves.yaml", MACHINE)?;
        place.write("flow.yaml", FLOW)?;
        let running = place
            .host("--listen 127.0.0.1:0 -f moves.yaml -f flow.yaml")
            .start()?;
        running.until_printed("the API is served")?;
        let kubeconfig = place.program("kubeconfig", "--data-dir data").succeeds()?;
        place.write("kubeconfig", &kubeconfig)?;
        Ok(Self {
            place,
            _running: running,
        })
    }

    fn flow(&self, arguments: &str) -> Result<String> {
        let program = self.place.program("flow", "--kubeconfig kubeconfig");
        program.args(arguments).env("USER", "ann").succeeds()
    }

    fn refused(&self, arguments: &str) -> Result<String> {
        let program = self.place.program("flow", "--kubeconfig kubeconfig");
        program.args(arguments).env("USER", "ann").fails()
    }

    fn until_listed(&self, part: &str) -> Result<String> {
        until(part, PATIENCE, || {
            // Until the definitions are there, there is nothing to be listed.
            let listed = self.flow("list").unwrap_or_default();
            Ok::<_, anyhow::Error>(listed.contains(part).then_some(listed))
        })
    }
}

#[track_caller]
fn check(text: &str, expected: Expect) {
    expected.assert_eq(&timeless(text));
}

/// The text without times.
fn timeless(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        words.clear();
        let mut parts = line.split(' ').peekable();
        while let Some(word) = parts.next() {
            let is_number = word.parse::<f64>().is_ok();
            let unit = parts.peek().copied().unwrap_or_default();
            let unit = unit.trim_end_matches(',').trim_end_matches(':');
            if is_number && matches!(unit, "ms" | "s" | "min" | "h" | "d") {
                let unit = parts.next().unwrap_or_default();
                words.push(
                    unit.replace(|letter: char| letter.is_ascii_alphabetic(), "")
                        .to_owned()
                        + "TIME",
                );
            } else if word.len() > 20 && word.contains('T') && word.starts_with("20") {
                words.push("THEN".to_owned());
            } else {
                words.push(word.to_owned());
            }
        }
        lines.push(words.join(" "));
    }
    lines.join("\n") + "\n"
}

#[test]
fn a_person_sees_what_a_machine_does_and_tells_it_what_to_do() -> Result<()> {
    let host = Host::start()?;
    check(
        &host.until_listed("waits")?,
        expect![[r#"
        CONFIGURATOR  OBJECT       PHASE     AT
        moves         default/web  InFlight  pause waits, 25 %
    "#]],
    );
    check(
        &host.flow("show moves web")?,
        expect![[r#"
        Move default/web
        ✓ PreFlight  TIME
          ✓ account The key belongs to the account  TIME
          ✓ network  TIME
            ✓ vpc  TIME
            ✓ subnets  TIME
        ▶ InFlight ◀  TIME
          ‖ pause  TIME · entry 2 · waits for signal confirmed
              █████░░░░░░░░░░░░░░░ 25 % waits for a person
          · attach
          · clean-up
    "#]],
    );
    check(
        &host.flow("signal moves default/web confirmed --data {\"ticket\":1}")?,
        expect![[r#"
            ✓ Signal default/web
        "#]],
    );
    check(
        &host.until_listed("failed")?,
        expect![[r#"
        CONFIGURATOR  OBJECT       PHASE        AT
        moves         default/web  Interrupted  attach failed
    "#]],
    );
    let shown = host
        .place
        .program("show", "--kubeconfig kubeconfig moves web")
        .succeeds()?;
    check(
        &shown,
        expect![[r#"
        Move default/web
        ✓ PreFlight  TIME
          ✓ account The key belongs to the account  TIME
          ✓ network  TIME
            ✓ vpc  TIME
            ✓ subnets  TIME
        ✗ InFlight  TIME
          ✓ pause  TIME · entry 2
          ✗ attach  TIME · failed 1 in a row
              it is attached elsewhere (BUSY)
              │ Detach the interface in the **console**.
              │ Then resume.
          · clean-up
        Interrupted ◀
        InFlight was broken off and can be resumed
        history
          ✗ move in InFlight, THEN :TIME it is attached elsewhere
    "#]],
    );
    check(
        &host.flow("list moves --unfinished")?,
        expect![[r#"
        CONFIGURATOR  OBJECT       PHASE        AT
        moves         default/web  Interrupted  attach failed
    "#]],
    );
    check(
        &host.refused("cancel moves web")?,
        expect![[r#"
        ✗ Cancel default/web: nothing is under way
    "#]],
    );
    check(
        &host.flow("resume moves web --from first-step")?,
        expect![[r#"
            ✓ Resume default/web
        "#]],
    );
    host.until_listed("waits")?;
    check(
        &host.flow("cancel moves web")?,
        expect![[r#"
        ✓ Cancel default/web
    "#]],
    );
    check(
        &host.flow("restart moves web")?,
        expect![[r#"
        ✓ Restart default/web
    "#]],
    );
    host.until_listed("waits")?;
    check(
        &host.flow("skip moves web InFlight/pause --reason confirmed")?,
        expect![[r#"
            ✓ Skip default/web
        "#]],
    );
    host.until_listed("failed")?;
    check(
        &host.flow("skip moves web InFlight/attach --reason by-hand")?,
        expect![[r#"
            ✓ Skip default/web
        "#]],
    );
    check(
        &host.flow("resume moves web")?,
        expect![[r#"
        ✓ Resume default/web
    "#]],
    );
    host.until_listed("Succeeded")?;
    check(
        &host.flow("watch moves web")?,
        expect![[r#"
        Move default/web
        ✓ PreFlight  TIME
          ✓ account The key belongs to the account  TIME
          ✓ network  TIME
            ✓ vpc  TIME
            ✓ subnets  TIME
        ✓ InFlight  TIME
          ⤼ pause  TIME · entry 2
              skipped: confirmed; skipped by kubernetes-admin (unverified)
          ⤼ attach  TIME
              skipped: by-hand; skipped by kubernetes-admin (unverified)
          ✓ clean-up  TIME
        Succeeded, the end ◀
        history
          ✓ move in InFlight, THEN TIME
          ✗ move in InFlight, THEN :TIME it is attached elsewhere
          ✗ move in InFlight, THEN :TIME cancelled by kubernetes-admin (unverified)
          ✗ move in InFlight, THEN :TIME it is attached elsewhere

    "#]],
    );
    assert_eq!(host.flow("list --unfinished")?.lines().count(), 1);
    check(
        &host.refused("show moves gone")?,
        expect![[r#"
        error: there is no Move default/gone
    "#]],
    );
    check(
        &host.refused("show others web")?,
        expect![[r#"
        error: there is no ClusterConfigurator "others"
    "#]],
    );
    Ok(())
}
