//! What an output must be before anything of it is carried out.

use std::collections::BTreeMap;

use crate::desired::check::Defaults;
use crate::desired::writes::check_writes;
use crate::fault::{Fault, FaultKind};
use crate::handler::{HandlerOutput, Outcome};
use crate::layers;
use crate::partition;
use crate::plan::{self, InvalidRequest, Plan, namespace_of};
use crate::request::{
    ConfigOperation, ConfigVerb, ExecuteStrategy, ExtensionRequest, KubernetesRequest,
    KubernetesVerb, ObjectKey, ObjectRef, Operation, Request, SecretRequest, SecretVerb,
};
use crate::text::quoted;

/// The longest name of a request or a group, in bytes.
pub const MAX_NAME: usize = 256;

/// The longest name, verb and target of a request to an extension, in bytes.
pub const MAX_EXTENSION_TEXT: usize = 1024;

/// What the phases of a run have applied to so far, each with the phase that did. A subresource has owners of its
/// own at the server, so it is told apart from the object.
pub type Applied = BTreeMap<(ObjectKey, Option<String>), String>;

/// What an output is checked against.
#[derive(Debug, Clone, Copy)]
pub struct OutputRules<'a> {
    /// The objects of the run.
    pub members: &'a [ObjectRef],
    /// Whether the handler got a list.
    pub is_batch: bool,
    /// The most requests.
    pub max_requests: usize,
    /// What earlier phases of the run applied to.
    pub applied: &'a Applied,
    /// Whether the handler is a leaf of a machine's tree: it may be entered again, wait, and name the next phase.
    pub is_leaf: bool,
    /// Whether the handler may return a set.
    pub sets: SetRule<'a>,
    /// The namespace whose partition of the stores is meant where none is named; empty for that of cluster-scoped Configurators.
    pub partition: &'a str,
}

/// Whether a handler may return a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetRule<'a> {
    /// It may.
    Allowed,
    /// The Configurator does not declare sets.
    Undeclared,
    /// The handler is of a node whose requests are sent but once.
    Once,
    /// The handler only says whether a check of a stable phase is so.
    Check,
    /// The object is being deleted.
    Deletion,
    /// An earlier phase of the run, of this name, has returned one.
    Taken(&'a str),
}

/// Checks an output.
///
/// # Errors
/// The first thing that is wrong, naming the requests: [`FaultKind::UnsupportedResourceOperation`] for what this
/// host cannot do, [`FaultKind::ResourceGeneric`] for everything else. A handler is a pure function, so neither is
/// retried.
pub fn check(output: &HandlerOutput, rules: OutputRules<'_>) -> Result<(), Fault> {
    check_outcome(output, rules.is_leaf)?;
    if output.desired.is_some() {
        check_set(rules)?;
    }
    let requests = &output.requests.resource_requests;
    if requests.len() > rules.max_requests {
        return Err(invalid(format!(
            "{} requests; limits.requests allows {}",
            requests.len(),
            rules.max_requests
        )));
    }
    check_names(requests)?;
    if output.requests.execute_strategy == ExecuteStrategy::Graph {
        check_graph(requests)?;
    } else if let Some(request) = requests.iter().find(|request| is_of_graph(request)) {
        return Err(invalid(format!(
            "request {:?}: `depends-on` and `ready-when` are valid with the strategy `graph` only",
            request.name
        )));
    }
    check_applies(requests, rules.applied)?;
    let default_namespace = rules
        .members
        .first()
        .map_or("", |member| member.namespace.as_str());
    for request in requests {
        check_request(request, rules, default_namespace).map_err(|fault| Fault {
            message: format!("request {:?}: {}", request.name, fault.message),
            ..fault
        })?;
    }
    if let Some(set) = &output.desired {
        let defaults = Defaults {
            namespace: default_namespace,
            partition: rules.partition,
        };
        check_writes(set, requests, defaults).map_err(invalid)?;
    }
    let mut names = std::collections::BTreeSet::new();
    for (name, _) in &output.pass_through_args {
        if !names.insert(name) {
            return Err(invalid(format!(
                "two pass-through arguments are named {}",
                quoted(name)
            )));
        }
    }
    let of_statuses = output
        .statuses
        .iter()
        .map(|status| ("a status", &status.of));
    let of_events = output.events.iter().map(|event| ("an event", &event.of));
    for (what, of) in of_statuses.chain(of_events) {
        check_of(of.as_ref(), rules).map_err(|why| invalid(format!("{what} {why}")))?;
        if of.is_none() && rules.is_batch {
            return Err(invalid(format!(
                "{what} of a batch must name its object in `of`"
            )));
        }
    }
    for status in &output.statuses {
        if !is_object(status.status.as_str()) {
            return Err(invalid("a status must be a JSON object".to_owned()));
        }
    }
    Ok(())
}

