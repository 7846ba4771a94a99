//! A request in one line, for golden tests and logs.

use std::fmt::{self, Display, Formatter};

use crate::bindings::configurator::handler::requests::{
    ConfigAppConfRequest, ConfigAppConfVerb, ConfigBasicRequest, ConfigBasicVerb, ConfigOperation,
    ConfigResourceRequest, ConfigTwoLayersRequest, ConfigTwoLayersVerb, ConfigType, ConfigVerb,
    KubernetesResourceRequest, KubernetesVerb, PatchType, SecretVerb,
};
use crate::{OnError, Operation, Readiness, Request};

/// Name, operation, target, body, and the options that differ from the defaults. Not a stable format.
impl Display for Request {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.request_name)?;
        match &self.operation {
            Operation::Kubernetes(request) => kubernetes(f, request)?,
            Operation::ConfigResource(request) => resource(f, request)?,
            Operation::ConfigAppConf(request) => app_conf(f, request)?,
            Operation::ConfigBasic(request) => basic(f, request)?,
            Operation::ConfigTwoLayers(request) => two_layers(f, request)?,
            Operation::ConfigTransaction(transaction) => {
                f.write_str("config transaction")?;
                for operation in &transaction.operations {
                    f.write_str("\n  ")?;
                    match operation {
                        ConfigOperation::Resource(request) => resource(f, request)?,
                        ConfigOperation::AppConf(request) => app_conf(f, request)?,
                        ConfigOperation::Basic(request) => basic(f, request)?,
                        ConfigOperation::TwoLayers(request) => two_layers(f, request)?,
                    }
                }
            }
            Operation::Secret(request) => {
                let verb = match request.verb {
                    SecretVerb::Get => "get",
                    SecretVerb::Create => "create",
                    SecretVerb::Update => "update",
                    SecretVerb::Delete => "delete",
                };
                write!(f, "secret {verb} {}", request.secret_name)?;
                if request.value.is_some() {
                    f.write_str(" = (a value)")?;
                }
                if let Some(version) = request.version {
                    write!(f, ", version {version}")?;
                }
            }
            Operation::Http(request) => write!(f, "http {} {}", request.method, request.url)?,
            Operation::Extension(request) => {
                let (extension, verb) = (&request.extension, &request.verb);
                write!(f, "extension {extension} {verb} {}", request.target)?;
                if let Some(body) = &request.body {
                    write!(f, " {body}")?;
                }
            }
        }
        option(f, "group-by", &self.group_by)?;
        if let Some(of) = &self.of {
            write!(f, ", of {}/{}", of.namespace, of.name)?;
        }
        match self.on_error {
            Some(OnError::Fail) => f.write_str(", on-error fail")?,
            Some(OnError::CatchError) => f.write_str(", on-error catch-error")?,
            Some(OnError::DropError) => f.write_str(", on-error drop-error")?,
            None => {}
        }
        for name in &self.depends_on {
            write!(f, ", depends-on {name}")?;
        }
        ready_when(f, self.ready_when.as_ref())?;
        if let Some(timeout) = self.timeout {
            write!(f, ", timeout {timeout} ms")?;
        }
        option(f, "partition", &self.partition)?;
        flag(f, "declarative", self.is_declarative)?;
        flag(f, "bootstrap-dep", self.bootstrap_dep)?;
        flag(f, "once", self.once)
    }
}

pub(crate) fn ready_when(f: &mut Formatter<'_>, readiness: Option<&Readiness>) -> fmt::Result {
    let text = match readiness {
        None => return Ok(()),
        Some(Readiness::Exists) => "exists",
        Some(Readiness::Observed) => "observed",
        Some(Readiness::Healthy) => "healthy",
        Some(Readiness::Expression(text)) => text,
    };
    write!(f, ", ready-when {text}")
}

