//! What modules, servers and people have written in a call: that is where a secret may stand.

use std::slice;

use configurator_core::desired::{Content, DesiredEntry, DesiredSet, PipelinePlan};
use configurator_core::document::Document;
use configurator_core::handler::{
    Cause, Context, HandlerInput, HandlerOutput, HandlerState, ResourceObject, WatchedObject,
};
use configurator_core::request::{
    ConfigAppConf, ConfigBasic, ConfigOperation, ConfigResource, ConfigTwoLayers, HttpRequest,
    Operation, Readiness, Request, SinkName,
};
use configurator_core::result::{HttpResponse, RequestResult, ResultEntry};

use crate::objects::text;

/// A place of a call.
pub enum Part<'p> {
    /// A document of any kind.
    Document(&'p mut Document),
    /// What the secret store has answered.
    Answer(&'p mut Document),
    /// The value of a secret.
    Secret(&'p mut Document),
    /// A Kubernetes Secret, or what is changed in one.
    KubernetesSecret(&'p mut Document),
    /// A text.
    Text(&'p mut String),
    /// A body of HTTP.
    Body(&'p mut Vec<u8>),
    /// What a module has called something, by which it finds it again.
    Name(&'p str),
}

/// Those of what a handler is given.
pub fn of_input(input: &mut HandlerInput) -> Vec<Part<'_>> {
    let HandlerInput {
        resource_object,
        request_results,
        pass_through_args,
        last,
        outputs,
        plan,
        context,
    } = input;
    let mut parts = Vec::new();
    let watched: &mut [WatchedObject] = match resource_object {
        ResourceObject::One(one) => slice::from_mut(one),
        ResourceObject::Batch(all) => all,
    };
    let objects = watched.iter_mut().map(|watched| &mut watched.object);
    parts.extend(objects.map(Part::Document));
    entries(request_results, &mut parts);
    for (name, arg) in pass_through_args {
        parts.extend([Part::Name(name), Part::Document(arg)]);
    }
    parts.extend(outputs.iter_mut().map(|(_, left)| Part::Document(left)));
    if let Some(HandlerState {
        error,
        data,
        request_results,
        start_time: _,
        end_time: _,
        done: _,
        failed: _,
        fatal: _,
    }) = last
    {
        parts.extend(error.as_mut().map(|error| Part::Text(&mut error.message)));
        parts.extend(data.as_mut().map(Part::Document));
        entries(request_results, &mut parts);
    }
    if let Some(PipelinePlan { requests, desired }) = plan {
        of_requests(&mut requests.resource_requests, &mut parts);
        if let Some(desired) = desired {
            of_set(desired, &mut parts);
        }
    }
    let Context {
        parameters, cause, ..
    } = context;
    parts.push(Part::Document(parameters));
    if let Cause::Signal(signal) = cause {
        parts.extend(signal.data.as_mut().map(Part::Document));
    }
    parts
}

/// Those of what has become of requests.
pub fn of_results(results: &mut [RequestResult]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    results
        .iter_mut()
        .for_each(|result| of_result(result, &mut parts));
    parts
}

fn entries<'p>(entries: &'p mut [(String, ResultEntry)], parts: &mut Vec<Part<'p>>) {
    for (name, entry) in entries {
        parts.push(Part::Name(name));
        let results = match entry {
            ResultEntry::One(result) => slice::from_mut(result),
            ResultEntry::Group(results) => results,
        };
        for result in results {
            of_result(result, parts);
        }
    }
}

fn of_result<'p>(result: &'p mut RequestResult, parts: &mut Vec<Part<'p>>) {
    let RequestResult {
        request_name,
        sink,
        query_objects,
        error,
        http_response,
        is_declarative: _,
        created: _,
        finished: _,
    } = result;
    parts.push(Part::Name(request_name));
    let part: fn(&'p mut Document) -> Part<'p> = match sink {
        SinkName::Secretstore => Part::Answer,
        SinkName::Kubernetes | SinkName::Configstore | SinkName::Http | SinkName::Extension => {
            Part::Document
        }
    };
    parts.extend(query_objects.iter_mut().map(part));
    parts.extend(error.as_mut().map(|error| Part::Text(&mut error.message)));
    if let Some(HttpResponse {
        status: _,
        headers,
        body,
    }) = http_response
    {
        parts.extend(headers.iter_mut().map(|(_, value)| Part::Text(value)));
        parts.push(Part::Body(body));
    }
}

/// Those of what a handler asks for.
pub fn of_output(output: &mut HandlerOutput) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    of_requests(&mut output.requests.resource_requests, &mut parts);
    of_requests(&mut output.reads, &mut parts);
    if let Some(desired) = &mut output.desired {
        of_set(desired, &mut parts);
    }
    parts
}

fn of_requests<'p>(requests: &'p mut [Request], parts: &mut Vec<Part<'p>>) {
    for request in requests {
        let Request {
            name,
            group_by,
            depends_on,
            ready_when,
            operation,
            ..
        } = request;
        parts.push(Part::Name(name));
        parts.extend(group_by.as_deref().map(Part::Name));
        parts.extend(depends_on.iter().map(|name| Part::Name(name)));
        of_readiness(ready_when, parts);
        of_operation(operation, parts);
    }
}

fn of_readiness<'p>(readiness: &'p mut Option<Readiness>, parts: &mut Vec<Part<'p>>) {
    if let Some(Readiness::Expression(expression)) = readiness {
        parts.push(Part::Text(expression));
    }
}

fn of_set<'p>(set: &'p mut DesiredSet, parts: &mut Vec<Part<'p>>) {
    let DesiredSet {
        entries,
        pre_terminate,
        allow_empty: _,
        termination_policy: _,
        orders: _,
    } = set;
    for entry in entries {
        let DesiredEntry {
            name,
            content,
            depends_on,
            ready_when,
            failed_when,
            ..
        } = entry;
        parts.push(Part::Name(name));
        parts.extend(depends_on.iter().map(|name| Part::Name(name)));
        of_readiness(ready_when, parts);
        parts.extend(failed_when.as_mut().map(Part::Text));
        of_content(content, parts);
    }
    of_requests(pre_terminate, parts);
}

