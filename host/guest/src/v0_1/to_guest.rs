//! What a handler gets, in the words of the bindings.

mod desired;
mod requests;

use std::time::Duration;

use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::handler as core;
use configurator_core::request as req;
use configurator_core::result::{HttpResponse, RequestResult, ResultEntry};
use configurator_core::time::Timestamp;

use super::bindings::configurator::handler::{requests as wit_requests, types as wit_types};
use super::bindings::exports::configurator::handler::handler as wit;

pub(super) fn handler_input(input: &core::HandlerInput) -> wit::HandlerInput {
    wit::HandlerInput {
        resource_object: match &input.resource_object {
            core::ResourceObject::One(object) => wit::ResourceObject::One(watched_object(object)),
            core::ResourceObject::Batch(objects) => {
                wit::ResourceObject::Batch(objects.iter().map(watched_object).collect())
            }
        },
        request_results: result_entries(&input.request_results),
        pass_through_args: documents(&input.pass_through_args),
        last: input.last.as_ref().map(handler_state),
        outputs: documents(&input.outputs),
        plan: input.plan.as_ref().map(desired::plan),
        context: context(&input.context),
    }
}

fn watched_object(object: &core::WatchedObject) -> wit::WatchedObject {
    wit::WatchedObject {
        object: json(&object.object),
        event: match object.event {
            core::WatchEvent::Added => wit::WatchEvent::Added,
            core::WatchEvent::Modified => wit::WatchEvent::Modified,
            core::WatchEvent::Deleted => wit::WatchEvent::Deleted,
            core::WatchEvent::Resync => wit::WatchEvent::Resync,
        },
    }
}

fn context(context: &core::Context) -> wit::Context {
    wit::Context {
        configurator: context.configurator.clone(),
        phase: context.phase.clone(),
        node: context.node.clone(),
        entry: context.entry,
        attempt: context.attempt,
        cause: match &context.cause {
            core::Cause::Entered => wit::Cause::Entered,
            core::Cause::Retry => wit::Cause::Retry,
            core::Cause::Again => wit::Cause::Again,
            core::Cause::Timer => wit::Cause::Timer,
            core::Cause::Signal(signal) => wit::Cause::Signal(wit::Signal {
                name: signal.name.clone(),
                data: signal.data.as_ref().map(json),
            }),
            core::Cause::Changed(key) => wit::Cause::Changed(object_key(key)),
            core::Cause::Recovered => wit::Cause::Recovered,
        },
        now: timestamp(context.now),
        seed: context.seed,
        parameters: json(&context.parameters),
        run_id: context.run_id.clone(),
    }
}

fn handler_state(state: &core::HandlerState) -> wit::HandlerState {
    wit::HandlerState {
        start_time: state.start_time.map(timestamp),
        end_time: state.end_time.map(timestamp),
        done: state.done,
        failed: state.failed,
        fatal: state.fatal,
        error: state.error.as_ref().map(|error| wit::HandlerError {
            message: error.message.clone(),
            fatal: error.fatal,
            retry_after: error.retry_after.map(milliseconds),
            code: error.code.clone(),
        }),
        data: state.data.as_ref().map(json),
        request_results: result_entries(&state.request_results),
    }
}

fn result_entries(entries: &[(String, ResultEntry)]) -> Vec<(String, wit::ResultEntry)> {
    entries
        .iter()
        .map(|(key, entry)| {
            let entry = match entry {
                ResultEntry::One(result) => wit::ResultEntry::One(request_result(result)),
                ResultEntry::Group(results) => {
                    wit::ResultEntry::Group(results.iter().map(request_result).collect())
                }
            };
            (key.clone(), entry)
        })
        .collect()
}

fn request_result(result: &RequestResult) -> wit_requests::RequestResult {
    wit_requests::RequestResult {
        request_name: result.request_name.clone(),
        request_sink: match result.sink {
            req::SinkName::Kubernetes => wit_types::RequestSink::Kubernetes,
            req::SinkName::Configstore => wit_types::RequestSink::Configstore,
            req::SinkName::Secretstore => wit_types::RequestSink::Secretstore,
            req::SinkName::Http => wit_types::RequestSink::Http,
            req::SinkName::Extension => wit_types::RequestSink::Extension,
        },
        is_declarative: result.is_declarative,
        query_objects: result.query_objects.iter().map(json).collect(),
        created_timestamp: timestamp(result.created),
        finished_timestamp: result.finished.map(timestamp),
        error: result.error.as_ref().map(request_error),
        http_response: result.http_response.as_ref().map(http_response),
    }
}

fn request_error(fault: &Fault) -> wit_types::RequestError {
    wit_types::RequestError {
        kind: match fault.kind {
            FaultKind::RetryExceedLimit => wit_types::ErrorKind::RetryExceedLimit,
            FaultKind::ResourceGeneric => wit_types::ErrorKind::ResourceGeneric,
            FaultKind::ResourceNotFound => wit_types::ErrorKind::ResourceNotFound,
            FaultKind::ResourceConflict => wit_types::ErrorKind::ResourceConflict,
            FaultKind::ResourceMutation => wit_types::ErrorKind::ResourceMutation,
            FaultKind::ResourcePermission => wit_types::ErrorKind::ResourcePermission,
            FaultKind::UnsupportedResourceOperation => {
                wit_types::ErrorKind::UnsupportedResourceOperation
            }
            FaultKind::ApiServerUnavailable => wit_types::ErrorKind::ApiServerUnavailable,
            FaultKind::ConfigstoreUnavailable => wit_types::ErrorKind::ConfigstoreUnavailable,
            FaultKind::SecretstoreUnavailable => wit_types::ErrorKind::SecretstoreUnavailable,
            FaultKind::HttpUnavailable => wit_types::ErrorKind::HttpUnavailable,
            FaultKind::ExtensionUnavailable => wit_types::ErrorKind::ExtensionUnavailable,
            FaultKind::OutcomeUnknown => wit_types::ErrorKind::OutcomeUnknown,
            FaultKind::NotSent => wit_types::ErrorKind::NotSent,
        },
        message: fault.message.clone(),
        retryable: fault.is_retryable(),
        status: fault.status,
    }
}

fn http_response(response: &HttpResponse) -> wit_requests::HttpResponse {
    wit_requests::HttpResponse {
        status: response.status,
        headers: response.headers.clone(),
        body: response.body.clone(),
    }
}

fn documents(documents: &[(String, Document)]) -> Vec<(String, String)> {
    documents
        .iter()
        .map(|(name, document)| (name.clone(), json(document)))
        .collect()
}

fn object_ref(object: &req::ObjectRef) -> wit_types::ObjectRef {
    wit_types::ObjectRef {
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    }
}

fn object_key(key: &req::ObjectKey) -> wit_types::ObjectKey {
    wit_types::ObjectKey {
        group: key.group.clone(),
        version: key.version.clone(),
        plural: key.plural.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}

fn json(document: &Document) -> String {
    document.as_str().to_owned()
}

fn timestamp(at: Timestamp) -> String {
    at.to_string()
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