fn kubernetes(f: &mut Formatter<'_>, request: &KubernetesResourceRequest) -> fmt::Result {
    let verb = match request.verb {
        KubernetesVerb::Get => "get",
        KubernetesVerb::List => "list",
        KubernetesVerb::Patch => match request.patch_type {
            None | Some(PatchType::Merge) => "patch",
            Some(PatchType::JsonPatch) => "json-patch",
            Some(PatchType::Strategic) => "strategic-patch",
        },
        KubernetesVerb::Delete => "delete",
        KubernetesVerb::Create => "create",
        KubernetesVerb::Replace => "replace",
        KubernetesVerb::Apply => "apply",
    };
    write!(f, "kubernetes {verb} {}", request.plural)?;
    if !request.group.is_empty() {
        write!(f, ".{}", request.group)?;
    }
    if let Some(subresource) = &request.subresource {
        write!(f, "/{subresource}")?;
    }
    match (request.namespace.as_str(), request.name.as_str()) {
        ("", "") => {}
        ("", name) => write!(f, " {name}")?,
        (namespace, name) => write!(f, " {namespace}/{name}")?,
    }
    if let Some(body) = &request.resource_body {
        write!(f, " {body}")?;
    }
    option(f, "fields", &request.field_selector)?;
    option(f, "labels", &request.label_selector)?;
    flag(f, "cached", request.cached == Some(true))?;
    flag(f, "forced", request.force == Some(true))?;
    flag(f, "no precheck", request.precheck_exist == Some(false))?;
    if let Some(precondition) = &request.precondition {
        option(f, "uid", &precondition.uid)?;
        option(f, "resource-version", &precondition.resource_version)?;
    }
    Ok(())
}

fn resource(f: &mut Formatter<'_>, request: &ConfigResourceRequest) -> fmt::Result {
    let verb = match request.config_verb {
        ConfigVerb::Get => "get",
        ConfigVerb::Delete => "delete",
        ConfigVerb::Update => "update",
        ConfigVerb::Create => "create",
    };
    let config_type = match request.config_type {
        ConfigType::Pod => "pod",
        ConfigType::Node => "node",
        ConfigType::Namespace => "namespace",
        ConfigType::Workload => "workload",
    };
    write!(f, "config {verb} {config_type} ")?;
    for part in [&request.namespace, &request.workload_kind]
        .into_iter()
        .flatten()
    {
        write!(f, "{part}/")?;
    }
    f.write_str(&request.resource_name)?;
    if let Some(uid) = &request.resource_uid {
        write!(f, " ({uid})")?;
    }
    value(f, &request.value)
}

fn app_conf(f: &mut Formatter<'_>, request: &ConfigAppConfRequest) -> fmt::Result {
    let verb = match request.verb {
        ConfigAppConfVerb::Create => "create",
        ConfigAppConfVerb::Delete => "delete",
        ConfigAppConfVerb::Update => "update",
    };
    write!(f, "config {verb} app-conf ")?;
    if let Some(namespace) = &request.namespace {
        write!(f, "{namespace}/")?;
    }
    write!(f, "{} {}", request.pod_name, request.key)?;
    value(f, &request.value)
}

fn basic(f: &mut Formatter<'_>, request: &ConfigBasicRequest) -> fmt::Result {
    let verb = match request.verb {
        ConfigBasicVerb::Get => "get",
        ConfigBasicVerb::Put => "put",
        ConfigBasicVerb::Delete => "delete",
    };
    write!(f, "config {verb} basic {}", request.key)?;
    value(f, &request.value)
}

fn two_layers(f: &mut Formatter<'_>, request: &ConfigTwoLayersRequest) -> fmt::Result {
    let verb = match request.verb {
        ConfigTwoLayersVerb::Get => "get",
        ConfigTwoLayersVerb::Create => "create",
        ConfigTwoLayersVerb::Update => "update",
        ConfigTwoLayersVerb::Delete => "delete",
    };
    write!(
        f,
        "config {verb} two-layers {} {}",
        request.second_path, request.third_path
    )?;
    value(f, &request.value)
}

fn value(f: &mut Formatter<'_>, value: &Option<String>) -> fmt::Result {
    value
        .as_ref()
        .map_or(Ok(()), |value| write!(f, " = {value}"))
}

fn option(f: &mut Formatter<'_>, name: &str, value: &Option<String>) -> fmt::Result {
    value
        .as_ref()
        .map_or(Ok(()), |value| write!(f, ", {name} {value}"))
}

fn flag(f: &mut Formatter<'_>, name: &str, set: bool) -> fmt::Result {
    if set { write!(f, ", {name}") } else { Ok(()) }
}
