//! `configurator simulate --explore`: what a module does not stand is found, and one that stands everything is left in peace.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::fs;

use anyhow::Result;
use configurator_guest::options::GuestOptions;
use configurator_host::simulator::Simulator;
use configurator_host::simulator::explore::{Exploration, Explored, Finding, Tried};
use configurator_host::simulator::scenario::{ObjectName, Scenario, Step};
use configurator_tests::guests;
use configurator_tests::program::Program;
use expect_test::{Expect, expect};
use tempfile::TempDir;

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

/// A scenario of one ConfigMap, whose Configurator has these lines in its spec.
fn scenario(folder: &TempDir, spec: &str) -> Result<Scenario> {
    let spec: String = spec.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!(
        "configurator:
  apiVersion: configurator.dev/v1alpha1
  kind: ClusterConfigurator
  metadata: {{name: explored}}
  spec:
    watch: {{apiVersion: v1, kind: ConfigMap, fieldSelector: metadata.name=web}}
    module: {{file: scripted.wasm}}
    capabilities:
      configstore: [{{prefixes: [''], verbs: [get, update]}}]
      kubernetes: [{{apiGroups: [''], resources: [configmaps], namespaces: ['*'], verbs: [apply, get]}}]
{spec}
objects:
- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: web, namespace: default}}}}
"
    );
    let file = folder.path().join("explored.yaml");
    fs::write(&file, text)?;
    let mut scenario = Scenario::read(&file)?;
    scenario.modules.push(guests::folder()?);
    Ok(scenario)
}

fn told(explored: &Explored) -> String {
    let findings = explored.findings.iter().map(|finding| {
        let worlds = 1;
        Finding {
            worlds,
            ..finding.clone()
        }
        .to_string()
    });
    let entropy = explored.entropy.iter().map(ToString::to_string);
    findings
        .chain(entropy)
        .map(|one| format!("{one}\n"))
        .collect()
}

#[expect(clippy::needless_pass_by_value, reason = "as expect! gives it")]
fn check(spec: &str, found: Expect) {
    let folder = TempDir::new().unwrap();
    let scenario = scenario(&folder, spec).unwrap();
    let exploration = Exploration {
        max_calls: 300,
        ..Exploration::default()
    };
    let explored = simulator().unwrap().explore(&scenario, &exploration);
    found.assert_eq(&told(&explored.unwrap()));
}

#[test]
fn what_stands_everything_is_left_in_peace() -> Result<()> {
    let simulator = simulator()?;
    for name in ["a-pod-appears", "someone-else-was-faster"] {
        let file = format!("configurators/pod-config/scenarios/{name}.yaml");
        let mut scenario = Scenario::read(&guests::workspace().join(file))?;
        scenario.modules.push(guests::folder()?);
        let exploration = Exploration {
            max_calls: 600,
            ..Exploration::default()
        };
        let explored = simulator.explore(&scenario, &exploration)?;
        assert_eq!(told(&explored), "", "{name}");
        assert!(explored.singles.worlds > 20, "{:?}", explored.singles);
        assert!(explored.calls > 100, "{}", explored.calls);
    }
    Ok(())
}

/// Fails each request of a set in a scenario, one at a time and then some together, and holds the set to its end state.
fn check_set(name: &str) {
    let file = format!("tests/scenarios/{name}.yaml");
    let mut scenario = Scenario::read(&guests::workspace().join(file)).unwrap();
    scenario.modules.push(guests::folder().unwrap());
    let exploration = Exploration {
        max_calls: 450,
        ..Exploration::default()
    };
    let explored = simulator().unwrap().explore(&scenario, &exploration);
    let explored = explored.unwrap();
    assert_eq!(told(&explored), "", "seed {}", exploration.seed);
    let Tried { worlds, of } = explored.singles;
    assert!(worlds == of && of > 40, "{:?}", explored.singles);
}

#[test]
fn a_set_of_objects_converges() {
    check_set("a-set-is-repaired-changed-and-deleted");
}

#[test]
fn a_set_that_spans_the_stores_converges() {
    check_set("a-set-spans-the-stores");
}

#[test]
fn a_set_of_a_machine_converges() {
    check_set("a-machine-keeps-up-its-set");
}

