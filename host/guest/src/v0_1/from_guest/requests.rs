//! The requests of an output.

use std::time::Duration;

use configurator_core::request as req;

use super::super::bindings::configurator::handler::requests as wit_requests;
use super::{Read, Reader, invalid};

impl Reader {
    pub(super) fn requests(&mut self, requests: wit_requests::Requests) -> Read<req::Requests> {
        Ok(req::Requests {
            execute_strategy: match requests.execute_strategy {
                Some(wit_requests::ExecuteStrategy::Serial) => req::ExecuteStrategy::Serial,
                Some(wit_requests::ExecuteStrategy::Parallel) | None => {
                    req::ExecuteStrategy::Parallel
                }
                Some(wit_requests::ExecuteStrategy::Graph) => req::ExecuteStrategy::Graph,
            },
            resource_requests: self.list(requests.resource_requests, Self::request)?,
            batch_error_strategy: match requests.batch_error_strategy {
                Some(wit_requests::BatchErrorStrategy::DropError) => {
                    req::BatchErrorStrategy::DropError
                }
                Some(wit_requests::BatchErrorStrategy::CatchError) | None => {
                    req::BatchErrorStrategy::CatchError
                }
            },
        })
    }

    pub(super) fn request(&mut self, request: wit_requests::ResourceRequest) -> Read<req::Request> {
        let name = self.text(request.request_name)?;
        let mut operation = self.operation(request.operation, &name)?;
        if let Some(partition) = self.optional_text(request.partition)? {
            match &mut operation {
                req::Operation::Config(config) => config.partition = Some(partition),
                req::Operation::Secret(secret) => secret.partition = Some(partition),
                req::Operation::Kubernetes(_)
                | req::Operation::Http(_)
                | req::Operation::Extension(_) => {
                    return Err(invalid(format!(
                        "request {name:?}: `partition` is for the config store and the secret store only"
                    )));
                }
            }
        }
        Ok(req::Request {
            is_declarative: request.is_declarative,
            group_by: self.optional_text(request.group_by)?,
            bootstrap_dep: request.bootstrap_dep,
            of: self.optional(request.of, Self::object_ref)?,
            on_error: request.on_error.map(|on_error| match on_error {
                wit_requests::OnError::Fail => req::OnError::Fail,
                wit_requests::OnError::CatchError => req::OnError::CatchError,
                wit_requests::OnError::DropError => req::OnError::DropError,
            }),
            depends_on: self.list(request.depends_on, Self::text)?,
            ready_when: self.optional(request.ready_when, Self::readiness)?,
            once: request.once,
            timeout: request.timeout.map(Duration::from_millis),
            operation,
            name,
        })
    }

    pub(super) fn readiness(&mut self, readiness: wit_requests::Readiness) -> Read<req::Readiness> {
        Ok(match readiness {
            wit_requests::Readiness::Exists => req::Readiness::Exists,
            wit_requests::Readiness::Observed => req::Readiness::Observed,
            wit_requests::Readiness::Healthy => req::Readiness::Healthy,
            wit_requests::Readiness::Expression(text) => {
                req::Readiness::Expression(self.text(text)?)
            }
        })
    }

