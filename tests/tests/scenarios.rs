//! Plays every scenario of the project, and shows what the simulator says when something is not as it should be.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::path::Path;

use anyhow::Result;
use configurator_guest::options::GuestOptions;
use configurator_host::simulator::Simulator;
use configurator_host::simulator::scenario::Scenario;
use configurator_tests::guests;
use expect_test::{Expect, expect};

fn simulator() -> Result<Simulator> {
    let cache = guests::folder()?
        .parent()
        .map(|cache| cache.join("modules"));
    Ok(Simulator::with_options(GuestOptions {
        parallel_calls: 1,
        module_cache: cache,
        ..GuestOptions::default()
    })?)
}

fn read(file: &Path) -> Result<Scenario> {
    let mut scenario = Scenario::read(file)?;
    scenario.modules.push(guests::folder()?);
    Ok(scenario)
}

#[test]
fn every_scenario_does_what_was_accepted() -> Result<()> {
    let simulator = simulator()?;
    let mut wrong = Vec::new();
    for (folder, at_least) in [("configurators", 16), ("tests/scenarios", 18)] {
        let files = Scenario::files(&guests::workspace().join(folder))?;
        assert!(files.len() >= at_least, "{folder} has lost scenarios");
        for file in files {
            let scenario = read(&file)?;
            for mistake in simulator.play(&scenario)?.mistakes(&scenario)? {
                wrong.push(format!("{}: {mistake}", scenario.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn a_scenario_plays_the_same_each_time() -> Result<()> {
    let simulator = simulator()?;
    let file = guests::workspace()
        .join("tests/scenarios/a-failed-phase-is-resent-without-what-went-through.yaml");
    let scenario = read(&file)?;
    let first = simulator.play(&scenario)?.golden()?;
    for _ in 0..5 {
        assert_eq!(simulator.play(&scenario)?.golden()?, first);
    }
    Ok(())
}

const SMALL: &str = r#"
configurator:
  apiVersion: configurator.dev/v1alpha1
  kind: ClusterConfigurator
  metadata: {name: small}
  spec:
    watch: {apiVersion: v1, kind: ConfigMap, fieldSelector: metadata.name=web}
    module: {file: scripted.wasm}
    chain: {phases: [{name: root}]}
    parameters:
      root:
        requests: [{name: made, put: {key: "made-{name}", value: "1"}}]
    capabilities:
      configstore: [{prefixes: [""], verbs: [update]}]
objects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}}
"#;

/// Plays the small scenario with a change, against the golden file of the unchanged one.
fn mistakes(change: impl FnOnce(String) -> String) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("small.yaml");
    let simulator = simulator()?;
    std::fs::write(&file, SMALL)?;
    let scenario = read(&file)?;
    assert!(simulator.play(&scenario)?.accept(&scenario)?, "it is new");
    assert!(
        !simulator.play(&scenario)?.accept(&scenario)?,
        "nothing is written when nothing changed"
    );
    std::fs::write(&file, change(SMALL.to_owned()))?;
    let scenario = match read(&file) {
        Ok(scenario) => scenario,
        Err(error) => {
            return Ok(error
                .to_string()
                .replace(&folder.path().display().to_string(), "FOLDER"));
        }
    };
    let told = match simulator.play(&scenario) {
        Ok(outcome) => outcome.mistakes(&scenario)?.join("\n"),
        Err(error) => error.to_string(),
    };
    let folder = folder.path().display().to_string();
    Ok(told.replace(&folder, "FOLDER"))
}

#[track_caller]
fn check(change: impl FnOnce(String) -> String, expected: Expect) {
    expected.assert_eq(&mistakes(change).unwrap());
}

#[test]
fn another_request_shows_as_a_difference() {
    check(
        |text| text.replace("value: \"1\"", "value: \"2\""),
        expect![[r#"
            what happened differs from what was accepted:
            --- FOLDER/small.golden.yaml
            +++ what happened
            @@ -1,6 +1,6 @@
             end:
               config:
            -    basic/made-web: "1"
            +    basic/made-web: "2"
               events: []
               objects: []
               secrets: []
            @@ -10,7 +10,7 @@
                 phase: root
                 requests:
                 - config:
            -        put basic made-web: "1"
            +        put basic made-web: "2"
                   name: made
               ends:
               - succeeded
        "#]],
    );
}

#[test]
fn what_was_expected_and_did_not_come_is_named() {
    check(
        |text| {
            text + "expect:
  objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}, data: {a: \"1\"}}]
  absent: [{apiVersion: v1, kind: ConfigMap, namespace: default, name: web}]
  config: {basic/made-web: null, basic/never: \"1\"}
  secrets: [none]
  events: [Nothing]
  failures: [default/web]
"
        },
        expect![[r#"
            ConfigMap default/web: .data is absent, not {"a":"1"}
            the object still exists: ConfigMap default/web
            the config store has basic/made-web: 1
            the config store has no basic/never
            the secret store has no none
            no Event Nothing was published
            default/web was not given up"#]],
    );
}

#[test]
fn a_scenario_that_cannot_be_played_says_why() {
    check(
        |text| text + "surprise: 1\n",
        expect![[r#"
            FOLDER/small.yaml: error: line 17 column 1: unknown field `surprise`, expected one of description, configurator, modules, start, limit, manifests, objects, config, secrets, http, extensions, faults, steps, expect
              --> <input>:17:1
               |
            15 | objects:
            16 |   - {apiVersion: v1, kind: ConfigMap, metadata: {name: web, names…
            17 | surprise: 1
               | ^ unknown field `surprise`, expected one of description, configurator, modules, start, limit, manifests, objects, config, secrets, http, extensions, faults, steps, expect"#]],
    );
    check(
        |text| text.replace("kind: ConfigMap, metadata", "kind: ConfigMop, metadata"),
        expect![[
            r#"FOLDER/small.yaml: cannot apply ConfigMop "web": the API has no kind ConfigMop in v1"#
        ]],
    );
    check(
        |text| text.replace("scripted.wasm", "absent.wasm"),
        expect![[r#"
            the Configurator does not run: the module FOLDER/absent.wasm cannot be read: No such file or directory (os error 2)
            what happened differs from what was accepted:
            --- FOLDER/small.golden.yaml
            +++ what happened
            @@ -1,18 +1,7 @@
             end:
            -  config:
            -    basic/made-web: "1"
            -  events: []
            +  config: {}
            +  events:
            +  - "ModuleNotFound: the module FOLDER/absent.wasm cannot be read: No such file or directory (os error 2)"
               objects: []
               secrets: []
            -runs:
            -- calls:
            -  - attempt: 1
            -    phase: root
            -    requests:
            -    - config:
            -        put basic made-web: "1"
            -      name: made
            -  ends:
            -  - succeeded
            -  objects:
            -  - Added default/web
            +runs: []
        "#]],
    );
    check(
        |text| {
            text.replace(
                "{file: scripted.wasm}",
                "{oci: {reference: 'ghcr.io/team/scripted:1'}}",
            )
        },
        expect![
            "FOLDER/small.yaml: spec.module: a scenario plays a module that is a file. Name it in the manifest beside the sources, `module: {file: …}`; where hosts have it from is for their manifest"
        ],
    );
    check(
        |text| text.replace("phases: [{name: root}]", "phases: []"),
        expect![[
            r#"FOLDER/small.yaml: cannot apply ClusterConfigurator "small": ClusterConfigurator.configurator.dev "small" is invalid: spec.chain.phases: Invalid value: 0: spec.chain.phases in body should have at least 1 items"#
        ]],
    );
    check(
        |text| text + "faults: [{request: made, kind: Strange}]\n",
        expect![[r#"
            FOLDER/small.yaml: error: line 17 column 32: "Strange" is no kind of fault; there are: RetryExceedLimit, ResourceGeneric, ResourceNotFound, ResourceConflict, ResourceMutation, ResourcePermission, UnsupportedResourceOperation, ApiServerUnavailable, ConfigstoreUnavailable, SecretstoreUnavailable, HttpUnavailable, ExtensionUnavailable, OutcomeUnknown, NotSent
              --> <input>:17:32
               |
            15 | objects:
            16 |   - {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}}
            17 | faults: [{request: made, kind: Strange}]
               |                                ^ "Strange" is no kind of fault; there are: RetryExceedLimit, ResourceGeneric, ResourceNotFound, ResourceConflict, ResourceMutation, ResourcePermission, UnsupportedResourceOperation, ApiServerUnavailable, ConfigstoreUnavailable, SecretstoreUnavailable, HttpUnavailable, ExtensionUnavailable, OutcomeUnknown, NotSent"#]],
    );
    check(
        |text| text + "limit: 5s\nsteps: [{wait: 10s}]\n",
        expect!["FOLDER/small.yaml: it did not settle within 5s of virtual time"],
    );
}

/// Each of several faults counts how often its request comes, also when another fault has met it.
#[test]
fn faults_of_one_request_count_each_for_itself() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("small.yaml");
    let faults = "faults:
- {request: made, kind: ResourceConflict, message: the first, times: 1}
- {request: made, kind: ResourceConflict, message: the third, after: 2, times: 1}
- {request: made, kind: ResourceConflict, message: the second, after: 1, times: 1}
";
    std::fs::write(&file, SMALL.to_owned() + faults)?;
    let outcome = simulator()?.play(&read(&file)?)?;
    let ends: Vec<String> = outcome
        .runs
        .iter()
        .flat_map(|run| run["ends"].as_array().cloned().unwrap_or_default())
        .map(|end| end.to_string())
        .collect();
    expect![[r#"
        "begins again: ResourceConflict: the first"
        "begins again: ResourceConflict: the second"
        "begins again: ResourceConflict: the third"
        "succeeded""#]]
    .assert_eq(&ends.join("\n"));
    Ok(())
}