#[test]
fn one_that_expects_no_error_traps() {
    check(
        "chain: {phases: [{name: root}, {name: next, handler: root}]}
parameters:
  root:
    requests: [{name: made, onError: catch, put: {key: made, value: '1'}}]
  next:
    ifError: {misbehave: panic}",
        expect![[r#"
            traps: handler root: the handler trapped: wasm trap: wasm `unreachable` instruction executed
            to see it, add to the scenario:
              faults:
              - request: made
                object: default/web
                times: 1
                kind: RetryExceedLimit
        "#]],
    );
}

#[test]
fn one_that_never_ends_loops() {
    check(
        "chain: {phases: [{name: root}, {name: next, handler: root}]}
limits: {deadline: 50ms}
parameters:
  root:
    requests: [{name: made, onError: catch, put: {key: made, value: '1'}}]
  next:
    ifError: {misbehave: loop}",
        expect![[r#"
            loops: handler root: it passed its deadline of 50ms
            to see it, add to the scenario:
              faults:
              - request: made
                object: default/web
                times: 1
                kind: RetryExceedLimit
        "#]],
    );
}

#[test]
fn one_that_leaves_things_of_earlier_attempts_never_converges() {
    check(
        "chain: {phases: [{name: root}]}
parameters:
  root:
    serial: true
    requests:
    - {name: mark, put: {key: 'mark-{attempt}', value: '1'}}
    - {name: made, put: {key: made, value: '1'}}",
        expect![[r#"
            never converges: the world ends otherwise, at config.basic/mark-2
            to see it, add to the scenario:
              faults:
              - request: mark
                object: default/web
                times: 1
                kind: ResourceNotFound
            never converges: the world ends otherwise, at config.basic/mark-3
            to see it, add to the scenario:
              faults:
              - request: made
                object: default/web
                times: 1
                kind: ResourceMutation
              - request: mark
                object: default/web
                after: 1
                times: 1
                kind: ResourceConflict
        "#]],
    );
}

#[test]
fn one_that_writes_what_is_new_each_time_writes_again() {
    check(
        "chain: {phases: [{name: root}]}
parameters:
  root:
    requests:
    - name: made
      apply:
        {apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: default}, data: {at: '{now}'}}",
        expect![[r#"
            never converges: the world ends otherwise, at objects.ConfigMap default/made.data.at
            to see it, add to the scenario:
              faults:
              - request: made
                object: default/web
                times: 1
                kind: ResourceConflict
                status: 409
              - request: made
                object: default/web
                after: 1
                times: 1
                kind: ApiServerUnavailable
                status: 503
            writes again: request made changes something each time that the host starts, though nothing else has changed
            handler root depends on the clock: requests.resourceRequests[0].operation.kubernetes.body.data.at
        "#]],
    );
}

#[test]
fn one_that_remembers_gives_something_else_for_the_same() {
    check(
        "chain: {phases: [{name: root}]}
instancePolicy: Reuse
parameters:
  root:
    requests: [{name: made, put: {key: made, value: '{calls}'}}]",
        expect![[r#"
            never converges: the world ends otherwise, at config.basic/made
            to see it, add to the scenario:
              faults:
              - request: made
                object: default/web
                times: 1
                kind: RetryExceedLimit
            differs: handler root gives something else for the same input: requests.resourceRequests[0].operation.config.operations[0].basic.value
            to see it, add to the scenario:
              faults:
              - request: made
                object: default/web
                times: 1
                kind: ResourceNotFound
        "#]],
    );
}

#[test]
fn what_depends_on_the_clock_or_on_chance_is_named() {
    check(
        "chain: {phases: [{name: root}, {name: next, handler: root}]}
parameters:
  root:
    requests: [{name: made, put: {key: made, value: '{now}'}}]",
        expect![[r#"
            never converges: the world ends otherwise, at config.basic/made
            to see it, add to the scenario:
              faults:
              - request: made
                object: default/web
                times: 1
                kind: ResourceConflict
              - request: made
                object: default/web
                after: 1
                times: 1
                kind: ConfigstoreUnavailable
            writes again: request made changes something each time that the host starts, though nothing else has changed
            handler root depends on the clock: requests.resourceRequests[0].operation.config.operations[0].basic.value
        "#]],
    );
    check(
        "chain: {phases: [{name: root}, {name: next, handler: root}]}
parameters:
  root:
    requests: [{name: made, put: {key: made, value: '{seed}'}}]",
        expect![[r#"
            handler root depends on chance: requests.resourceRequests[0].operation.config.operations[0].basic.value
        "#]],
    );
}

/// A fault that is gone has made something of which an object is given up ever after.
#[test]
fn one_that_gives_up_for_good_never_converges() {
    check(
        "chain: {phases: [{name: root}, {name: next, handler: root}, {name: look, handler: root}, {name: judge, handler: root}]}
parameters:
  root:
    requests: [{name: made, onError: catch, put: {key: made, value: '1'}}]
  next:
    ifError:
      requests:
      - name: spoilt
        apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: spoilt, namespace: default}, data: {it: is}}
  look:
    requests: [{name: look, onError: catch, getConfigMap: spoilt}]
  judge:
    fail: {message: it is spoilt, isFatal: true}
    ifError: {}",
        expect![[r#"
            never converges: default/web is given up, and so it is after another start of the host
            to see it, add to the scenario:
              faults:
              - request: made
                object: default/web
                times: 1
                kind: RetryExceedLimit
        "#]],
    );
}

/// What a fault has kept a handler from making, a step of the scenario cannot delete; and the world is played nevertheless.
#[test]
fn what_was_never_made_can_be_deleted() -> Result<()> {
    let folder = TempDir::new()?;
    let mut scenario = scenario(
        &folder,
        "chain: {phases: [{name: root}]}
parameters:
  root:
    requests:
    - name: made
      onError: catch
      apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: default}, data: {it: is}}",
    )?;
    scenario.steps.push(Step::Delete(ObjectName {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: "default".into(),
        name: "made".into(),
    }));
    let exploration = Exploration {
        max_calls: 300,
        ..Exploration::default()
    };
    let explored = simulator()?.explore(&scenario, &exploration)?;
    assert!(explored.unplayable.is_empty(), "{:?}", explored.unplayable);
    assert!(explored.singles.worlds > 10, "{:?}", explored.singles);
    assert_eq!(explored.singles.worlds, explored.singles.of);
    Ok(())
}

/// However few there may be, no more calls are made, with those that are made again.
#[test]
fn no_more_calls_are_made_than_there_may_be() -> Result<()> {
    let folder = TempDir::new()?;
    let scenario = scenario(
        &folder,
        "chain: {phases: [{name: root}, {name: next, handler: root}]}
parameters:
  root:
    requests: [{name: made, put: {key: made, value: '{seed}'}}]",
    )?;
    let simulator = simulator()?;
    let mut made = Vec::new();
    for max_calls in [0, 1, 2, 3, 5, 8, 13, 34, 89, 233] {
        let exploration = Exploration { seed: 1, max_calls };
        let explored = simulator.explore(&scenario, &exploration)?;
        assert!(explored.calls <= max_calls, "{explored:?} of {max_calls}");
        assert!(explored.unplayable.is_empty(), "{:?}", explored.unplayable);
        made.push(explored.singles.worlds + explored.pairs.worlds);
    }
    // The more there may be, the more is tried.
    assert!(made.is_sorted(), "{made:?}");
    assert!(made.last() > Some(&10), "{made:?}");
    Ok(())
}

/// The same seed tries the same, and finds the same.
#[test]
fn an_exploration_can_be_repeated() -> Result<()> {
    let folder = TempDir::new()?;
    let spec = "chain: {phases: [{name: root}]}
parameters:
  root:
    serial: true
    requests:
    - {name: mark, put: {key: 'mark-{attempt}', value: '1'}}
    - {name: made, put: {key: made, value: '1'}}";
    let scenario = scenario(&folder, spec)?;
    let exploration = Exploration {
        seed: 7,
        max_calls: 400,
    };
    let simulator = simulator()?;
    let first = simulator.explore(&scenario, &exploration)?;
    assert!(first.pairs.worlds > 0 && first.pairs.worlds < first.pairs.of);
    assert_eq!(simulator.explore(&scenario, &exploration)?, first);
    Ok(())
}

/// What is printed can be put into the scenario, in which the same is found then.
#[test]
fn the_program_explores_and_says_how_to_see_it() -> Result<()> {
    let folder = TempDir::new()?;
    let spec = "chain: {phases: [{name: root}, {name: next, handler: root}]}
parameters:
  root:
    requests: [{name: made, onError: catch, put: {key: made, value: '1'}}]
  next:
    ifError: {misbehave: panic}";
    let scenario = scenario(&folder, spec)?;
    let simulate = || {
        Program::new("simulate")
            .arg(&scenario.file)
            .arg("--modules")
            .arg(guests::folder().unwrap())
    };
    let accepted = simulate().arg("--update").output()?;
    assert!(accepted.status.success());
    let explored = simulate().args("--explore --seed 7 --calls 200").output()?;
    let text = String::from_utf8(explored.stdout)?;
    assert_eq!(explored.status.code(), Some(1), "{text}");
    assert!(text.contains("--seed 7"), "{text}");
    let (_, told) = text.split_once("add to the scenario:\n").unwrap();
    let fault: Vec<&str> = told
        .lines()
        .map(|line| line.strip_prefix("    ").unwrap_or_default())
        .take_while(|line| !line.is_empty())
        .collect();
    let mut with = fs::read_to_string(&scenario.file)?;
    with.push_str(&fault.join("\n"));
    fs::write(&scenario.file, with)?;
    let seen = simulate().output()?;
    let text = String::from_utf8(seen.stdout)?;
    assert!(text.contains("trapped"), "{text}");
    Ok(())
}
