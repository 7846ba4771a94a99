//! The tree of an object's machine, for a person.

use std::fmt::Write as _;
use std::time::Duration;

use configurator_core::machine::phase::{Machine, Phase, PhaseKind};
use configurator_core::machine::state::{Execution, NodeState, State, Turn};
use configurator_core::machine::tree::{Node, NodeKind};
use configurator_core::time::Timestamp;

use crate::cli::terminal::{BAD, FAINT, GOOD, NAME, WAITING};

/// Characters of a progress bar.
const BAR: u8 = 20;

/// Everything that is known of the machine, a node a line.
pub(super) fn draw(machine: &Machine, state: &State, now: Timestamp) -> String {
    let mut text = String::new();
    for phase in &machine.phases {
        let is_here = phase.name == state.phase;
        if is_here || state.nodes.contains_key(&phase.name) {
            draw_phase(machine, phase, state, now, &mut text);
        }
    }
    if machine.phase(&state.phase).is_none() && !state.phase.is_empty() {
        let _ = writeln!(
            text,
            "{BAD}?{BAD:#} {} (the Configurator does not have this phase)",
            state.phase
        );
    }
    if let Some(unfinished) = &state.unfinished {
        let _ = writeln!(
            text,
            "{WAITING}{unfinished} was broken off and can be resumed{WAITING:#}"
        );
    }
    if !state.history.is_empty() {
        let _ = writeln!(text, "history");
        for execution in state.history.iter().rev() {
            draw_execution(execution, &mut text);
        }
    }
    text
}

fn draw_phase(machine: &Machine, phase: &Phase, state: &State, now: Timestamp, text: &mut String) {
    let here = if phase.name == state.phase {
        " ◀"
    } else {
        ""
    };
    match &phase.kind {
        PhaseKind::Active {
            tree: Some(tree), ..
        } => {
            let root = state.nodes.get(&phase.name);
            match root.filter(|root| machine.lacks(&phase.name, root).is_some()) {
                None => draw_node(machine, tree, root, now, 0, here, text),
                Some(began) => {
                    let tree = outline(&phase.name, began);
                    draw_node(machine, &tree, root, now, 0, here, text);
                    let _ = writeln!(
                        text,
                        "  {WAITING}it goes on as it was declared when it began{WAITING:#}"
                    );
                }
            }
        }
        PhaseKind::Active { tree: None, .. } | PhaseKind::Stable(_) => {
            let _ = writeln!(text, "{NAME}{}{NAME:#}{here}", phase.name);
        }
        PhaseKind::Terminal => {
            let _ = writeln!(text, "{NAME}{}{NAME:#}, the end{here}", phase.name);
        }
    }
}

/// What is known of a tree that is not declared any more: the nodes that have begun, in the order in which they did.
fn outline(name: &str, state: &NodeState) -> Node {
    let mut begun: Vec<(&String, &NodeState)> = state.children.iter().collect();
    if begun.is_empty() {
        return Node::leaf(name);
    }
    begun.sort_by_key(|(_, state)| state.start_time);
    let children = begun
        .into_iter()
        .map(|(name, state)| outline(name, state))
        .collect();
    Node::new(name, NodeKind::Serial(children))
}

fn draw_node(
    machine: &Machine,
    node: &Node,
    state: Option<&NodeState>,
    now: Timestamp,
    depth: usize,
    here: &str,
    text: &mut String,
) {
    let indent = "  ".repeat(depth);
    let (style, mark) = mark_of(state);
    let _ = write!(text, "{indent}{style}{mark}{style:#} {}{here}", node.name);
    if !node.description.is_empty() {
        let _ = write!(text, " {FAINT}{}{FAINT:#}", node.description);
    }
    if let Some(state) = state {
        let facts = facts(node, state, now);
        if !facts.is_empty() {
            let _ = write!(text, "  {}", facts.join(" · "));
        }
        text.push('\n');
        below(machine, node, state, &indent, text);
    } else {
        text.push('\n');
    }
    for child in node.children() {
        let state = state.and_then(|state| state.children.get(&child.name));
        draw_node(machine, child, state, now, depth + 1, "", text);
    }
}

