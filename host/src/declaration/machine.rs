//! From what a resource says of phases, trees and flows to a checked [`Machine`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use configurator_core::configurator::{MachineMode, StatePlace};
use configurator_core::document::Document;
use configurator_core::handler::View;
use configurator_core::machine::phase::{
    Check, ErrorCode, Machine, Phase, PhaseKind, Remedy, When,
};
use configurator_core::machine::tree::{
    Flow, Node, NodeKind, NodeRetry, RecoverFrom, WhenUnfinished,
};
use configurator_schema::cel::Condition;
use serde_json::Value;

use super::{DeclarationError, span, wrong};
use crate::resource::ConfiguratorSpec;
use crate::resource::machine::{
    ErrorActionSpec, ErrorCodeSpec, FlowSpec, ModuleUpgradeSpec, NodeRetrySpec, NodeSpec,
    PhaseSpec, RecoverFromSpec, StatePlaceSpec, StateSpec, ViewSpec, WhenUnfinishedSpec,
};

/// The wait before a failure is tried again that is not fatal, where none is declared.
const REQUEUE_AFTER: Duration = Duration::from_secs(60);
/// Trees and flows in one another.
const MAX_DEPTH: usize = 16;
/// Nodes of one phase, those of its flows included.
const MAX_NODES: usize = 1000;
/// Attempts of a remedy, where none are declared.
const REMEDY_ATTEMPTS: u32 = 3;

/// Flows that are resources of their own, by the names that they go by.
pub type Flows = BTreeMap<String, FlowSpec>;

/// Checks what a Configurator in mode Machine says of its phases.
pub(super) fn check(
    spec: &ConfiguratorSpec,
    shared: &Flows,
) -> Result<MachineMode, DeclarationError> {
    if spec.is_batch {
        return Err(wrong(
            "spec.isBatch",
            "in mode Machine each object has a state of its own: leave isBatch out",
        ));
    }
    let names: Vec<&str> = spec
        .phases
        .iter()
        .map(|phase| phase.name.as_str())
        .collect();
    let initial = match &spec.initial_phase {
        Some(initial) => initial.clone(),
        None => names.first().copied().unwrap_or_default().to_owned(),
    };
    to_phase("spec.initialPhase", &initial, &names)?;
    let requeue_after = match spec.requeue_after {
        Some(wait) => more_than_nothing("spec.requeueAfter", wait)?,
        None => REQUEUE_AFTER,
    };
    let trees = Trees {
        own: &spec.flows,
        shared,
    };
    // A flow that nothing uses is checked as well.
    for name in spec.flows.keys() {
        let mut growth = Growth::default();
        trees.flow(&format!("spec.flows[{name:?}]"), name, &mut growth)?;
    }
    let phases = spec
        .phases
        .iter()
        .enumerate()
        .map(|(index, phase)| trees.phase(&format!("spec.phases[{index}]"), phase, &names))
        .collect::<Result<Vec<Phase>, _>>()?;
    reached(spec, &initial)?;
    let error_codes = spec
        .error_codes
        .iter()
        .map(|(code, rule)| {
            let path = format!("spec.errorCodes[{code:?}]");
            Ok((code.clone(), error_code(&path, rule)?))
        })
        .collect::<Result<_, DeclarationError>>()?;
    Ok(MachineMode {
        machine: Arc::new(Machine::new(initial, requeue_after, phases, error_codes)),
        place: place(spec.state.as_ref())?,
        pins_modules: spec.module_upgrade == Some(ModuleUpgradeSpec::Pinned),
    })
}

/// Refuses in mode Chain what only mode Machine has.
pub(super) fn refuse(spec: &ConfiguratorSpec) -> Result<(), DeclarationError> {
    let only = |path: &str| {
        Err(wrong(
            path,
            "is for mode Machine only: say mode: Machine, or leave it out",
        ))
    };
    for (name, is_there) in [
        ("state", spec.state.is_some()),
        ("initialPhase", spec.initial_phase.is_some()),
        ("requeueAfter", spec.requeue_after.is_some()),
        ("moduleUpgrade", spec.module_upgrade.is_some()),
        ("flows", !spec.flows.is_empty()),
        ("errorCodes", !spec.error_codes.is_empty()),
    ] {
        if is_there {
            return only(&format!("spec.{name}"));
        }
    }
    for (index, phase) in spec.phases.iter().enumerate() {
        let chain = PhaseSpec {
            name: phase.name.clone(),
            handler: phase.handler.clone(),
            ..PhaseSpec::default()
        };
        if *phase != chain {
            let name = first_difference(phase, &chain);
            return only(&format!("spec.phases[{index}].{name}"));
        }
    }
    Ok(())
}

