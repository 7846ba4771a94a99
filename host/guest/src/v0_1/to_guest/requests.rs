//! The requests of a plan.

use configurator_core::request as req;

use super::super::bindings::configurator::handler::requests as wit_requests;
use super::{json, milliseconds, object_ref};

pub(super) fn requests(requests: &req::Requests) -> wit_requests::Requests {
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

pub(super) fn request(request: &req::Request) -> wit_requests::ResourceRequest {
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

pub(super) fn readiness(readiness: &req::Readiness) -> wit_requests::Readiness {
    match readiness {
        req::Readiness::Exists => wit_requests::Readiness::Exists,
        req::Readiness::Observed => wit_requests::Readiness::Observed,
        req::Readiness::Healthy => wit_requests::Readiness::Healthy,
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
                req::SecretVerb::Update => wit_requests::SecretVerb::Update,
                req::SecretVerb::Delete => wit_requests::SecretVerb::Delete,
            },
            value: request.value.as_ref().map(json),
            version: request.version,
        }),
        req::Operation::Http(request) => Operation::Http(wit_requests::HttpRequest {
            method: request.method.clone(),
            url: request.url.clone(),
            headers: request.headers.clone(),
            body: request.body.clone(),
        }),
        req::Operation::Extension(request) => {
            Operation::Extension(wit_requests::ExtensionRequest {
                extension: request.extension.clone(),
                verb: request.verb.clone(),
                target: request.target.clone(),
                body: request.body.as_ref().map(json),
            })
        }
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
                config_type: config_type(request.config_type),
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

pub(super) fn config_type(config_type: req::ConfigType) -> wit_requests::ConfigType {
    match config_type {
        req::ConfigType::Pod => wit_requests::ConfigType::Pod,
        req::ConfigType::Node => wit_requests::ConfigType::Node,
        req::ConfigType::Namespace => wit_requests::ConfigType::Namespace,
        req::ConfigType::Workload => wit_requests::ConfigType::Workload,
    }
}
