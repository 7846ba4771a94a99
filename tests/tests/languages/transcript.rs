//! What a module says of itself, and what its handlers answer, as text.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use configurator_core::desired::DesiredSet;
use configurator_core::document::Document;
use configurator_core::handler::{
    CallFault, CallLimits, HandlerOutput, ModuleDescription, Outcome,
};
use configurator_guest::log::LogLine;
use configurator_guest::module::Module;
use configurator_guest::runtime::GuestRuntime;

use crate::canonical;
use crate::case::Case;

/// The handlers, in order.
pub fn described(description: &ModuleDescription) -> String {
    let mut text = String::from("handlers\n");
    for handler in &description.handlers {
        let written = |document: &Option<Document>| {
            document.as_ref().map(|one| canonical::text(one.as_str()))
        };
        writeln!(
            text,
            "  {}: {} view {:?}, accepts {:?}, parameters {:?}, capabilities {:?}",
            handler.name,
            handler.description,
            handler.view,
            handler.accepts,
            written(&handler.parameters_schema),
            written(&handler.capabilities)
        )
        .unwrap();
    }
    text
}

/// What a call answers, and what it logs.
pub fn called(runtime: &GuestRuntime, module: &Arc<Module>, case: &Case) -> String {
    let lines: Arc<Mutex<Vec<LogLine>>> = Arc::default();
    let kept = Arc::clone(&lines);
    let report = runtime.call_blocking(
        module,
        &case.handler,
        &case.input(),
        &CallLimits::default(),
        Arc::new(move |line| kept.lock().unwrap().push(line)),
    );
    let mut text = format!("\n# {}\n", case.name);
    match report.result {
        Ok(output) => {
            for line in lines.lock().unwrap().iter() {
                let LogLine {
                    level,
                    message,
                    fields,
                } = line;
                writeln!(text, "log {} {message} {fields:?}", level.name()).unwrap();
            }
            for (name, value) in &output.pass_through_args {
                if case.as_written {
                    writeln!(text, "as written {name} = {}", value.as_str()).unwrap();
                }
            }
            told(&mut text, output);
        }
        Err(CallFault::Handler(error)) if case.handler != "panic" => {
            writeln!(text, "{error:?}").unwrap();
        }
        // Languages differ in how they say that they have a mistake in them.
        Err(fault) => {
            let is_fatal = matches!(&fault, CallFault::Handler(error) if error.fatal);
            assert!(!is_fatal, "{fault:?}");
            let message = fault.to_string();
            assert!(message.contains("the sky is falling"), "{message}");
            text.push_str("fails with: the sky is falling\n");
        }
    }
    text
}

/// What an output says; what it leaves at its default is left out.
fn told(text: &mut String, output: HandlerOutput) {
    let HandlerOutput {
        requests,
        pass_through_args,
        outcome,
        next,
        statuses,
        data,
        events,
        progress,
        output,
        details,
        desired,
        remove_from_plan,
        reads,
    } = canonical::output(output);
    if !requests.resource_requests.is_empty() {
        let (execute, batch) = (requests.execute_strategy, requests.batch_error_strategy);
        writeln!(text, "{execute:?} {batch:?}").unwrap();
    }
    for request in requests.resource_requests {
        writeln!(text, "{request:?}").unwrap();
    }
    for request in reads {
        writeln!(text, "reads {request:?}").unwrap();
    }
    if !remove_from_plan.is_empty() {
        writeln!(text, "removes from the plan {remove_from_plan:?}").unwrap();
    }
    for (name, value) in pass_through_args {
        writeln!(text, "pass {name} = {}", shortened(value.as_str())).unwrap();
    }
    if outcome != Outcome::Done {
        writeln!(text, "{outcome:?}").unwrap();
    }
    for status in statuses {
        writeln!(text, "{status:?}").unwrap();
    }
    for event in events {
        writeln!(text, "{event:?}").unwrap();
    }
    if let Some(desired) = desired {
        let DesiredSet {
            entries,
            allow_empty,
            termination_policy,
            orders,
            pre_terminate,
        } = desired;
        writeln!(
            text,
            "desired: allow_empty {allow_empty}, {termination_policy:?}, {orders:?}"
        )
        .unwrap();
        for entry in entries {
            writeln!(text, "  {entry:?}").unwrap();
        }
        for request in pre_terminate {
            writeln!(text, "  before a deletion {request:?}").unwrap();
        }
    }
    let rest = [
        ("next", next),
        ("data", data.map(|data| data.to_string())),
        ("progress", progress.map(|progress| format!("{progress:?}"))),
        ("output", output.map(|output| output.to_string())),
        ("details", details.map(|details| details.to_string())),
    ];
    for (name, value) in rest {
        if let Some(value) = value {
            writeln!(text, "{name} {value}").unwrap();
        }
    }
}

/// A long document by its digest: every byte of it counts, and a person need not see it.
fn shortened(document: &str) -> String {
    match document.len() {
        0..4096 => document.to_owned(),
        bytes => {
            let digest = configurator_guest::digest::Digest::of(document.as_bytes());
            format!("{bytes} bytes, {digest}")
        }
    }
}

/// The language's generator gives the same for the same seed, and another number for another.
pub fn check_chance(runtime: &GuestRuntime, module: &Arc<Module>) {
    let number = |seed| called(runtime, module, &Case::of_seed("random", seed));
    assert_eq!(number(1), number(1));
    assert_ne!(number(1), number(2));
}