/// The name of a field that two phases do not have in common.
fn first_difference(phase: &PhaseSpec, other: &PhaseSpec) -> String {
    let [phase, other] =
        [phase, other].map(|phase| serde_json::to_value(phase).unwrap_or_default());
    let fields = phase.as_object().into_iter().flatten();
    let mut different = fields.filter(|(name, value)| other.get(name.as_str()) != Some(value));
    different
        .next()
        .map(|(name, _)| name.clone())
        .unwrap_or_default()
}

/// What a tree has grown to so far.
#[derive(Default)]
struct Growth {
    /// Flows that the node is in, outermost first.
    within: Vec<String>,
    depth: usize,
    nodes: usize,
}

struct Trees<'a> {
    own: &'a BTreeMap<String, FlowSpec>,
    shared: &'a Flows,
}

impl Trees<'_> {
    fn phase(
        &self,
        path: &str,
        spec: &PhaseSpec,
        names: &[&str],
    ) -> Result<Phase, DeclarationError> {
        let node = NodeSpec {
            name: Some(spec.name.clone()),
            handler: spec.handler.clone(),
            serial: spec.serial.clone(),
            parallel: spec.parallel.clone(),
            flow: spec.flow.clone(),
            once: spec.once,
            description: spec.description.clone(),
            view: spec.view,
            parameters: spec.parameters.clone(),
            retry: spec.retry.clone(),
            timeout: spec.timeout,
        };
        let has_work = [
            node.handler.is_some(),
            node.serial.is_some(),
            node.parallel.is_some(),
            node.flow.is_some(),
        ];
        let has_work = has_work.contains(&true);
        if spec.name.contains('/') {
            return Err(wrong(
                &format!("{path}.name"),
                "must not contain /, which separates the names of nodes in a path",
            ));
        }
        for (field, to) in [("onDone", &spec.on_done), ("onError", &spec.on_error)] {
            if let Some(to) = to {
                to_phase(&format!("{path}.{field}"), to, names)?;
            }
        }
        for (index, to) in spec.next.iter().enumerate() {
            to_phase(&format!("{path}.next[{index}]"), to, names)?;
        }
        let is_at_rest = match (spec.stable, spec.terminal) {
            (true, true) => {
                let message = "a phase is stable or terminal, not both";
                return Err(wrong(&format!("{path}.terminal"), message));
            }
            (true, false) => Some("stable"),
            (false, true) => Some("terminal"),
            (false, false) => None,
        };
        if let Some(kind) = is_at_rest {
            let at = |field: &str| format!("{path}.{field}");
            if has_work {
                let message = format!("nothing is done in a {kind} phase: it has no tree");
                return Err(wrong(path, &message));
            }
            for (field, is_there) in [
                ("onDone", spec.on_done.is_some()),
                ("onError", spec.on_error.is_some()),
                ("next", !spec.next.is_empty()),
            ] {
                if is_there {
                    let message =
                        format!("nothing is done in a {kind} phase, so nothing follows from it");
                    return Err(wrong(&at(field), &message));
                }
            }
        }
        if !spec.stable && !spec.events.is_empty() {
            let message = "only a stable phase has events: say stable: true";
            return Err(wrong(&format!("{path}.events"), message));
        }
        let kind = if spec.terminal {
            PhaseKind::Terminal
        } else if spec.stable {
            PhaseKind::Stable(checks(path, spec, names)?)
        } else {
            let tree = self.node(path, &node, &mut Growth::default())?;
            PhaseKind::Active {
                tree: Some(tree),
                on_done: spec.on_done.clone(),
                on_error: spec.on_error.clone(),
            }
        };
        Ok(Phase {
            name: spec.name.clone(),
            kind,
        })
    }

    fn node(
        &self,
        path: &str,
        spec: &NodeSpec,
        growth: &mut Growth,
    ) -> Result<Node, DeclarationError> {
        growth.nodes += 1;
        if growth.depth >= MAX_DEPTH {
            let message = format!("trees and flows are nested deeper than {MAX_DEPTH}");
            return Err(wrong(path, &message));
        }
        if growth.nodes > MAX_NODES {
            let message =
                format!("a phase has at most {MAX_NODES} nodes, those of its flows included");
            return Err(wrong(path, &message));
        }
        let own = [
            ("handler", spec.handler.is_some()),
            ("serial", spec.serial.is_some()),
            ("parallel", spec.parallel.is_some()),
            ("flow", spec.flow.is_some()),
        ];
        let own: Vec<&str> = own
            .iter()
            .filter(|(_, is)| *is)
            .map(|(name, _)| *name)
            .collect();
        match own.as_slice() {
            [_] => {}
            [] => {
                let message = "no handler: say handler, serial, parallel or flow";
                return Err(wrong(path, message));
            }
            [_, second, ..] => {
                let message = format!(
                    "a node is one of handler, serial, parallel and flow; this is {}",
                    own.join(" and ")
                );
                return Err(wrong(&format!("{path}.{second}"), &message));
            }
        }
        if spec.once && spec.handler.is_none() {
            let message = "is for a handler: say it where the requests are made";
            return Err(wrong(&format!("{path}.once"), message));
        }
        let kind = if let Some(handler) = &spec.handler {
            if handler.is_empty() {
                return Err(wrong(&format!("{path}.handler"), "must not be empty"));
            }
            NodeKind::Leaf {
                handler: handler.clone(),
                once: spec.once,
            }
        } else if let Some(flow) = &spec.flow {
            NodeKind::Flow(self.flow(&format!("{path}.flow"), flow, growth)?)
        } else if let Some(children) = &spec.serial {
            NodeKind::Serial(self.children(&format!("{path}.serial"), children, growth)?)
        } else {
            let children = spec.parallel.as_deref().unwrap_or_default();
            NodeKind::Parallel(self.children(&format!("{path}.parallel"), children, growth)?)
        };
        let name = spec
            .name
            .clone()
            .or_else(|| spec.handler.clone())
            .or_else(|| spec.flow.clone())
            .unwrap_or_default();
        if name.is_empty() || name.contains('/') {
            let message = match name.is_empty() {
                true => "a node needs a name".to_owned(),
                false => {
                    format!("the name {name:?} must not contain /, which separates names in a path")
                }
            };
            return Err(wrong(&format!("{path}.name"), &message));
        }
        let parameters = Value::Object(spec.parameters.clone().into_iter().collect());
        let parameters = (!spec.parameters.is_empty())
            .then(|| Document::of(&parameters))
            .transpose()
            .map_err(|error| wrong(&format!("{path}.parameters"), &error.to_string()))?;
        let timeout = spec
            .timeout
            .map(|timeout| more_than_nothing(&format!("{path}.timeout"), timeout))
            .transpose()?;
        Ok(Node {
            name,
            description: spec.description.clone(),
            view: match spec.view {
                ViewSpec::None => View::None,
                ViewSpec::CheckList => View::CheckList,
                ViewSpec::ObjectDetail => View::ObjectDetail,
            },
            parameters,
            retry: retry(&format!("{path}.retry"), &spec.retry)?,
            timeout,
            kind,
        })
    }

    fn children(
        &self,
        path: &str,
        specs: &[Value],
        growth: &mut Growth,
    ) -> Result<Vec<Node>, DeclarationError> {
        if specs.is_empty() {
            return Err(wrong(path, "invalid composite handler: it has no nodes"));
        }
        growth.depth += 1;
        let mut nodes: Vec<Node> = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let spec = NodeSpec::deserialize_value(spec)
                .map_err(|error| wrong(&path, &error.to_string()))?;
            let node = self.node(&path, &spec, growth)?;
            if nodes.iter().any(|other| other.name == node.name) {
                let message = format!(
                    "two nodes beside each other are named {:?}; each needs a name of its own",
                    node.name
                );
                return Err(wrong(&format!("{path}.name"), &message));
            }
            nodes.push(node);
        }
        growth.depth -= 1;
        Ok(nodes)
    }

    fn flow(
        &self,
        path: &str,
        name: &str,
        growth: &mut Growth,
    ) -> Result<Arc<Flow>, DeclarationError> {
        let own = self.own.get_key_value(name);
        let Some((key, spec)) = own.or_else(|| self.shared.get_key_value(name)) else {
            let message = format!("there is no flow {name:?}, neither in spec.flows nor as a Flow");
            return Err(wrong(path, &message));
        };
        if growth.within.contains(key) {
            let round = growth.within.iter().chain([key]).map(String::as_str);
            let round: Vec<&str> = round.collect();
            let message = format!("flows go round in a circle: {}", round.join(" → "));
            return Err(wrong(path, &message));
        }
        let at = match own {
            Some(_) => format!("spec.flows[{name:?}]"),
            None => format!("Flow {name:?}: spec"),
        };
        if let Some(other) = &spec.flow_name
            && own.is_some()
            && other != name
        {
            let message = format!("the flow is named {name:?} by its key, and {other:?} here");
            return Err(wrong(&format!("{at}.flowName"), &message));
        }
        let (field, steps) = match (&spec.serial, &spec.steps) {
            (Some(serial), None) => ("serial", serial.clone()),
            (None, Some(steps)) => ("steps", steps.iter().map(step).collect()),
            (None, None) => {
                return Err(wrong(&at, "a flow needs steps: say serial or steps"));
            }
            (Some(_), Some(_)) => {
                return Err(wrong(
                    &format!("{at}.steps"),
                    "say serial or steps, not both",
                ));
            }
        };
        let recover_from = match (spec.recover_from, spec.recover_from_first_step) {
            (Some(RecoverFromSpec::FailedStep), Some(true))
            | (Some(RecoverFromSpec::FirstStep), Some(false)) => {
                let message = "contradicts recoverFrom: leave one of them out";
                return Err(wrong(&format!("{at}.recoverFromFirstStep"), message));
            }
            (Some(RecoverFromSpec::FirstStep), _) | (None, Some(true)) => RecoverFrom::FirstStep,
            (Some(RecoverFromSpec::FailedStep) | None, _) => RecoverFrom::FailedStep,
        };
        growth.within.push(key.clone());
        let steps = self.children(&format!("{at}.{field}"), &steps, growth)?;
        growth.within.pop();
        Ok(Arc::new(Flow {
            name: key.clone(),
            recover_from,
            when_unfinished: match spec.when_unfinished {
                WhenUnfinishedSpec::Finish => WhenUnfinished::Finish,
                WhenUnfinishedSpec::Cancel => WhenUnfinished::Cancel,
                WhenUnfinishedSpec::Refuse => WhenUnfinished::Refuse,
            },
            steps,
        }))
    }
}

