use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::declaration::FlowSet;
use crate::resource::Configurator;
use crate::resource::flow::Flow;

/// What is said of a machine with a change.
#[track_caller]
fn check(change: impl FnOnce(&mut Value), expected: Expect) {
    let mut machine = json!({
        "phases": [
            {"name": "Work", "onDone": "Done", "onError": "Interrupted", "serial": [
                {"handler": "first"},
                {"name": "group", "parallel": [{"handler": "a"}, {"handler": "b"}]},
                {"flow": "attach"},
            ]},
            {"name": "Interrupted", "stable": true, "events": [{"when": "object.spec.go", "to": "Done"}]},
            {"name": "Done", "terminal": true},
        ],
        "flows": {"attach": {"serial": [{"handler": "attach"}, {"flow": "bind"}]}},
    });
    change(&mut machine);
    let resource: Configurator = serde_json::from_value(json!({
        "apiVersion": "configurator.dev/v1alpha1",
        "kind": "ClusterConfigurator",
        "metadata": {"name": "things"},
        "spec": {
            "watch": {"apiVersion": "example.org/v1", "kind": "Thing"},
            "module": {"file": "things.wasm"},
            "machine": machine,
        },
    }))
    .unwrap();
    let bind: Flow = serde_json::from_value(json!({
        "apiVersion": "configurator.dev/v1alpha1",
        "kind": "ClusterFlow",
        "metadata": {"name": "bind"},
        "spec": {
            "flowName": "bind",
            "recoverFromFirstStep": true,
            "steps": [{"stepName": "unbind"}, {"stepName": "bind", "className": "eip.Bind", "once": true}],
        },
    }))
    .unwrap();
    let flows = FlowSet::from_iter([bind]);
    let told = match crate::declaration::check(&resource, &flows) {
        Ok(configurator) => {
            let machine = configurator.machine.as_ref().unwrap().machine.clone();
            let handlers: Vec<String> = machine
                .handlers()
                .into_iter()
                .map(|(place, handler)| format!("{place}: {handler}"))
                .collect();
            handlers.join("\n")
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&told);
}

#[test]
fn trees_and_flows_become_nodes() {
    check(
        |_| {},
        expect![[r#"
        the node "Work/first": first
        the node "Work/group/a": a
        the node "Work/group/b": b
        the node "Work/attach/attach": attach
        the node "Work/attach/bind/unbind": unbind
        the node "Work/attach/bind/bind": eip.Bind"#]],
    );
}

#[test]
fn a_node_that_does_nothing_is_refused() {
    check(
        |machine| machine["phases"][0]["serial"][0] = json!({"name": "x"}),
        expect![
            "spec.machine.phases[0].serial[0]: no handler: say handler, serial, parallel or flow"
        ],
    );
    check(
        |machine| machine["phases"][0] = json!({"name": "Work", "onDone": "Done"}),
        expect!["spec.machine.phases[0]: no handler: say handler, serial, parallel or flow"],
    );
    check(
        |machine| machine["phases"][0]["serial"] = json!([]),
        expect!["spec.machine.phases[0].serial: invalid composite handler: it has no nodes"],
    );
    check(
        |machine| machine["phases"][0]["serial"][1]["parallel"] = json!([]),
        expect![
            "spec.machine.phases[0].serial[1].parallel: invalid composite handler: it has no nodes"
        ],
    );
    check(
        |machine| machine["flows"]["attach"] = json!({"serial": []}),
        expect![[
            r#"spec.machine.flows["attach"].serial: invalid composite handler: it has no nodes"#
        ]],
    );
    check(
        |machine| machine["flows"]["attach"] = json!({}),
        expect![[r#"spec.machine.flows["attach"]: a flow needs steps: say serial or steps"#]],
    );
    check(
        |machine| machine["phases"][0]["handler"] = json!("x"),
        expect![
            "spec.machine.phases[0].serial: a node is one of handler, serial, parallel and flow; this is handler and serial"
        ],
    );
    check(
        |machine| machine["phases"][0]["serial"][0] = json!({"handlr": "x"}),
        expect![
            "spec.machine.phases[0].serial[0]: unknown field `handlr`, expected one of `name`, `stepName`, `className`, `handler`, `serial`, `parallel`, `flow`, `once`, `description`, `view`, `parameters`, `retry`, `timeout`"
        ],
    );
}

#[test]
fn names_are_there_and_differ() {
    check(
        |machine| machine["phases"][0]["serial"][1]["name"] = json!(null),
        expect!["spec.machine.phases[0].serial[1].name: a node needs a name"],
    );
    check(
        |machine| machine["phases"][0]["serial"][1]["name"] = json!("first"),
        expect![[
            r#"spec.machine.phases[0].serial[1].name: two nodes beside each other are named "first"; each needs a name of its own"#
        ]],
    );
    check(
        |machine| machine["phases"][0]["serial"][1]["name"] = json!("a/b"),
        expect![[
            r#"spec.machine.phases[0].serial[1].name: the name "a/b" must not contain /, which separates names in a path"#
        ]],
    );
    check(
        |machine| machine["phases"][0]["name"] = json!("a/b"),
        expect![
            "spec.machine.phases[0].name: must not contain /, which separates the names of nodes in a path"
        ],
    );
}

#[test]
fn flows_exist_and_do_not_go_in_circles() {
    check(
        |machine| machine["phases"][0]["serial"][2]["flow"] = json!("none"),
        expect![[
            r#"spec.machine.phases[0].serial[2].flow: there is no flow "none", neither in spec.machine.flows nor as a Flow"#
        ]],
    );
    check(
        |machine| machine["flows"]["bind"] = json!({"serial": [{"flow": "attach"}]}),
        expect![[
            r#"spec.machine.flows["bind"].serial[0].flow: flows go round in a circle: attach → bind → attach"#
        ]],
    );
    check(
        |machine| {
            machine["flows"]["attach"]["recoverFrom"] = json!("FailedStep");
            machine["flows"]["attach"]["recoverFromFirstStep"] = json!(true);
        },
        expect![[
            r#"spec.machine.flows["attach"].recoverFromFirstStep: contradicts recoverFrom: leave one of them out"#
        ]],
    );
    check(
        |machine| machine["flows"]["attach"]["flowName"] = json!("other"),
        expect![[
            r#"spec.machine.flows["attach"].flowName: the flow is named "attach" by its key, and "other" here"#
        ]],
    );
    check(
        |machine| {
            let deep = (0..20).fold(
                json!({"handler": "x"}),
                |below, depth| json!({"name": format!("n{depth}"), "serial": [below]}),
            );
            machine["phases"][0]["serial"][0] = deep;
        },
        expect![
            "spec.machine.phases[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0]: trees and flows are nested deeper than 16"
        ],
    );
    check(
        |machine| {
            let many =
                (0..1001).map(|number| json!({"name": format!("n{number}"), "handler": "x"}));
            machine["phases"][0]["serial"] = many.collect();
        },
        expect![
            "spec.machine.phases[0].serial[999]: a phase has at most 1000 nodes, those of its flows included"
        ],
    );
}

#[test]
fn phases_lead_to_phases() {
    check(
        |machine| machine["phases"][0]["onDone"] = json!("None"),
        expect![[
            r#"spec.machine.phases[0].onDone: there is no phase "None"; there are Work, Interrupted, Done"#
        ]],
    );
    check(
        |machine| machine["phases"] = json!([]),
        expect!["spec.machine.phases: a machine needs at least one phase"],
    );
    check(
        |machine| machine["initialPhase"] = json!("None"),
        expect![[
            r#"spec.machine.initialPhase: there is no phase "None"; there are Work, Interrupted, Done"#
        ]],
    );
    check(
        |machine| machine["phases"][0]["onError"] = json!(null),
        expect![[
            r#"spec.machine.phases[1]: nothing leads to the phase "Interrupted"; where a handler names it in `next`, its phase must say so in `next`"#
        ]],
    );
    check(
        |machine| {
            machine["phases"][0]["onError"] = json!(null);
            machine["phases"][0]["next"] = json!(["Interrupted"]);
        },
        expect![[r#"
            the node "Work/first": first
            the node "Work/group/a": a
            the node "Work/group/b": b
            the node "Work/attach/attach": attach
            the node "Work/attach/bind/unbind": unbind
            the node "Work/attach/bind/bind": eip.Bind"#]],
    );
    check(
        |machine| machine["phases"][2]["handler"] = json!("x"),
        expect!["spec.machine.phases[2]: nothing is done in a terminal phase: it has no tree"],
    );
    check(
        |machine| machine["phases"][1]["onDone"] = json!("Done"),
        expect![
            "spec.machine.phases[1].onDone: nothing is done in a stable phase, so nothing follows from it"
        ],
    );
    check(
        |machine| machine["phases"][2]["stable"] = json!(true),
        expect!["spec.machine.phases[2].terminal: a phase is stable or terminal, not both"],
    );
    check(
        |machine| machine["phases"][0]["events"] = json!([{"when": "true", "to": "Done"}]),
        expect!["spec.machine.phases[0].events: only a stable phase has events: say stable: true"],
    );
    check(
        |machine| machine["phases"][1]["events"][0]["when"] = json!("object.spec =="),
        expect![[r#"
            spec.machine.phases[1].events[0].when: the expression cannot be compiled: ERROR: <input>:1:15: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
            | object.spec ==
            | ..............^"#]],
    );
    check(
        |machine| machine["phases"][1]["events"][0]["handler"] = json!("x"),
        expect!["spec.machine.phases[1].events[0].handler: say when or handler, not both"],
    );
}

#[test]
fn numbers_and_times_have_sense() {
    check(
        |machine| machine["phases"][0]["retry"] = json!({"threshold": 0}),
        expect![
            "spec.machine.phases[0].retry.threshold: must be at least 1: the first attempt counts"
        ],
    );
    check(
        |machine| machine["phases"][0]["timeout"] = json!("0s"),
        expect!["spec.machine.phases[0].timeout: must be longer than zero"],
    );
    check(
        |machine| machine["requeueAfter"] = json!("0s"),
        expect!["spec.machine.requeueAfter: must be longer than zero"],
    );
    check(
        |machine| machine["phases"][0]["once"] = json!(true),
        expect![
            "spec.machine.phases[0].once: is for a handler: say it where the requests are made"
        ],
    );
    check(
        |machine| machine["errorCodes"] = json!({"BUSY": {"action": "Remediate"}}),
        expect![[r#"spec.machine.errorCodes["BUSY"].handler: Remediate needs a handler"#]],
    );
    check(
        |machine| {
            machine["errorCodes"] =
                json!({"BUSY": {"action": "Remediate", "handler": "x", "attempts": 0}})
        },
        expect![[r#"spec.machine.errorCodes["BUSY"].attempts: must be at least 1"#]],
    );
    check(
        |machine| machine["errorCodes"] = json!({"BUSY": {"handler": "x"}}),
        expect![[r#"spec.machine.errorCodes["BUSY"].handler: a handler needs action: Remediate"#]],
    );
}

#[test]
fn the_state_is_in_fields_of_the_status() {
    check(
        |machine| machine["state"] = json!({"phasePath": ".spec.phase"}),
        expect![[
            r#"spec.machine.state.phasePath: ".spec.phase" is no field of the status such as .status.phase"#
        ]],
    );
    check(
        |machine| machine["state"] = json!({"statePath": ".status"}),
        expect![[
            r#"spec.machine.state.statePath: ".status" is no field of the status such as .status.phase"#
        ]],
    );
    check(
        |machine| {
            machine["state"] = json!({"statePath": ".status.x", "mementoPath": ".status.x.y"})
        },
        expect![
            "spec.machine.state.statePath: the phase, the state and the memento are different fields, none of them within another"
        ],
    );
}