fn of_content<'p>(content: &'p mut Content, parts: &mut Vec<Part<'p>>) {
    match content {
        Content::Kubernetes(object) => {
            let part = match is_secret(object) {
                true => Part::KubernetesSecret,
                false => Part::Document,
            };
            parts.push(part(object));
        }
        Content::Config(config) => {
            parts.extend(config.partition.as_mut().map(Part::Text));
            of_config(&mut config.write, parts);
        }
        Content::Secret(secret) => {
            parts.push(Part::Text(&mut secret.name));
            parts.extend(secret.partition.as_mut().map(Part::Text));
            parts.extend(secret.value.as_mut().map(Part::Secret));
        }
    }
}

/// Whether a document is a Secret of Kubernetes.
fn is_secret(object: &Document) -> bool {
    let object = object.to_value();
    text(&object, "/kind") == "Secret" && text(&object, "/apiVersion") == "v1"
}

fn of_config<'p>(operation: &'p mut ConfigOperation, parts: &mut Vec<Part<'p>>) {
    let (place, value) = match operation {
        ConfigOperation::Resource(ConfigResource { name, value, .. }) => {
            ([Some(name), None], value)
        }
        ConfigOperation::AppConf(ConfigAppConf { key, value, .. })
        | ConfigOperation::Basic(ConfigBasic { key, value, .. }) => ([Some(key), None], value),
        ConfigOperation::TwoLayers(ConfigTwoLayers {
            second_path,
            third_path,
            value,
            ..
        }) => ([Some(second_path), Some(third_path)], value),
    };
    parts.extend(place.into_iter().flatten().chain(value).map(Part::Text));
}

fn of_operation<'p>(operation: &'p mut Operation, parts: &mut Vec<Part<'p>>) {
    match operation {
        Operation::Kubernetes(own) => {
            let part: fn(&'p mut Document) -> Part<'p> =
                match (own.group.as_str(), own.plural.as_str()) {
                    ("", "secrets") => Part::KubernetesSecret,
                    _ => Part::Document,
                };
            parts.extend(own.body.as_mut().map(part));
            let selectors = [&mut own.field_selector, &mut own.label_selector];
            parts.extend(selectors.into_iter().flatten().map(Part::Text));
            parts.extend([&mut own.namespace, &mut own.name].map(Part::Text));
        }
        Operation::Config(own) => {
            parts.extend(own.partition.as_mut().map(Part::Text));
            for operation in &mut own.operations {
                of_config(operation, parts);
            }
        }
        Operation::Secret(own) => {
            parts.push(Part::Text(&mut own.name));
            parts.extend(own.partition.as_mut().map(Part::Text));
            parts.extend(own.value.as_mut().map(Part::Secret));
        }
        Operation::Http(HttpRequest {
            method: _,
            url,
            headers,
            body,
        }) => {
            parts.push(Part::Text(url));
            parts.extend(headers.iter_mut().map(|(_, value)| Part::Text(value)));
            parts.extend(body.as_mut().map(Part::Body));
        }
        Operation::Extension(own) => {
            parts.push(Part::Text(&mut own.target));
            parts.extend(own.body.as_mut().map(Part::Document));
        }
    }
}
