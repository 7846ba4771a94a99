//! What a handler returned, checked and in the words of the core.

use std::time::Duration;

use configurator_core::document::Document;
use configurator_core::handler as core;
use configurator_core::handler::CallFault;
use configurator_core::request as req;

use super::bindings::configurator::handler::{requests as wit_requests, types as wit_types};
use super::bindings::exports::configurator::handler::handler as wit;

/// What an element of a list counts besides its texts, in bytes.
const ELEMENT: u64 = 16;

pub(super) fn handler_output(
    output: Result<wit::HandlerOutput, wit::HandlerError>,
    limits: &core::CallLimits,
) -> Result<core::HandlerOutput, CallFault> {
    let mut reader = Reader {
        size: 0,
        limit: limits.output_size,
        status_limit: limits.status_size,
    };
    match output {
        Ok(output) => reader.handler_output(output),
        Err(error) => Err(CallFault::Handler(reader.handler_error(error)?)),
    }
}

pub(super) fn module_description(
    description: wit::ModuleDescription,
    limit: u64,
) -> Result<core::ModuleDescription, CallFault> {
    let mut reader = Reader {
        size: 0,
        limit,
        status_limit: 0,
    };
    let handlers = reader.list(description.handlers, Reader::handler_description)?;
    Ok(core::ModuleDescription { handlers })
}

/// Counts what it reads; stops at the limit.
struct Reader {
    size: u64,
    limit: u64,
    /// For one status.
    status_limit: u64,
}

type Read<T> = Result<T, CallFault>;

impl Reader {
    fn handler_output(&mut self, output: wit::HandlerOutput) -> Read<core::HandlerOutput> {
        Ok(core::HandlerOutput {
            requests: self.requests(output.requests)?,
            pass_through_args: self.list(output.pass_through_args, |reader, (name, value)| {
                let value = reader.json(value, || format!("pass-through-args {name:?}"))?;
                Ok((reader.text(name)?, value))
            })?,
            outcome: self.outcome(output.outcome)?,
            next: self.optional_text(output.next)?,
            statuses: self.list(output.statuses, |reader, update| {
                let (size, limit) = (update.status.len() as u64, reader.status_limit);
                if size > limit {
                    return Err(CallFault::StatusTooLarge { size, limit });
                }
                Ok(core::StatusUpdate {
                    of: reader.optional(update.of, Self::object_ref)?,
                    status: reader.json(update.status, || "statuses: status".into())?,
                })
            })?,
            data: self.optional_json(output.data, || "data".into())?,
            events: self.list(output.events, Self::event)?,
            progress: self.optional(output.progress, Self::progress)?,
            output: self.optional_json(output.output, || "output".into())?,
            details: self.optional_json(output.details, || "details".into())?,
            desired: self.optional(output.desired, |reader, set| {
                Ok(core::DesiredSet {
                    objects: reader.list(set.objects, Self::desired_object)?,
                    allow_empty: set.allow_empty,
                })
            })?,
        })
    }

    fn outcome(&mut self, outcome: wit::Outcome) -> Read<core::Outcome> {
        Ok(match outcome {
            wit::Outcome::Done => core::Outcome::Done,
            wit::Outcome::Again(after) => core::Outcome::Again(after.map(Duration::from_millis)),
            wit::Outcome::Wait(wake) => core::Outcome::Wait(core::Wake {
                after: wake.after.map(Duration::from_millis),
                signals: self.list(wake.signals, Self::text)?,
                objects: self.list(wake.objects, Self::object_key)?,
            }),
            wit::Outcome::Failed(error) => core::Outcome::Failed(self.handler_error(error)?),
            wit::Outcome::Stop => core::Outcome::Stop,
        })
    }

    fn handler_error(&mut self, error: wit::HandlerError) -> Read<core::HandlerError> {
        Ok(core::HandlerError {
            message: self.text(error.message)?,
            fatal: error.fatal,
            retry_after: error.retry_after.map(Duration::from_millis),
            code: self.optional_text(error.code)?,
        })
    }

    fn event(&mut self, event: wit::Event) -> Read<core::Event> {
        Ok(core::Event {
            of: self.optional(event.of, Self::object_ref)?,
            event_type: match event.event_type {
                wit::EventType::Normal => core::EventType::Normal,
                wit::EventType::Warning => core::EventType::Warning,
            },
            reason: self.text(event.reason)?,
            message: self.text(event.message)?,
        })
    }

    fn progress(&mut self, progress: wit::Progress) -> Read<core::Progress> {
        if progress.percent > 100 {
            return Err(invalid(format!(
                "progress: percent is {}, and must be 0 to 100",
                progress.percent
            )));
        }
        Ok(core::Progress {
            percent: progress.percent,
            message: self.text(progress.message)?,
        })
    }