    fn operation(
        &mut self,
        operation: wit_requests::Operation,
        request_name: &str,
    ) -> Read<req::Operation> {
        use wit_requests::Operation as Wit;
        let single = |operation| {
            req::Operation::Config(req::ConfigRequest {
                is_transaction: false,
                operations: vec![operation],
                partition: None,
            })
        };
        Ok(match operation {
            Wit::Kubernetes(request) => {
                req::Operation::Kubernetes(self.kubernetes(request, request_name)?)
            }
            Wit::ConfigResource(request) => single(self.config_resource(request)?),
            Wit::ConfigAppConf(request) => single(self.config_app_conf(request)?),
            Wit::ConfigBasic(request) => single(self.config_basic(request)?),
            Wit::ConfigTwoLayers(request) => single(self.config_two_layers(request)?),
            Wit::ConfigTransaction(transaction) => req::Operation::Config(req::ConfigRequest {
                is_transaction: true,
                operations: self.list(transaction.operations, Self::config_operation)?,
                partition: None,
            }),
            Wit::Secret(request) => req::Operation::Secret(req::SecretRequest {
                name: self.text(request.secret_name)?,
                verb: match request.verb {
                    wit_requests::SecretVerb::Get => req::SecretVerb::Get,
                    wit_requests::SecretVerb::Create => req::SecretVerb::Create,
                    wit_requests::SecretVerb::Update => req::SecretVerb::Update,
                    wit_requests::SecretVerb::Delete => req::SecretVerb::Delete,
                },
                value: self
                    .optional_json(request.value, || format!("request {request_name:?}: value"))?,
                version: request.version,
                partition: None,
            }),
            Wit::Http(request) => req::Operation::Http(req::HttpRequest {
                method: self.text(request.method)?,
                url: self.text(request.url)?,
                headers: self.list(request.headers, |reader, (name, value)| {
                    Ok((reader.text(name)?, reader.text(value)?))
                })?,
                body: self.optional(request.body, |reader, body| {
                    reader.count(body.len() as u64)?;
                    Ok(body)
                })?,
            }),
            Wit::Extension(request) => req::Operation::Extension(req::ExtensionRequest {
                extension: self.text(request.extension)?,
                verb: self.text(request.verb)?,
                target: self.text(request.target)?,
                body: self
                    .optional_json(request.body, || format!("request {request_name:?}: body"))?,
            }),
        })
    }

    fn kubernetes(
        &mut self,
        request: wit_requests::KubernetesResourceRequest,
        request_name: &str,
    ) -> Read<req::KubernetesRequest> {
        Ok(req::KubernetesRequest {
            group: self.text(request.group)?,
            version: self.text(request.version)?,
            plural: self.text(request.plural)?,
            kind: self.text(request.kind)?,
            namespace: self.text(request.namespace)?,
            name: self.text(request.name)?,
            verb: match request.verb {
                wit_requests::KubernetesVerb::Get => req::KubernetesVerb::Get,
                wit_requests::KubernetesVerb::List => req::KubernetesVerb::List,
                wit_requests::KubernetesVerb::Patch => req::KubernetesVerb::Patch,
                wit_requests::KubernetesVerb::Delete => req::KubernetesVerb::Delete,
                wit_requests::KubernetesVerb::Create => req::KubernetesVerb::Create,
                wit_requests::KubernetesVerb::Replace => req::KubernetesVerb::Replace,
                wit_requests::KubernetesVerb::Apply => req::KubernetesVerb::Apply,
            },
            subresource: self.optional_text(request.subresource)?,
            field_selector: self.optional_text(request.field_selector)?,
            label_selector: self.optional_text(request.label_selector)?,
            body: self.optional_json(request.resource_body, || {
                format!("request {request_name:?}: resource-body")
            })?,
            patch_type: match request.patch_type {
                Some(wit_requests::PatchType::Merge) | None => req::PatchType::Merge,
                Some(wit_requests::PatchType::JsonPatch) => req::PatchType::Json,
                Some(wit_requests::PatchType::Strategic) => req::PatchType::Strategic,
            },
            precheck_exist: request.precheck_exist.unwrap_or(true),
            force: request.force.unwrap_or(false),
            cached: request.cached.unwrap_or(false),
            propagation_policy: match request.propagation_policy {
                Some(wit_requests::PropagationPolicy::Background) | None => {
                    req::PropagationPolicy::Background
                }
                Some(wit_requests::PropagationPolicy::Foreground) => {
                    req::PropagationPolicy::Foreground
                }
                Some(wit_requests::PropagationPolicy::Orphan) => req::PropagationPolicy::Orphan,
            },
            precondition: self.optional(request.precondition, |reader, precondition| {
                Ok(req::Precondition {
                    uid: reader.optional_text(precondition.uid)?,
                    resource_version: reader.optional_text(precondition.resource_version)?,
                })
            })?,
        })
    }