impl NodeSpec {
    /// A node that the schema of the API does not describe.
    fn deserialize_value(value: &Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(value.clone())
    }
}

/// A step that names no handler has that of its name.
fn step(step: &Value) -> Value {
    let mut step = step.clone();
    if let Value::Object(fields) = &mut step {
        const WORK: [&str; 5] = ["handler", "className", "serial", "parallel", "flow"];
        if !WORK.iter().any(|name| fields.contains_key(*name))
            && let Some(name) = fields.get("stepName").cloned()
        {
            fields.insert("handler".into(), name);
        }
    }
    step
}

fn checks(path: &str, spec: &PhaseSpec, names: &[&str]) -> Result<Vec<Check>, DeclarationError> {
    let checks = spec.events.iter().enumerate().map(|(index, event)| {
        let path = format!("{path}.events[{index}]");
        to_phase(&format!("{path}.to"), &event.to, names)?;
        let when = match (&event.when, &event.handler) {
            (Some(expression), None) => {
                Condition::compile(expression)
                    .map_err(|error| wrong(&format!("{path}.when"), &error.to_string()))?;
                When::Expression(expression.clone())
            }
            (None, Some(handler)) => When::Handler(handler.clone()),
            (None, None) => return Err(wrong(&path, "say when, or handler")),
            (Some(_), Some(_)) => {
                return Err(wrong(
                    &format!("{path}.handler"),
                    "say when or handler, not both",
                ));
            }
        };
        Ok(Check {
            when,
            to: event.to.clone(),
        })
    });
    checks.collect()
}

