//! The test cases of the document that the phase machine comes from, with its names and its expectations.

use super::*;

const INITIALIZE: &str = "初始化";
const PRECHECK: &str = "资源预检";
const MIGRATE: &str = "资源迁移";
const SUCCESS: &str = "迁移成功";
const PREFAILED: &str = "预检失败";
const FAILED: &str = "迁移失败";

fn resource(precheck: Option<Node>, migrate: Option<Node>) -> Machine {
    let mut machine = machine(vec![
        active(INITIALIZE, Some(leaf(INITIALIZE)), PRECHECK, PREFAILED),
        active(PRECHECK, precheck, MIGRATE, PREFAILED),
        active(MIGRATE, migrate, SUCCESS, FAILED),
        terminal(PREFAILED),
        terminal(FAILED),
        terminal(SUCCESS),
    ]);
    machine.requeue_after = Duration::from_secs(5);
    machine
}

/// Answers every entry until the phase is terminal. What is not named is done.
fn reconcile(machine: Machine, mut answer: impl FnMut(&Entry) -> End) -> Play {
    let mut play = Play::begun(machine);
    for _ in 0..1000 {
        let kind = &play.machine.phase(&play.state.phase).unwrap().kind;
        if matches!(kind, PhaseKind::Terminal) {
            return play;
        }
        match play.running.first_key_value() {
            Some((path, entry)) => {
                let (path, end) = (path.clone(), answer(entry));
                play.end(&path, end);
            }
            None => play.pass(5),
        }
    }
    panic!("it does not end in a terminal phase: {}", play.log);
}

fn all_done(_: &Entry) -> End {
    said(Outcome::Done)
}

fn prechecks() -> Node {
    let network = vec![leaf("私有网络预检"), leaf("子网预检")];
    parallel(
        PRECHECK,
        vec![
            leaf("实例预检"),
            parallel("网络预检", network),
            leaf("存储预检"),
        ],
    )
}

#[test]
fn with_no_handler_for_precheck_it_ends_in_prefailed() {
    let play = reconcile(resource(None, None), all_done);
    assert_eq!(play.state.phase, PREFAILED);
    let initialize = play.node(INITIALIZE);
    assert!(initialize.done);
    assert!(!initialize.failed);
    let precheck = play.node(PRECHECK);
    assert!(precheck.done);
    assert!(precheck.failed);
    assert!(precheck.fatal);
    assert_eq!(precheck.error().unwrap(), "no handler");
}

#[test]
fn with_a_composite_for_precheck_that_is_empty_it_ends_in_prefailed() {
    let play = reconcile(resource(Some(serial(PRECHECK, Vec::new())), None), all_done);
    assert_eq!(play.state.phase, PREFAILED);
    let precheck = play.node(PRECHECK);
    assert!(precheck.done);
    assert!(precheck.failed);
    assert!(precheck.fatal);
    assert_eq!(precheck.error().unwrap(), "invalid composite handler");
}

#[test]
fn with_a_parallel_composite_for_precheck_it_passes() {
    let play = reconcile(resource(Some(prechecks()), None), all_done);
    assert!(play.node(INITIALIZE).done);
    assert!(!play.node(INITIALIZE).failed);
    assert!(play.node(PRECHECK).done);
    assert!(!play.node(PRECHECK).failed);
    // There is nothing to migrate with.
    assert_eq!(play.state.phase, FAILED);
}

#[test]
fn with_a_composite_for_migrate_that_is_empty_it_ends_in_failed() {
    let migrate = serial(MIGRATE, Vec::new());
    let play = reconcile(resource(Some(prechecks()), Some(migrate)), all_done);
    assert_eq!(play.state.phase, FAILED);
    assert!(play.node(INITIALIZE).done);
    assert!(!play.node(INITIALIZE).failed);
    assert!(play.node(PRECHECK).done);
    assert!(!play.node(PRECHECK).failed);
}

fn migrations() -> Node {
    serial(
        MIGRATE,
        vec![leaf("实例迁移"), leaf("存储迁移"), leaf("网络迁移")],
    )
}

#[test]
fn a_serial_composite_succeeds() {
    let play = reconcile(resource(Some(prechecks()), Some(migrations())), all_done);
    for phase in [INITIALIZE, PRECHECK, MIGRATE] {
        assert!(play.node(phase).done, "{phase}");
        assert!(!play.node(phase).failed, "{phase}");
    }
    assert_eq!(play.state.phase, SUCCESS);
}

#[test]
fn a_serial_composite_fails_when_one_of_its_components_does() {
    let machine = resource(Some(prechecks()), Some(migrations()));
    let play = reconcile(machine, |entry| match entry.handler.as_str() {
        // An error that is none of the network is fatal there.
        "存储迁移" => failed("failed to migrate storage", true),
        _ => said(Outcome::Done),
    });
    assert!(play.node(MIGRATE).failed);
    assert!(!play.node("资源迁移/实例迁移").failed);
    let storage = play.node("资源迁移/存储迁移");
    assert!(storage.failed);
    assert!(storage.fatal);
    assert!(storage.done, "a fatal error means done and failed");
    let network = play.node("资源迁移/网络迁移");
    assert!(!network.failed);
    assert!(!network.done);
    assert_eq!(network.start_time, None, "it was never started");
    assert_eq!(play.state.phase, FAILED);
}

#[test]
fn a_handler_is_told_of_its_last_state() {
    let children = ["容器迁移", "实例迁移", "存储迁移", "网络迁移"];
    let migrate = serial(MIGRATE, children.into_iter().map(leaf).collect());
    let mut entered = Vec::new();
    let play = reconcile(resource(Some(prechecks()), Some(migrate)), |entry| {
        if children.contains(&entry.handler.as_str()) {
            entered.push(entry.handler.clone());
        }
        let last = entry.last.clone().unwrap_or_default();
        match entry.handler.as_str() {
            "容器迁移" => {
                assert!(!last.done);
                said(Outcome::Done)
            }
            "实例迁移" if last.start_time.is_none() => said(Outcome::Again(None)),
            "存储迁移" if last.failed => {
                assert!(!last.fatal);
                failed("failed to migrate storage", true)
            }
            // A failure of the network is never fatal.
            "存储迁移" => failed("connection closed", false),
            _ => said(Outcome::Done),
        }
    });
    assert!(play.node(MIGRATE).failed);
    let container = play.node("资源迁移/容器迁移");
    assert!(container.done);
    assert!(!container.failed);
    assert!(!play.node("资源迁移/实例迁移").failed);
    let storage = play.node("资源迁移/存储迁移");
    assert!(storage.failed);
    assert!(storage.fatal);
    let network = play.node("资源迁移/网络迁移");
    assert!(!network.failed);
    assert!(!network.done);
    assert_eq!(network.start_time, None);
    // What is done is not entered again.
    assert_eq!(
        entered,
        ["容器迁移", "实例迁移", "实例迁移", "存储迁移", "存储迁移"]
    );
}