fn mark_of(state: Option<&NodeState>) -> (anstyle::Style, &'static str) {
    match state {
        None => (FAINT, "·"),
        Some(state) if state.skipped.is_some() => (WAITING, "⤼"),
        Some(state) if state.leaf.is_unknown => (BAD, "?"),
        Some(state) if state.fatal => (BAD, "✗"),
        Some(state) if state.done => (GOOD, "✓"),
        Some(state) if state.failed => (WAITING, "↻"),
        Some(state) if matches!(state.leaf.turn, Turn::Waiting { .. }) => (WAITING, "‖"),
        Some(state) if state.start_time.is_some() => (NAME, "▶"),
        Some(_) => (FAINT, "·"),
    }
}

/// Times, attempts, and what it waits for.
fn facts(node: &Node, state: &NodeState, now: Timestamp) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(start) = state.start_time {
        let end = state.end_time.unwrap_or(now);
        facts.push(span(end.since(start)));
    }
    if node.is_leaf() {
        let entry = state.leaf.entry;
        if entry > 1 {
            facts.push(format!("entry {entry}"));
        }
        if state.leaf.failures > 0 {
            facts.push(format!("failed {} in a row", state.leaf.failures));
        }
        match &state.leaf.turn {
            Turn::Due { at, .. } => facts.push(format!("again in {}", span(at.since(now)))),
            Turn::Waiting {
                until,
                signals,
                objects,
            } => {
                let signals = signals.iter().map(|name| format!("signal {name}"));
                let objects = objects
                    .iter()
                    .map(|key| format!("{} {}/{}", key.plural, key.namespace, key.name));
                let until = until.map(|until| span(until.since(now)));
                let awaited: Vec<String> = signals.chain(objects).chain(until).collect();
                facts.push(format!("waits for {}", awaited.join(" or ")));
            }
            Turn::Idle | Turn::Ready(_) | Turn::Running { .. } => {}
        }
        if let Some(remedy) = &state.leaf.remedy {
            facts.push(format!("{} is being remedied", remedy.code));
        }
    }
    facts
}

/// Lines of its own: progress, the error, guidance, details.
fn below(machine: &Machine, node: &Node, state: &NodeState, indent: &str, text: &mut String) {
    if !node.is_leaf() {
        return;
    }
    if let Some(progress) = &state.leaf.progress
        && !state.done
    {
        let full = u16::from(progress.percent.min(100)) * u16::from(BAR) / 100;
        let full = usize::from(full);
        let bar = "█".repeat(full) + &"░".repeat(usize::from(BAR) - full);
        let _ = writeln!(
            text,
            "{indent}    {bar} {} % {}",
            progress.percent, progress.message
        );
    }
    if let Some(reason) = &state.skipped {
        let _ = writeln!(text, "{indent}    skipped: {reason}");
    }
    for error in &state.errors {
        let code = error.code.as_ref().map(|code| format!(" ({code})"));
        let _ = writeln!(
            text,
            "{indent}    {BAD}{}{}{BAD:#}",
            error.message,
            code.unwrap_or_default()
        );
        let rule = error
            .code
            .as_ref()
            .and_then(|code| machine.error_codes.get(code));
        for line in rule.into_iter().flat_map(|rule| rule.guidance.lines()) {
            let _ = writeln!(text, "{indent}    │ {line}");
        }
    }
    if let Some(details) = &state.leaf.details {
        let _ = writeln!(text, "{indent}    {FAINT}{details}{FAINT:#}");
    }
}

fn draw_execution(execution: &Execution, text: &mut String) {
    let took = span(execution.ended.since(execution.started));
    let (style, mark) = match &execution.error {
        None => (GOOD, "✓"),
        Some(_) => (BAD, "✗"),
    };
    let _ = write!(
        text,
        "  {style}{mark}{style:#} {} in {}, {}, {took}",
        execution.flow, execution.phase, execution.started
    );
    match &execution.error {
        None => text.push('\n'),
        Some(error) => {
            let _ = writeln!(text, ": {error}");
        }
    }
}

/// A span of time in its two largest units.
fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{} ms", span.as_millis()),
        1..=59 => format!("{:.1} s", span.as_secs_f64()),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..=86_399 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}