/// Every phase can be reached, or there is no use in it.
fn reached(spec: &ConfiguratorSpec, initial: &str) -> Result<(), DeclarationError> {
    let mut reached = BTreeSet::from([initial]);
    let mut ahead = vec![initial];
    while let Some(name) = ahead.pop() {
        let phase = spec.phases.iter().find(|phase| phase.name == name);
        let follow = phase.into_iter().flat_map(|phase| {
            let transitions = phase.on_done.iter().chain(&phase.on_error);
            let events = phase.events.iter().map(|event| &event.to);
            transitions.chain(&phase.next).chain(events)
        });
        for to in follow {
            if reached.insert(to) {
                ahead.push(to);
            }
        }
    }
    for (index, phase) in spec.phases.iter().enumerate() {
        if !reached.contains(phase.name.as_str()) {
            let message = format!(
                "nothing leads to the phase {:?}; where a handler names it in `next`, its phase must say so in `next`",
                phase.name
            );
            return Err(wrong(&format!("spec.phases[{index}]"), &message));
        }
    }
    Ok(())
}

fn to_phase(path: &str, to: &str, names: &[&str]) -> Result<(), DeclarationError> {
    if names.contains(&to) {
        return Ok(());
    }
    let message = format!("there is no phase {to:?}; there are {}", names.join(", "));
    Err(wrong(path, &message))
}

