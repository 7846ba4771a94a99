//! From `spec.machine` to a checked [`Machine`].

mod tree;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use configurator_core::configurator::{MachineMode, StatePlace};
use configurator_core::machine::phase::{
    Check, ErrorCode, Machine, Phase, PhaseKind, Remedy, When,
};
use configurator_schema::cel::Condition;

use self::tree::Trees;
use super::{DeclarationError, Flows, span, wrong};
use crate::resource::machine::{
    ErrorActionSpec, ErrorCodeSpec, MachineSpec, ModuleUpgradeSpec, NodeSpec, PhaseSpec,
    StatePlaceSpec, StateSpec,
};

/// The wait before a failure that is not fatal is retried, unless one is declared.
const REQUEUE_AFTER: Duration = Duration::from_secs(60);
/// Attempts of a remedy, unless a number is declared.
const REMEDY_ATTEMPTS: u32 = 3;

/// Checks `spec.machine`.
pub(super) fn check(spec: &MachineSpec, shared: &Flows) -> Result<MachineMode, DeclarationError> {
    if spec.phases.is_empty() {
        return Err(wrong(
            "spec.machine.phases",
            "a machine needs at least one phase",
        ));
    }
    check_names(&spec.phases)?;
    let names: Vec<&str> = spec
        .phases
        .iter()
        .map(|phase| phase.name.as_str())
        .collect();
    let initial = match &spec.initial_phase {
        Some(initial) => initial.clone(),
        None => names.first().copied().unwrap_or_default().to_owned(),
    };
    to_phase("spec.machine.initialPhase", &initial, &names)?;
    let requeue_after = match spec.requeue_after {
        Some(wait) => more_than_nothing("spec.machine.requeueAfter", wait)?,
        None => REQUEUE_AFTER,
    };
    let trees = Trees::new(&spec.flows, shared);
    // A flow that nothing uses is checked as well.
    for name in spec.flows.keys() {
        trees.check_flow(name)?;
    }
    let phases = spec
        .phases
        .iter()
        .enumerate()
        .map(|(index, spec)| {
            phase(
                &format!("spec.machine.phases[{index}]"),
                spec,
                &names,
                &trees,
            )
        })
        .collect::<Result<Vec<Phase>, _>>()?;
    reached(spec, &initial)?;
    let error_codes = spec
        .error_codes
        .iter()
        .map(|(code, rule)| {
            let path = format!("spec.machine.errorCodes[{code:?}]");
            Ok((code.clone(), error_code(&path, rule)?))
        })
        .collect::<Result<_, DeclarationError>>()?;
    Ok(MachineMode {
        machine: Arc::new(Machine::new(initial, requeue_after, phases, error_codes)),
        place: place(spec.state.as_ref())?,
        pins_modules: spec.module_upgrade == Some(ModuleUpgradeSpec::Pinned),
    })
}

/// Checks that each phase has a name that is unique in the machine.
fn check_names(phases: &[PhaseSpec]) -> Result<(), DeclarationError> {
    for (index, phase) in phases.iter().enumerate() {
        let path = format!("spec.machine.phases[{index}].name");
        let earlier = phases.iter().take(index).map(|phase| phase.name.as_str());
        super::check_name(&path, &phase.name, earlier)?;
    }
    Ok(())
}

fn phase(
    path: &str,
    spec: &PhaseSpec,
    names: &[&str],
    trees: &Trees<'_>,
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
    if is_at_rest.is_none() && spec.upkeep.is_some() {
        let message =
            "only a stable or terminal phase has an upkeep: elsewhere, the nodes return the set";
        return Err(wrong(&format!("{path}.upkeep"), message));
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
        let tree = trees.tree(path, &node)?;
        PhaseKind::Active {
            tree: Some(tree),
            on_done: spec.on_done.clone(),
            on_error: spec.on_error.clone(),
        }
    };
    Ok(Phase {
        name: spec.name.clone(),
        kind,
        parameters: tree::parameters(path, &spec.parameters)?,
        upkeep: spec.upkeep.clone(),
    })
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

/// Each phase must be reachable from the initial one.
fn reached(spec: &MachineSpec, initial: &str) -> Result<(), DeclarationError> {
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
            return Err(wrong(&format!("spec.machine.phases[{index}]"), &message));
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
        ("spec.machine.state.phasePath", &spec.phase_path),
        ("spec.machine.state.statePath", &spec.state_path),
        ("spec.machine.state.mementoPath", &spec.memento_path),
    ]
    .map(|(path, text)| status_field(path, text));
    let (phase, state, memento) = (phase?, state?, memento?);
    for (path, one, others) in [
        ("spec.machine.state.statePath", &state, [&phase, &memento]),
        ("spec.machine.state.mementoPath", &memento, [&phase, &state]),
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
mod tests;