fn check_outcome(output: &HandlerOutput, is_leaf: bool) -> Result<(), Fault> {
    if output.next.is_some() && !is_leaf {
        return Err(unsupported(
            "`next` is valid in nodes of a machine only".to_owned(),
        ));
    }
    if !output.remove_from_plan.is_empty() || !output.reads.is_empty() {
        return Err(unsupported(
            "`remove-from-plan` and `reads` are not valid outside a pipeline".to_owned(),
        ));
    }
    match &output.outcome {
        Outcome::Done => Ok(()),
        Outcome::Failed(_) if output.requests.resource_requests.is_empty() => Ok(()),
        Outcome::Failed(_) => Err(invalid(
            "an outcome `failed` must come without requests".to_owned(),
        )),
        Outcome::Again(_) | Outcome::Wait(_) if is_leaf => Ok(()),
        Outcome::Again(_) => Err(unsupported(
            "the outcome `again` is valid in nodes of a machine only".to_owned(),
        )),
        Outcome::Wait(_) => Err(unsupported(
            "the outcome `wait` is valid in nodes of a machine only".to_owned(),
        )),
        Outcome::Stop => Err(unsupported(
            "the outcome `stop` is not valid outside a pipeline".to_owned(),
        )),
    }
}

/// Checks that a set may be returned at all. Its content is checked later: that needs the API server.
fn check_set(rules: OutputRules<'_>) -> Result<(), Fault> {
    if rules.is_batch {
        return Err(unsupported(
            "`desired` is not valid with batches: a set belongs to one object".to_owned(),
        ));
    }
    match rules.sets {
        SetRule::Allowed => Ok(()),
        SetRule::Undeclared => Err(unsupported(
            "`desired` needs `spec.sets`, which the Configurator does not have".to_owned(),
        )),
        SetRule::Once => Err(unsupported(
            "`desired` is not valid in a node with `once`: what a set needs is sent as often as it takes"
                .to_owned(),
        )),
        SetRule::Check => Err(unsupported(
            "`desired` is not valid in the handler of an event of a stable phase; return it in its `upkeep`"
                .to_owned(),
        )),
        SetRule::Deletion => Err(unsupported(
            "`desired` is not valid in the phases of a deletion: the host deletes the members"
                .to_owned(),
        )),
        SetRule::Taken(phase) => Err(unsupported(format!(
            "`desired` was returned by phase {phase:?} of this run, and a run has one set"
        ))),
    }
}

