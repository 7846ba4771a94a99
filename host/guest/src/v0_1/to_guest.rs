//! What a handler gets, in the words of the bindings.

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
        plan: input.plan.as_ref().map(requests),
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

fn requests(requests: &req::Requests) -> wit_requests::Requests {
    wit_requests::Requests {
        execute_strategy: Some(match requests.execute_strategy {
            req::ExecuteStrategy::Serial => wit_requests::ExecuteStrategy::Serial,
            req::ExecuteStrategy::Parallel => wit_requests::ExecuteStrategy::Parallel,
            req::ExecuteStrategy::Graph => wit_requests::ExecuteStrategy::Graph,
        }),
        resource_requests: requests.resource_requests.iter().map(request).collect(),
        batch_error_strategy: Some(match requests.batch_error_strategy {
            req::BatchErrorStrategy::DropError => wit_requests::BatchErrorStrategy::DropError,
            req::BatchErrorStrategy::CatchError => wit_requests::BatchErrorStrategy::CatchError,
        }),
    }
}

fn request(request: &req::Request) -> wit_requests::ResourceRequest {
    wit_requests::ResourceRequest {
        request_name: request.name.clone(),
        is_declarative: request.is_declarative,
        group_by: request.group_by.clone(),
        bootstrap_dep: request.bootstrap_dep,
        of: request.of.as_ref().map(object_ref),
        on_error: request.on_error.map(|on_error| match on_error {
            req::OnError::Fail => wit_requests::OnError::Fail,
            req::OnError::CatchError => wit_requests::OnError::CatchError,
            req::OnError::DropError => wit_requests::OnError::DropError,
        }),
        depends_on: request.depends_on.clone(),
        ready_when: request.ready_when.as_ref().map(readiness),
        once: request.once,
        timeout: request.timeout.map(milliseconds),
        partition: request.operation.partition().map(str::to_owned),
        operation: operation(&request.operation),
    }
}

fn readiness(readiness: &req::Readiness) -> wit_requests::Readiness {
    match readiness {
        req::Readiness::Exists => wit_requests::Readiness::Exists,
        req::Readiness::Observed => wit_requests::Readiness::Observed,
        req::Readiness::Expression(text) => wit_requests::Readiness::Expression(text.clone()),
    }
}

fn operation(operation: &req::Operation) -> wit_requests::Operation {
    use wit_requests::{ConfigOperation as Part, Operation};
    match operation {
        req::Operation::Kubernetes(request) => Operation::Kubernetes(kubernetes(request)),
        req::Operation::Config(request) => match (request.is_transaction, &*request.operations) {
            (false, [one]) => match config_operation(one) {
                Part::Resource(request) => Operation::ConfigResource(request),
                Part::AppConf(request) => Operation::ConfigAppConf(request),
                Part::Basic(request) => Operation::ConfigBasic(request),
                Part::TwoLayers(request) => Operation::ConfigTwoLayers(request),
            },
            (_, operations) => Operation::ConfigTransaction(wit_requests::ConfigTransaction {
                operations: operations.iter().map(config_operation).collect(),
            }),
        },
        req::Operation::Secret(request) => Operation::Secret(wit_requests::SecretRequest {
            secret_name: request.name.clone(),
            verb: match request.verb {
                req::SecretVerb::Get => wit_requests::SecretVerb::Get,
                req::SecretVerb::Create => wit_requests::SecretVerb::Create,
                req::SecretVerb::Delete => wit_requests::SecretVerb::Delete,
            },
            value: request.value.as_ref().map(json),
        }),
        req::Operation::Http(request) => Operation::Http(wit_requests::HttpRequest {
            method: request.method.clone(),
            url: request.url.clone(),
            headers: request.headers.clone(),
            body: request.body.clone(),
        }),
    }
}