fn retry(path: &str, spec: &NodeRetrySpec) -> Result<NodeRetry, DeclarationError> {
    if spec.threshold == Some(0) {
        return Err(wrong(
            &format!("{path}.threshold"),
            "must be at least 1: the first attempt counts",
        ));
    }
    let delay = spec
        .delay
        .map(|delay| span(&format!("{path}.delay"), delay));
    Ok(NodeRetry {
        threshold: spec.threshold,
        delay: delay.transpose()?,
    })
}

fn error_code(path: &str, spec: &ErrorCodeSpec) -> Result<ErrorCode, DeclarationError> {
    let remedy = match (spec.action, &spec.handler) {
        (ErrorActionSpec::Manual, None) => Remedy::Manual,
        (ErrorActionSpec::Manual, Some(_)) => {
            let message = "a handler needs action: Remediate";
            return Err(wrong(&format!("{path}.handler"), message));
        }
        (ErrorActionSpec::Remediate, None) => {
            let message = "Remediate needs a handler";
            return Err(wrong(&format!("{path}.handler"), message));
        }
        (ErrorActionSpec::Remediate, Some(handler)) => Remedy::Handler {
            handler: handler.clone(),
            attempts: spec.attempts.unwrap_or(REMEDY_ATTEMPTS),
        },
    };
    if spec.attempts == Some(0) {
        return Err(wrong(&format!("{path}.attempts"), "must be at least 1"));
    }
    Ok(ErrorCode {
        guidance: spec.guidance.clone(),
        remedy,
    })
}

fn place(spec: Option<&StateSpec>) -> Result<StatePlace, DeclarationError> {
    let of_default = StateSpec::default();
    let spec = spec.unwrap_or(&of_default);
    match spec.place {
        StatePlaceSpec::ConfigMap => return Ok(StatePlace::ConfigMap),
        StatePlaceSpec::ConfigStore => return Ok(StatePlace::ConfigStore),
        StatePlaceSpec::Status => {}
    }
    let [phase, state, memento] = [
        ("spec.state.phasePath", &spec.phase_path),
        ("spec.state.statePath", &spec.state_path),
        ("spec.state.mementoPath", &spec.memento_path),
    ]
    .map(|(path, text)| status_field(path, text));
    let (phase, state, memento) = (phase?, state?, memento?);
    for (path, one, others) in [
        ("spec.state.statePath", &state, [&phase, &memento]),
        ("spec.state.mementoPath", &memento, [&phase, &state]),
    ] {
        let is_within = |other: &Vec<String>| other.starts_with(one) || one.starts_with(other);
        if others.into_iter().any(is_within) {
            let message = "the phase, the state and the memento are different fields, none of them within another";
            return Err(wrong(path, message));
        }
    }
    Ok(StatePlace::Status {
        phase,
        state,
        memento,
    })
}