fn check_names(requests: &[Request]) -> Result<(), Fault> {
    let mut groups: BTreeMap<&str, &str> = BTreeMap::new();
    for request in requests {
        for name in [Some(&request.name), request.group_by.as_ref()]
            .into_iter()
            .flatten()
        {
            if name.is_empty() || name.len() > MAX_NAME {
                return Err(invalid(format!(
                    "the name {} of a request or group must have 1 to {MAX_NAME} bytes",
                    quoted(name)
                )));
            }
        }
        if let Some(group) = &request.group_by {
            groups.entry(group).or_insert(&request.name);
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    for request in requests {
        if !seen.insert(request.name.as_str()) {
            return Err(invalid(format!(
                "two requests are named {:?}",
                request.name
            )));
        }
        if let Some(member) = groups.get(request.name.as_str()) {
            return Err(invalid(format!(
                "the request {:?} has the name of the group that the request {member:?} is in",
                request.name
            )));
        }
    }
    Ok(())
}

fn is_of_graph(request: &Request) -> bool {
    !request.depends_on.is_empty() || request.ready_when.is_some()
}

/// Checks that requests can be ordered, and that nothing waits for what the host does not learn.
fn check_graph(requests: &[Request]) -> Result<(), Fault> {
    let order = plan::order_of(requests).map_err(invalid_request)?;
    for (index, request) in requests.iter().enumerate() {
        let wrong = |why: &str| Err(invalid(format!("request {:?}: {why}", request.name)));
        let is_declarative = request.is_declarative;
        if is_declarative && !order.dependents(index).is_empty() {
            return wrong("it is declarative, so no request may depend on it");
        }
        if request.ready_when.is_some() && (is_declarative || !request.operation.answers_object()) {
            return wrong(
                "`ready-when` needs an object to be ready: it is for requests that read or write one Kubernetes object, do not delete it, and are not declarative",
            );
        }
    }
    Ok(())
}

/// Each apply is complete, so two of one manager to one object would undo one another.
fn check_applies(requests: &[Request], applied: &Applied) -> Result<(), Fault> {
    let mut here: BTreeMap<(ObjectKey, Option<String>), &str> = BTreeMap::new();
    for (request, kubernetes) in applies(requests) {
        let key = (kubernetes.object_key(), kubernetes.subresource.clone());
        let named = format!("{:.MAX_NAME$}", kubernetes.to_string());
        if let Some(phase) = applied.get(&key) {
            return Err(invalid(format!(
                "the request {:?} applies to {named}, which phase {phase:?} of this run has applied to",
                request.name
            )));
        }
        if let Some(other) = here.insert(key, &request.name) {
            return Err(invalid(format!(
                "the requests {other:?} and {:?} both apply to {named}",
                request.name
            )));
        }
    }
    Ok(())
}

/// The server-side applies of a plan.
pub fn applies_of(plan: &Plan) -> impl Iterator<Item = (&Request, &KubernetesRequest)> {
    plan.steps.iter().filter_map(|step| apply_of(&step.request))
}

fn applies(requests: &[Request]) -> impl Iterator<Item = (&Request, &KubernetesRequest)> {
    requests.iter().filter_map(apply_of)
}

fn apply_of(request: &Request) -> Option<(&Request, &KubernetesRequest)> {
    match &request.operation {
        Operation::Kubernetes(kubernetes) if kubernetes.verb == KubernetesVerb::Apply => {
            Some((request, kubernetes))
        }
        _ => None,
    }
}

const NO_URL: &str = "the URL is none of http or https with a host";

fn check_request(
    request: &Request,
    rules: OutputRules<'_>,
    default_namespace: &str,
) -> Result<(), Fault> {
    if request.once && !rules.is_leaf {
        return Err(unsupported(
            "`once` is valid in nodes of a machine only".to_owned(),
        ));
    }
    if request.is_declarative && !request.operation.is_mutating() {
        return Err(invalid(
            "a declarative request must change something: nobody sees its answer".to_owned(),
        ));
    }
    if request.timeout == Some(std::time::Duration::ZERO) {
        return Err(invalid(
            "a timeout of zero leaves no time to answer".to_owned(),
        ));
    }
    check_of(request.of.as_ref(), rules).map_err(invalid)?;
    check_operation(request, default_namespace)
}

/// Checks what a request asks for, whatever the output is.
pub(crate) fn check_operation(request: &Request, default_namespace: &str) -> Result<(), Fault> {
    if let Some(namespace) = request.operation.partition() {
        partition::check_name(namespace).map_err(invalid)?;
    }
    match &request.operation {
        // Checked when it is prepared to be sent.
        Operation::Kubernetes(_) => Ok(()),
        Operation::Config(config) => {
            if config.operations.is_empty() {
                return Err(invalid(
                    "a config transaction needs an operation".to_owned(),
                ));
            }
            if config.operations.len() > layers::MAX_OPERATIONS {
                return Err(invalid(format!(
                    "{} operations in one transaction; {} are allowed",
                    config.operations.len(),
                    layers::MAX_OPERATIONS
                )));
            }
            config.operations.iter().try_for_each(|operation| {
                check_config(operation, namespace_of(request, default_namespace))
            })
        }
        Operation::Secret(secret) => check_secret(secret),
        Operation::Http(http) => {
            if http.method.is_empty() || !http.method.bytes().all(|byte| byte.is_ascii_uppercase())
            {
                return Err(invalid(format!(
                    "{} is no HTTP method in upper case",
                    quoted(&http.method)
                )));
            }
            match crate::capability::host_of(&http.url) {
                Some(_) => Ok(()),
                None if http.url.contains('@') => Err(invalid(
                    "the URL has credentials in it, or no host; send credentials in a header"
                        .to_owned(),
                )),
                // The URL may hold credentials, so it is not shown.
                None => Err(invalid(NO_URL.to_owned())),
            }
        }
        Operation::Extension(extension) => check_extension(extension),
    }
}

fn check_secret(secret: &SecretRequest) -> Result<(), Fault> {
    if secret.name.is_empty() {
        return Err(invalid("`secret-name` is empty".to_owned()));
    }
    match (secret.verb, secret.version) {
        (SecretVerb::Update, None) => Err(invalid(
            "`update` of a secret needs `version`, the version that is stored".to_owned(),
        )),
        (SecretVerb::Get | SecretVerb::Create | SecretVerb::Delete, Some(_)) => Err(invalid(
            "`version` is valid with the verb `update` only".to_owned(),
        )),
        _ => Ok(()),
    }
}

fn check_extension(request: &ExtensionRequest) -> Result<(), Fault> {
    let fields = [
        ("extension", &request.extension),
        ("verb", &request.verb),
        ("target", &request.target),
    ];
    for (field, text) in fields {
        if text.is_empty() || text.len() > MAX_EXTENSION_TEXT {
            return Err(invalid(format!(
                "`{field}` of a request to an extension must have 1 to {MAX_EXTENSION_TEXT} bytes"
            )));
        }
    }
    Ok(())
}

fn check_of(of: Option<&ObjectRef>, rules: OutputRules<'_>) -> Result<(), String> {
    match of {
        Some(of) if !rules.members.contains(of) => {
            let of = format!("{:.MAX_NAME$}", of.to_string());
            Err(format!("names {of} in `of`, which is not in this run"))
        }
        _ => Ok(()),
    }
}

/// Whether a well-formed document is an object.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

fn check_config(operation: &ConfigOperation, default_namespace: &str) -> Result<(), Fault> {
    let key =
        layers::key_of(operation, default_namespace).map_err(|error| invalid(error.to_string()))?;
    let needs_value = matches!(operation.verb(), ConfigVerb::Create | ConfigVerb::Update);
    if needs_value && operation.value().is_none() {
        return Err(invalid(format!(
            "`{}` of {key} needs `value`",
            operation.verb().name()
        )));
    }
    Ok(())
}

/// The fault of an output with a request that cannot be sent as it is.
pub(crate) fn invalid_request(InvalidRequest { name, why }: InvalidRequest) -> Fault {
    invalid(format!("request {name:?}: {why}"))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn invalid(message: String) -> Fault {
    Fault::new(
        FaultKind::ResourceGeneric,
        format!("the output is invalid: {message}"),
    )
}

#[expect(clippy::needless_pass_by_value, reason = "the same shape as `invalid`")]
fn unsupported(message: String) -> Fault {
    Fault::new(
        FaultKind::UnsupportedResourceOperation,
        format!("the output asks for too much: {message}"),
    )
}

#[cfg(test)]
mod tests;