    fn desired_object(&mut self, object: wit::DesiredObject) -> Read<core::DesiredObject> {
        let name = self.text(object.name)?;
        Ok(core::DesiredObject {
            object: self.json(object.object, || format!("desired {name:?}: object"))?,
            depends_on: self.list(object.depends_on, Self::text)?,
            ready_when: self.optional(object.ready_when, Self::readiness)?,
            retain: object.retain,
            name,
        })
    }

    fn handler_description(
        &mut self,
        handler: wit::HandlerDescription,
    ) -> Read<core::HandlerDescription> {
        let name = self.text(handler.name)?;
        Ok(core::HandlerDescription {
            description: self.text(handler.description)?,
            view: match handler.view {
                wit::View::None => core::View::None,
                wit::View::CheckList => core::View::CheckList,
                wit::View::ObjectDetail => core::View::ObjectDetail,
            },
            accepts: match handler.accepts {
                wit::Accepts::One => core::Accepts::One,
                wit::Accepts::Batch => core::Accepts::Batch,
                wit::Accepts::Either => core::Accepts::Either,
            },
            parameters_schema: self.optional_json(handler.parameters_schema, || {
                format!("handler {name:?}: parameters-schema")
            })?,
            capabilities: self.optional_json(handler.capabilities, || {
                format!("handler {name:?}: capabilities")
            })?,
            name,
        })
    }

    fn requests(&mut self, requests: wit_requests::Requests) -> Read<req::Requests> {
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

    fn request(&mut self, request: wit_requests::ResourceRequest) -> Read<req::Request> {
        let name = self.text(request.request_name)?;
        let mut operation = self.operation(request.operation, &name)?;
        if let Some(partition) = self.optional_text(request.partition)? {
            match &mut operation {
                req::Operation::Config(config) => config.partition = Some(partition),
                req::Operation::Secret(secret) => secret.partition = Some(partition),
                req::Operation::Kubernetes(_) | req::Operation::Http(_) => {
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

    fn readiness(&mut self, readiness: wit_requests::Readiness) -> Read<req::Readiness> {
        Ok(match readiness {
            wit_requests::Readiness::Exists => req::Readiness::Exists,
            wit_requests::Readiness::Observed => req::Readiness::Observed,
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
                    wit_requests::SecretVerb::Delete => req::SecretVerb::Delete,
                },
                value: self
                    .optional_json(request.value, || format!("request {request_name:?}: value"))?,
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
            config_type: match request.config_type {
                wit_requests::ConfigType::Pod => req::ConfigType::Pod,
                wit_requests::ConfigType::Node => req::ConfigType::Node,
                wit_requests::ConfigType::Namespace => req::ConfigType::Namespace,
                wit_requests::ConfigType::Workload => req::ConfigType::Workload,
            },
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

    fn object_ref(&mut self, object: wit_types::ObjectRef) -> Read<req::ObjectRef> {
        Ok(req::ObjectRef {
            namespace: self.text(object.namespace)?,
            name: self.text(object.name)?,
        })
    }

    fn object_key(&mut self, key: wit_types::ObjectKey) -> Read<req::ObjectKey> {
        Ok(req::ObjectKey {
            group: self.text(key.group)?,
            version: self.text(key.version)?,
            plural: self.text(key.plural)?,
            namespace: self.text(key.namespace)?,
            name: self.text(key.name)?,
        })
    }

    fn json(&mut self, text: String, place: impl FnOnce() -> String) -> Read<Document> {
        self.count(text.len() as u64)?;
        Document::parse(text).map_err(|error| invalid(format!("{} is {error}", place())))
    }

    fn optional_json(
        &mut self,
        text: Option<String>,
        place: impl FnOnce() -> String,
    ) -> Read<Option<Document>> {
        self.optional(text, |reader, text| reader.json(text, place))
    }

    fn text(&mut self, text: String) -> Read<String> {
        self.count(text.len() as u64)?;
        Ok(text)
    }

    fn optional_text(&mut self, text: Option<String>) -> Read<Option<String>> {
        self.optional(text, Self::text)
    }

    fn optional<T, U>(
        &mut self,
        value: Option<T>,
        read: impl FnOnce(&mut Self, T) -> Read<U>,
    ) -> Read<Option<U>> {
        value.map(|value| read(self, value)).transpose()
    }

    fn list<T, U>(
        &mut self,
        items: Vec<T>,
        mut read: impl FnMut(&mut Self, T) -> Read<U>,
    ) -> Read<Vec<U>> {
        self.count((items.len() as u64).saturating_mul(ELEMENT))?;
        items.into_iter().map(|item| read(self, item)).collect()
    }

    fn count(&mut self, bytes: u64) -> Read<()> {
        self.size = self.size.saturating_add(bytes);
        if self.size > self.limit {
            return Err(CallFault::OutputTooLarge {
                size: self.size,
                limit: self.limit,
            });
        }
        Ok(())
    }
}

fn invalid(message: String) -> CallFault {
    CallFault::InvalidOutput { message }
}