    fn config_operation(
        &mut self,
        operation: wit_requests::ConfigOperation,
    ) -> Read<req::ConfigOperation> {
        match operation {
            wit_requests::ConfigOperation::Resource(request) => self.config_resource(request),
            wit_requests::ConfigOperation::AppConf(request) => self.config_app_conf(request),
            wit_requests::ConfigOperation::Basic(request) => self.config_basic(request),
            wit_requests::ConfigOperation::TwoLayers(request) => self.config_two_layers(request),
        }
    }

    fn config_resource(
        &mut self,
        request: wit_requests::ConfigResourceRequest,
    ) -> Read<req::ConfigOperation> {
        Ok(req::ConfigOperation::Resource(req::ConfigResource {
            config_type: config_type(request.config_type),
            verb: match request.config_verb {
                wit_requests::ConfigVerb::Get => req::ConfigVerb::Get,
                wit_requests::ConfigVerb::Create => req::ConfigVerb::Create,
                wit_requests::ConfigVerb::Update => req::ConfigVerb::Update,
                wit_requests::ConfigVerb::Delete => req::ConfigVerb::Delete,
            },
            name: self.text(request.resource_name)?,
            uid: self.optional_text(request.resource_uid)?,
            namespace: self.optional_text(request.namespace)?,
            workload_kind: self.optional_text(request.workload_kind)?,
            value: self.optional_text(request.value)?,
        }))
    }

    fn config_app_conf(
        &mut self,
        request: wit_requests::ConfigAppConfRequest,
    ) -> Read<req::ConfigOperation> {
        Ok(req::ConfigOperation::AppConf(req::ConfigAppConf {
            verb: match request.verb {
                wit_requests::ConfigAppConfVerb::Create => req::ConfigVerb::Create,
                wit_requests::ConfigAppConfVerb::Update => req::ConfigVerb::Update,
                wit_requests::ConfigAppConfVerb::Delete => req::ConfigVerb::Delete,
            },
            pod_name: self.text(request.pod_name)?,
            namespace: self.optional_text(request.namespace)?,
            key: self.text(request.key)?,
            value: self.optional_text(request.value)?,
        }))
    }

    fn config_basic(
        &mut self,
        request: wit_requests::ConfigBasicRequest,
    ) -> Read<req::ConfigOperation> {
        Ok(req::ConfigOperation::Basic(req::ConfigBasic {
            verb: match request.verb {
                wit_requests::ConfigBasicVerb::Get => req::ConfigVerb::Get,
                wit_requests::ConfigBasicVerb::Put => req::ConfigVerb::Update,
                wit_requests::ConfigBasicVerb::Delete => req::ConfigVerb::Delete,
            },
            key: self.text(request.key)?,
            value: self.optional_text(request.value)?,
        }))
    }

    fn config_two_layers(
        &mut self,
        request: wit_requests::ConfigTwoLayersRequest,
    ) -> Read<req::ConfigOperation> {
        Ok(req::ConfigOperation::TwoLayers(req::ConfigTwoLayers {
            verb: match request.verb {
                wit_requests::ConfigTwoLayersVerb::Get => req::ConfigVerb::Get,
                wit_requests::ConfigTwoLayersVerb::Create => req::ConfigVerb::Create,
                wit_requests::ConfigTwoLayersVerb::Update => req::ConfigVerb::Update,
                wit_requests::ConfigTwoLayersVerb::Delete => req::ConfigVerb::Delete,
            },
            second_path: self.text(request.second_path)?,
            third_path: self.text(request.third_path)?,
            value: self.optional_text(request.value)?,
        }))
    }
}

pub(super) fn config_type(config_type: wit_requests::ConfigType) -> req::ConfigType {
    match config_type {
        wit_requests::ConfigType::Pod => req::ConfigType::Pod,
        wit_requests::ConfigType::Node => req::ConfigType::Node,
        wit_requests::ConfigType::Namespace => req::ConfigType::Namespace,
        wit_requests::ConfigType::Workload => req::ConfigType::Workload,
    }
}
