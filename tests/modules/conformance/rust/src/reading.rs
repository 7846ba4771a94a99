//! What a handler is given beside its object.

use configurator_sdk::{
    Cause, HandlerError, Input, Output, RequestResult, ResultEntry, WatchEvent,
};
use serde_json::{Map, Value, json};

use crate::parameter;

/// What a result says.
fn told(result: &RequestResult) -> Result<Value, HandlerError> {
    let objects: Vec<Value> = result.objects().unwrap_or_default();
    let error = result.error.as_ref().map(|error| {
        json!({
            "kind": kind(error.kind),
            "message": error.message,
            "retryable": error.retryable,
            "status": error.status,
        })
    });
    let response = result.http_response.as_ref().map(|response| {
        json!({
            "status": response.status,
            "type": response.header("Content-Type"),
            "body": String::from_utf8_lossy(&response.body),
        })
    });
    Ok(json!({
        "name": result.request_name,
        "declarative": result.is_declarative,
        "objects": objects,
        "error": error,
        "response": response,
        "created": result.created_timestamp,
        "finished": result.finished_timestamp,
    }))
}

/// The kind in the contract's spelling.
fn kind(kind: configurator_sdk::ErrorKind) -> &'static str {
    use configurator_sdk::ErrorKind as Kind;
    match kind {
        Kind::RetryExceedLimit => "retry-exceed-limit",
        Kind::ResourceGeneric => "resource-generic",
        Kind::ResourceNotFound => "resource-not-found",
        Kind::ResourceConflict => "resource-conflict",
        Kind::ResourceMutation => "resource-mutation",
        Kind::ResourcePermission => "resource-permission",
        Kind::UnsupportedResourceOperation => "unsupported-resource-operation",
        Kind::ApiServerUnavailable => "api-server-unavailable",
        Kind::ConfigstoreUnavailable => "configstore-unavailable",
        Kind::SecretstoreUnavailable => "secretstore-unavailable",
        Kind::HttpUnavailable => "http-unavailable",
        Kind::ExtensionUnavailable => "extension-unavailable",
        Kind::OutcomeUnknown => "outcome-unknown",
        Kind::NotSent => "not-sent",
    }
}

/// Tells of each result, in order; of `wanted`, which must be there, whether it was found; of `absent`, that it is not there.
pub fn results(input: &Input) -> Result<Output, HandlerError> {
    let mut all = Vec::new();
    for (_, entry) in &input.request_results {
        match entry {
            ResultEntry::One(one) => all.push(told(one)?),
            ResultEntry::Group(group) => {
                for one in group {
                    all.push(told(one)?);
                }
            }
        }
    }
    let found = input.result("wanted")?.found()?.is_some();
    let absent = input.result_opt("absent").is_some();
    Output::new()
        .pass("all", &all)?
        .pass("found", &found)?
        .pass("absent", &absent)
}

pub fn groups(input: &Input) -> Result<Output, HandlerError> {
    let names = |group: &[RequestResult]| -> Vec<String> {
        group.iter().map(|one| one.request_name.clone()).collect()
    };
    let pods = input.group("pods")?;
    let failed = pods.iter().filter(|one| one.error.is_some()).count();
    Output::new()
        .pass("pods", &names(pods))?
        .pass("failed", &failed)?
        .pass("none", &names(input.group_opt("none")))
}

/// Reads the result or the group `asked`, or why the object is in the run, as the parameter `read` says.
pub fn reads(input: &Input) -> Result<Output, HandlerError> {
    let names = |group: &[RequestResult]| -> Vec<String> {
        group.iter().map(|one| one.request_name.clone()).collect()
    };
    let read: Value = match parameter(input, "read")?.as_str() {
        "succeeded" => {
            input.result("asked")?.succeeded()?;
            true.into()
        }
        "object" => input.result("asked")?.object()?,
        "objects" => input.result("asked")?.objects::<Value>()?.into(),
        "json" => input.result("asked")?.response()?.json()?,
        "group" => names(input.group("asked")?).into(),
        "answers" => names(input.answers("asked")).into(),
        _ => match input.event() {
            WatchEvent::Added => "added",
            WatchEvent::Modified => "modified",
            WatchEvent::Deleted => "deleted",
            WatchEvent::Resync => "resync",
        }
        .into(),
    };
    Output::new().pass("read", &read)
}

/// Reads an argument and hands it on beside another, untouched.
pub fn arguments(input: &Input) -> Result<Output, HandlerError> {
    let count: u64 = input.arg("count")?;
    let raw = input.arg_json("raw").unwrap_or("null");
    Output::new()
        .pass("count", &(count + 1))
        .map(|output| output.pass_json("raw", raw))
}

pub fn context(input: &Input) -> Result<Output, HandlerError> {
    let context = &input.context;
    let (cause, detail) = match &context.cause {
        Cause::Entered => ("entered", Value::Null),
        Cause::Retry => ("retry", Value::Null),
        Cause::Again => ("again", Value::Null),
        Cause::Timer => ("timer", Value::Null),
        Cause::Recovered => ("recovered", Value::Null),
        Cause::Signal(signal) => {
            let data = signal.data.as_deref().unwrap_or("null");
            let data: Value = serde_json::from_str(data)?;
            ("signal", json!({"name": signal.name, "data": data}))
        }
        Cause::Changed(key) => (
            "changed",
            json!([key.group, key.version, key.plural, key.namespace, key.name]),
        ),
    };
    let parameters: Value = input.parameters()?;
    Ok(Output::new().data(json!({
        "configurator": context.configurator,
        "phase": context.phase,
        "node": context.node,
        "entry": context.entry,
        "attempt": context.attempt,
        "cause": cause,
        "detail": detail,
        "now": context.now,
        "seed": context.seed.to_string(),
        "runId": context.run_id,
        "parameters": parameters,
    })))
}

/// Adds one to its notes; tells of its last failure, of the answer to `ask`, and of the step that the parameter `step` names.
pub fn state(input: &Input) -> Result<Output, HandlerError> {
    let notes: Option<Value> = input.notes()?;
    let count = notes.as_ref().and_then(|notes| notes["count"].as_u64());
    let mut told = Map::new();
    if let Some(last) = &input.last {
        told.insert("failed".into(), last.failed.into());
        told.insert("fatal".into(), last.fatal.into());
        let message = last.error.as_ref().map(|error| error.message.clone());
        told.insert("error".into(), message.into());
    }
    let answer: Option<Value> = match input.answer("ask") {
        Some(answer) => Some(answer.object()?),
        None => None,
    };
    let step: Value = input.output_of(&parameter(input, "step")?)?;
    Ok(Output::new()
        .data(json!({"count": count.unwrap_or_default() + 1}))
        .output(json!({"answer": answer, "step": step}))
        .details(Value::Object(told))
        .progress(50, "half")
        .again())
}