/// Names of fields: `.status.phase`.
fn status_field(path: &str, text: &str) -> Result<Vec<String>, DeclarationError> {
    let names: Vec<String> = text
        .strip_prefix('.')
        .unwrap_or_default()
        .split('.')
        .map(str::to_owned)
        .collect();
    let is_plain = |name: &String| {
        !name.is_empty()
            && name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-')
    };
    let is_in_status = names.first().is_some_and(|first| first == "status");
    if names.len() < 2 || !is_in_status || !names.iter().all(is_plain) {
        let message = format!("{text:?} is no field of the status such as .status.phase");
        return Err(wrong(path, &message));
    }
    Ok(names)
}

fn more_than_nothing(
    path: &str,
    duration: kube::core::Duration,
) -> Result<Duration, DeclarationError> {
    let duration = span(path, duration)?;
    if duration.is_zero() {
        return Err(wrong(path, "must be longer than zero"));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::Flows;
    use crate::resource::Configurator;
    use crate::resource::machine::FlowSpec;

    /// What is said of a machine with a change.
    #[track_caller]
    fn check(change: impl FnOnce(&mut Value), expected: Expect) {
        let mut spec = json!({
            "mode": "Machine",
            "watch": {"group": "example.org", "version": "v1", "kind": "Thing"},
            "module": {"file": "things.wasm"},
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
        change(&mut spec);
        let resource: Configurator = serde_json::from_value(json!({
            "apiVersion": "configurator.dev/v1alpha1",
            "kind": "Configurator",
            "metadata": {"name": "things"},
            "spec": spec,
        }))
        .unwrap();
        let bind: FlowSpec = serde_json::from_value(json!({
            "flowName": "bind",
            "recoverFromFirstStep": true,
            "steps": [{"stepName": "unbind"}, {"stepName": "bind", "className": "eip.Bind", "once": true}],
        }))
        .unwrap();
        let flows = Flows::from([("bind".to_owned(), bind)]);
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
            |spec| spec["phases"][0]["serial"][0] = json!({"name": "x"}),
            expect!["spec.phases[0].serial[0]: no handler: say handler, serial, parallel or flow"],
        );
        check(
            |spec| spec["phases"][0] = json!({"name": "Work", "onDone": "Done"}),
            expect!["spec.phases[0]: no handler: say handler, serial, parallel or flow"],
        );
        check(
            |spec| spec["phases"][0]["serial"] = json!([]),
            expect!["spec.phases[0].serial: invalid composite handler: it has no nodes"],
        );
        check(
            |spec| spec["phases"][0]["serial"][1]["parallel"] = json!([]),
            expect![
                "spec.phases[0].serial[1].parallel: invalid composite handler: it has no nodes"
            ],
        );
        check(
            |spec| spec["flows"]["attach"] = json!({"serial": []}),
            expect![[r#"spec.flows["attach"].serial: invalid composite handler: it has no nodes"#]],
        );
        check(
            |spec| spec["flows"]["attach"] = json!({}),
            expect![[r#"spec.flows["attach"]: a flow needs steps: say serial or steps"#]],
        );
        check(
            |spec| spec["phases"][0]["handler"] = json!("x"),
            expect![
                "spec.phases[0].serial: a node is one of handler, serial, parallel and flow; this is handler and serial"
            ],
        );
        check(
            |spec| spec["phases"][0]["serial"][0] = json!({"handlr": "x"}),
            expect![
                "spec.phases[0].serial[0]: unknown field `handlr`, expected one of `name`, `stepName`, `className`, `handler`, `serial`, `parallel`, `flow`, `once`, `description`, `view`, `parameters`, `retry`, `timeout`"
            ],
        );
    }

    #[test]
    fn names_are_there_and_differ() {
        check(
            |spec| spec["phases"][0]["serial"][1]["name"] = json!(null),
            expect!["spec.phases[0].serial[1].name: a node needs a name"],
        );
        check(
            |spec| spec["phases"][0]["serial"][1]["name"] = json!("first"),
            expect![[
                r#"spec.phases[0].serial[1].name: two nodes beside each other are named "first"; each needs a name of its own"#
            ]],
        );
        check(
            |spec| spec["phases"][0]["serial"][1]["name"] = json!("a/b"),
            expect![[
                r#"spec.phases[0].serial[1].name: the name "a/b" must not contain /, which separates names in a path"#
            ]],
        );
        check(
            |spec| spec["phases"][0]["name"] = json!("a/b"),
            expect![
                "spec.phases[0].name: must not contain /, which separates the names of nodes in a path"
            ],
        );
    }

    #[test]
    fn flows_exist_and_do_not_go_in_circles() {
        check(
            |spec| spec["phases"][0]["serial"][2]["flow"] = json!("none"),
            expect![[
                r#"spec.phases[0].serial[2].flow: there is no flow "none", neither in spec.flows nor as a Flow"#
            ]],
        );
        check(
            |spec| spec["flows"]["bind"] = json!({"serial": [{"flow": "attach"}]}),
            expect![[
                r#"spec.flows["bind"].serial[0].flow: flows go round in a circle: attach → bind → attach"#
            ]],
        );
        check(
            |spec| {
                spec["flows"]["attach"]["recoverFrom"] = json!("FailedStep");
                spec["flows"]["attach"]["recoverFromFirstStep"] = json!(true);
            },
            expect![[
                r#"spec.flows["attach"].recoverFromFirstStep: contradicts recoverFrom: leave one of them out"#
            ]],
        );
        check(
            |spec| spec["flows"]["attach"]["flowName"] = json!("other"),
            expect![[
                r#"spec.flows["attach"].flowName: the flow is named "attach" by its key, and "other" here"#
            ]],
        );
        check(
            |spec| {
                let deep = (0..20).fold(
                    json!({"handler": "x"}),
                    |below, depth| json!({"name": format!("n{depth}"), "serial": [below]}),
                );
                spec["phases"][0]["serial"][0] = deep;
            },
            expect![
                "spec.phases[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0].serial[0]: trees and flows are nested deeper than 16"
            ],
        );
        check(
            |spec| {
                let many =
                    (0..1001).map(|number| json!({"name": format!("n{number}"), "handler": "x"}));
                spec["phases"][0]["serial"] = many.collect();
            },
            expect![
                "spec.phases[0].serial[999]: a phase has at most 1000 nodes, those of its flows included"
            ],
        );
    }

    #[test]
    fn phases_lead_to_phases() {
        check(
            |spec| spec["phases"][0]["onDone"] = json!("None"),
            expect![[
                r#"spec.phases[0].onDone: there is no phase "None"; there are Work, Interrupted, Done"#
            ]],
        );
        check(
            |spec| spec["initialPhase"] = json!("None"),
            expect![[
                r#"spec.initialPhase: there is no phase "None"; there are Work, Interrupted, Done"#
            ]],
        );
        check(
            |spec| spec["phases"][0]["onError"] = json!(null),
            expect![[
                r#"spec.phases[1]: nothing leads to the phase "Interrupted"; where a handler names it in `next`, its phase must say so in `next`"#
            ]],
        );
        check(
            |spec| {
                spec["phases"][0]["onError"] = json!(null);
                spec["phases"][0]["next"] = json!(["Interrupted"]);
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
            |spec| spec["phases"][2]["handler"] = json!("x"),
            expect!["spec.phases[2]: nothing is done in a terminal phase: it has no tree"],
        );
        check(
            |spec| spec["phases"][1]["onDone"] = json!("Done"),
            expect![
                "spec.phases[1].onDone: nothing is done in a stable phase, so nothing follows from it"
            ],
        );
        check(
            |spec| spec["phases"][2]["stable"] = json!(true),
            expect!["spec.phases[2].terminal: a phase is stable or terminal, not both"],
        );
        check(
            |spec| spec["phases"][0]["events"] = json!([{"when": "true", "to": "Done"}]),
            expect!["spec.phases[0].events: only a stable phase has events: say stable: true"],
        );
        check(
            |spec| spec["phases"][1]["events"][0]["when"] = json!("object.spec =="),
            expect![[r#"
                spec.phases[1].events[0].when: the expression cannot be compiled: ERROR: <input>:1:15: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
                | object.spec ==
                | ..............^"#]],
        );
        check(
            |spec| spec["phases"][1]["events"][0]["handler"] = json!("x"),
            expect!["spec.phases[1].events[0].handler: say when or handler, not both"],
        );
    }

    #[test]
    fn numbers_and_times_have_sense() {
        check(
            |spec| spec["phases"][0]["retry"] = json!({"threshold": 0}),
            expect!["spec.phases[0].retry.threshold: must be at least 1: the first attempt counts"],
        );
        check(
            |spec| spec["phases"][0]["timeout"] = json!("0s"),
            expect!["spec.phases[0].timeout: must be longer than zero"],
        );
        check(
            |spec| spec["requeueAfter"] = json!("0s"),
            expect!["spec.requeueAfter: must be longer than zero"],
        );
        check(
            |spec| spec["phases"][0]["once"] = json!(true),
            expect!["spec.phases[0].once: is for a handler: say it where the requests are made"],
        );
        check(
            |spec| spec["errorCodes"] = json!({"BUSY": {"action": "Remediate"}}),
            expect![[r#"spec.errorCodes["BUSY"].handler: Remediate needs a handler"#]],
        );
        check(
            |spec| {
                spec["errorCodes"] =
                    json!({"BUSY": {"action": "Remediate", "handler": "x", "attempts": 0}})
            },
            expect![[r#"spec.errorCodes["BUSY"].attempts: must be at least 1"#]],
        );
        check(
            |spec| spec["errorCodes"] = json!({"BUSY": {"handler": "x"}}),
            expect![[r#"spec.errorCodes["BUSY"].handler: a handler needs action: Remediate"#]],
        );
        check(
            |spec| spec["isBatch"] = json!(true),
            expect![
                "spec.isBatch: in mode Machine each object has a state of its own: leave isBatch out"
            ],
        );
    }

    #[test]
    fn the_state_is_in_fields_of_the_status() {
        check(
            |spec| spec["state"] = json!({"phasePath": ".spec.phase"}),
            expect![[
                r#"spec.state.phasePath: ".spec.phase" is no field of the status such as .status.phase"#
            ]],
        );
        check(
            |spec| spec["state"] = json!({"statePath": ".status"}),
            expect![[
                r#"spec.state.statePath: ".status" is no field of the status such as .status.phase"#
            ]],
        );
        check(
            |spec| spec["state"] = json!({"statePath": ".status.x", "mementoPath": ".status.x.y"}),
            expect![
                "spec.state.statePath: the phase, the state and the memento are different fields, none of them within another"
            ],
        );
    }

    #[test]
    fn a_chain_has_none_of_it() {
        let chain = |spec: &mut Value| {
            spec["mode"] = json!("Chain");
            spec["phases"] = json!([{"name": "root"}]);
        };
        check(
            |spec| {
                chain(spec);
                spec["moduleUpgrade"] = json!("Pinned");
            },
            expect![
                "spec.moduleUpgrade: is for mode Machine only: say mode: Machine, or leave it out"
            ],
        );
        check(
            chain,
            expect!["spec.flows: is for mode Machine only: say mode: Machine, or leave it out"],
        );
        check(
            |spec| {
                chain(spec);
                spec["flows"] = json!({});
                spec["phases"][0]["onDone"] = json!("root");
            },
            expect![
                "spec.phases[0].onDone: is for mode Machine only: say mode: Machine, or leave it out"
            ],
        );
        check(
            |spec| {
                chain(spec);
                spec["flows"] = json!({});
                spec["phases"][0]["once"] = json!(true);
            },
            expect![
                "spec.phases[0].once: is for mode Machine only: say mode: Machine, or leave it out"
            ],
        );
    }
}