fn kubernetes(request: &req::KubernetesRequest) -> wit_requests::KubernetesResourceRequest {
    wit_requests::KubernetesResourceRequest {
        group: request.group.clone(),
        version: request.version.clone(),
        plural: request.plural.clone(),
        kind: request.kind.clone(),
        namespace: request.namespace.clone(),
        name: request.name.clone(),
        verb: match request.verb {
            req::KubernetesVerb::Get => wit_requests::KubernetesVerb::Get,
            req::KubernetesVerb::List => wit_requests::KubernetesVerb::List,
            req::KubernetesVerb::Patch => wit_requests::KubernetesVerb::Patch,
            req::KubernetesVerb::Delete => wit_requests::KubernetesVerb::Delete,
            req::KubernetesVerb::Create => wit_requests::KubernetesVerb::Create,
            req::KubernetesVerb::Replace => wit_requests::KubernetesVerb::Replace,
            req::KubernetesVerb::Apply => wit_requests::KubernetesVerb::Apply,
        },
        subresource: request.subresource.clone(),
        field_selector: request.field_selector.clone(),
        label_selector: request.label_selector.clone(),
        resource_body: request.body.as_ref().map(json),
        patch_type: Some(match request.patch_type {
            req::PatchType::Merge => wit_requests::PatchType::Merge,
            req::PatchType::Json => wit_requests::PatchType::JsonPatch,
            req::PatchType::Strategic => wit_requests::PatchType::Strategic,
        }),
        precheck_exist: Some(request.precheck_exist),
        force: Some(request.force),
        cached: Some(request.cached),
        propagation_policy: Some(match request.propagation_policy {
            req::PropagationPolicy::Background => wit_requests::PropagationPolicy::Background,
            req::PropagationPolicy::Foreground => wit_requests::PropagationPolicy::Foreground,
            req::PropagationPolicy::Orphan => wit_requests::PropagationPolicy::Orphan,
        }),
        precondition: request.precondition.as_ref().map(|precondition| {
            wit_requests::Precondition {
                uid: precondition.uid.clone(),
                resource_version: precondition.resource_version.clone(),
            }
        }),
    }
}

fn config_operation(operation: &req::ConfigOperation) -> wit_requests::ConfigOperation {
    use wit_requests::ConfigOperation as Wit;
    match operation {
        req::ConfigOperation::Resource(request) => {
            Wit::Resource(wit_requests::ConfigResourceRequest {
                config_type: match request.config_type {
                    req::ConfigType::Pod => wit_requests::ConfigType::Pod,
                    req::ConfigType::Node => wit_requests::ConfigType::Node,
                    req::ConfigType::Namespace => wit_requests::ConfigType::Namespace,
                    req::ConfigType::Workload => wit_requests::ConfigType::Workload,
                },
                config_verb: match request.verb {
                    req::ConfigVerb::Get => wit_requests::ConfigVerb::Get,
                    req::ConfigVerb::Create => wit_requests::ConfigVerb::Create,
                    req::ConfigVerb::Update => wit_requests::ConfigVerb::Update,
                    req::ConfigVerb::Delete => wit_requests::ConfigVerb::Delete,
                },
                resource_name: request.name.clone(),
                resource_uid: request.uid.clone(),
                namespace: request.namespace.clone(),
                workload_kind: request.workload_kind.clone(),
                value: request.value.clone(),
            })
        }
        req::ConfigOperation::AppConf(request) => {
            Wit::AppConf(wit_requests::ConfigAppConfRequest {
                verb: match request.verb {
                    req::ConfigVerb::Create => wit_requests::ConfigAppConfVerb::Create,
                    req::ConfigVerb::Delete => wit_requests::ConfigAppConfVerb::Delete,
                    // There is no `get` of these: a plan comes from a handler, which cannot say it.
                    req::ConfigVerb::Update | req::ConfigVerb::Get => {
                        wit_requests::ConfigAppConfVerb::Update
                    }
                },
                pod_name: request.pod_name.clone(),
                namespace: request.namespace.clone(),
                key: request.key.clone(),
                value: request.value.clone(),
            })
        }
        req::ConfigOperation::Basic(request) => Wit::Basic(wit_requests::ConfigBasicRequest {
            verb: match request.verb {
                req::ConfigVerb::Get => wit_requests::ConfigBasicVerb::Get,
                req::ConfigVerb::Delete => wit_requests::ConfigBasicVerb::Delete,
                // There is no `create` of these, for the same reason.
                req::ConfigVerb::Update | req::ConfigVerb::Create => {
                    wit_requests::ConfigBasicVerb::Put
                }
            },
            key: request.key.clone(),
            value: request.value.clone(),
        }),
        req::ConfigOperation::TwoLayers(request) => {
            Wit::TwoLayers(wit_requests::ConfigTwoLayersRequest {
                verb: match request.verb {
                    req::ConfigVerb::Get => wit_requests::ConfigTwoLayersVerb::Get,
                    req::ConfigVerb::Create => wit_requests::ConfigTwoLayersVerb::Create,
                    req::ConfigVerb::Update => wit_requests::ConfigTwoLayersVerb::Update,
                    req::ConfigVerb::Delete => wit_requests::ConfigTwoLayersVerb::Delete,
                },
                second_path: request.second_path.clone(),
                third_path: request.third_path.clone(),
                value: request.value.clone(),
            })
        }
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
