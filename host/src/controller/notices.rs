//! What a machine has to tell, as Events of its object.

use configurator_core::configurator::Configurator;
use configurator_core::machine::action::Notice;
use configurator_core::machine::tree::RecoverFrom;
use configurator_core::run::Member;

use crate::events::{HostEvent, Subject};

/// The Event; what happens with every step makes none.
pub(crate) fn event_of(
    configurator: &Configurator,
    member: &Member,
    notice: &Notice,
) -> Option<HostEvent> {
    let (is_warning, reason, message) = told(notice)?;
    Some(HostEvent {
        subject: Subject::watched(configurator, &member.key, &member.uid),
        is_warning,
        reason: reason.to_owned(),
        action: about(notice).to_owned(),
        message,
    })
}

/// The phase, flow, step or person that it is about.
fn about(notice: &Notice) -> &str {
    match notice {
        Notice::PhaseEntered { to: phase, .. }
        | Notice::UnknownPhase { phase }
        | Notice::PhasesInCircle { phase } => phase,
        Notice::FlowStarted { flow }
        | Notice::FlowCompleted { flow }
        | Notice::FlowFailed { flow, .. }
        | Notice::FlowResumed { flow, .. }
        | Notice::FlowRefused { flow, .. } => flow,
        Notice::StepStarted { path }
        | Notice::StepFailed { path, .. }
        | Notice::StepEnded { path, .. }
        | Notice::ActionNeeded { path, .. }
        | Notice::OutcomeUnknown { path } => path,
        Notice::CommandDone { uid } | Notice::CommandRefused { uid, .. } => uid,
    }
}

fn told(notice: &Notice) -> Option<(bool, &'static str, String)> {
    Some(match notice {
        Notice::PhaseEntered { from, to } if from.is_empty() => {
            (false, "PhaseEntered", format!("the object begins in {to}"))
        }
        Notice::PhaseEntered { from, to } => (false, "PhaseEntered", format!("{from} → {to}")),
        Notice::FlowStarted { flow } => {
            (false, "FlowStarted", format!("the flow {flow} has begun"))
        }
        Notice::FlowCompleted { flow } => {
            (false, "FlowCompleted", format!("the flow {flow} is done"))
        }
        Notice::FlowFailed { flow, message } => {
            let message = format!("the flow {flow} was broken off: {message}");
            (true, "FlowFailed", message)
        }
        Notice::FlowResumed { flow, from } => {
            let at = match from {
                RecoverFrom::FailedStep => "the step that failed",
                RecoverFrom::FirstStep => "its first step",
            };
            (
                false,
                "FlowResumed",
                format!("the flow {flow} goes on at {at}"),
            )
        }
        Notice::FlowRefused { flow, unfinished } => {
            let message = format!(
                "the flow {flow} does not begin: one of the phase {unfinished} has not finished"
            );
            (true, "FlowRefused", message)
        }
        Notice::StepFailed {
            path,
            error,
            failures,
        } => {
            let message =
                format!("{path} failed, {failures} in a row, and is tried again: {error}");
            (true, "StepFailed", message)
        }
        Notice::StepEnded {
            path,
            error: Some(error),
            ..
        } => (
            true,
            "StepEnded",
            format!("{path} failed for good: {error}"),
        ),
        Notice::StepStarted { .. } | Notice::StepEnded { .. } => return None,
        Notice::ActionNeeded {
            path,
            code,
            guidance,
        } => {
            let message = format!("{path} failed with {code}, and a person must act. {guidance}");
            (true, "ActionNeeded", message)
        }
        Notice::OutcomeUnknown { path } => {
            let message = format!(
                "nobody knows what became of the requests of {path}, which may be sent but once: see at the server, then skip the step or resume"
            );
            (true, "OutcomeUnknown", message)
        }
        Notice::CommandDone { .. } => return None,
        Notice::CommandRefused { why, .. } => (
            true,
            "CommandRefused",
            format!("a Command was refused: {why}"),
        ),
        Notice::UnknownPhase { phase } => {
            let message = format!(
                "the object is in the phase {phase:?}, which its Configurator does not have: nothing is done"
            );
            (true, "UnknownPhase", message)
        }
        Notice::PhasesInCircle { phase } => {
            let message = format!(
                "phases without work follow one another in a circle; the object stays in {phase}"
            );
            (true, "PhasesInCircle", message)
        }
    })
}
