//! What a handler asks the host to do. The types mirror `wit/requests.wit`, in this crate's own words.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::document::Document;

/// The server that a request goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SinkName {
    /// The Kubernetes API.
    Kubernetes,
    /// The config store.
    Configstore,
    /// The secret store.
    Secretstore,
    /// An HTTP endpoint.
    Http,
    /// A sink that the embedder of the host adds.
    Extension,
}

impl SinkName {
    /// Every sink.
    pub const ALL: [Self; 5] = [
        Self::Kubernetes,
        Self::Configstore,
        Self::Secretstore,
        Self::Http,
        Self::Extension,
    ];

    /// The name in messages, metrics and documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Configstore => "configstore",
            Self::Secretstore => "secretstore",
            Self::Http => "http",
            Self::Extension => "extension",
        }
    }
}

impl fmt::Display for SinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Names one object of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Empty for a cluster-scoped object.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl ObjectRef {
    /// A cluster-scoped object of this name.
    #[must_use]
    pub fn cluster_scoped(name: &str) -> Self {
        Self {
            namespace: String::new(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// Names any object of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectKey {
    /// Empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The resource's plural name.
    pub plural: String,
    /// Empty for a cluster-scoped object.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

/// A group and a version as `apiVersion` has them: `apps/v1`, or `v1` in the core group.
#[must_use]
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// The group of an `apiVersion`: empty for the core group.
#[must_use]
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// In which order requests are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExecuteStrategy {
    /// In order; the first failure that nothing catches stops the rest.
    Serial,
    /// Side by side.
    #[default]
    Parallel,
    /// Each when what it depends on is ready.
    Graph,
}

/// What becomes of a failed request that carries `group-by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BatchErrorStrategy {
    /// Its result is left out of the group.
    DropError,
    /// Its result joins the group with its error set.
    #[default]
    CatchError,
}

/// What becomes of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnError {
    /// The phase fails with it.
    Fail,
    /// The next handler gets its result with the error set.
    CatchError,
    /// The next handler gets no result.
    DropError,
}

/// The requests of one output.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requests {
    /// The order of execution.
    pub execute_strategy: ExecuteStrategy,
    /// The requests.
    pub resource_requests: Vec<Request>,
    /// For requests with `group-by` and no `on-error` of their own.
    pub batch_error_strategy: BatchErrorStrategy,
}

/// The condition for an object to be ready, so that what depends on it may go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Readiness {
    /// It exists.
    Exists,
    /// It exists, and `status.observedGeneration`, where present, is its generation.
    Observed,
    /// It is observed, and healthy by the rules of its kind: see [`graph::health`](crate::graph::health).
    Healthy,
    /// A CEL expression over `object` is true.
    Expression(String),
}

/// One declarative wish.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Names the request and its result.
    pub name: String,
    /// Sent and not awaited.
    pub is_declarative: bool,
    /// Collects results in one array.
    pub group_by: Option<String>,
    /// Holds the host's readiness until it has settled.
    pub bootstrap_dep: bool,
    /// In a batch, the object that a failure is charged to.
    pub of: Option<ObjectRef>,
    /// `None`: [`OnError::Fail`], or with `group_by` the output's strategy.
    pub on_error: Option<OnError>,
    /// Names of requests that must be ready first.
    pub depends_on: Vec<String>,
    /// When others may go on.
    pub ready_when: Option<Readiness>,
    /// Never sent a second time.
    pub once: bool,
    /// How long one attempt may take. `None`: the sink's own.
    pub timeout: Option<Duration>,
    /// What to do.
    pub operation: Operation,
}

impl Request {
    /// A request with the protocol's defaults.
    #[must_use]
    pub fn new(name: impl Into<String>, operation: Operation) -> Self {
        Self {
            name: name.into(),
            is_declarative: false,
            group_by: None,
            bootstrap_dep: false,
            of: None,
            on_error: None,
            depends_on: Vec::new(),
            ready_when: None,
            once: false,
            timeout: None,
            operation,
        }
    }

    /// What becomes of it when it fails, with the defaults of its output applied.
    #[must_use]
    pub fn effective_on_error(&self, batch: BatchErrorStrategy) -> OnError {
        match (self.on_error, &self.group_by, batch) {
            (Some(on_error), _, _) => on_error,
            (None, None, _) => OnError::Fail,
            (None, Some(_), BatchErrorStrategy::CatchError) => OnError::CatchError,
            (None, Some(_), BatchErrorStrategy::DropError) => OnError::DropError,
        }
    }
}

/// What a request does, and at which server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// At the Kubernetes API.
    Kubernetes(KubernetesRequest),
    /// At the config store: all of the operations, or none. A single operation is a transaction of one.
    Config(ConfigRequest),
    /// At the secret store.
    Secret(SecretRequest),
    /// At an HTTP endpoint.
    Http(HttpRequest),
    /// At a sink that the embedder of the host adds.
    Extension(ExtensionRequest),
}

impl Operation {
    /// The sink that executes it.
    #[must_use]
    pub const fn sink(&self) -> SinkName {
        match self {
            Self::Kubernetes(_) => SinkName::Kubernetes,
            Self::Config(_) => SinkName::Configstore,
            Self::Secret(_) => SinkName::Secretstore,
            Self::Http(_) => SinkName::Http,
            Self::Extension(_) => SinkName::Extension,
        }
    }

    /// The namespace whose partition of a store is meant. `None`: the Configurator's own partition, or no operation on a store.
    #[must_use]
    pub fn partition(&self) -> Option<&str> {
        match self {
            Self::Config(request) => request.partition.as_deref(),
            Self::Secret(request) => request.partition.as_deref(),
            Self::Kubernetes(_) | Self::Http(_) | Self::Extension(_) => None,
        }
    }

    /// The name of the Kubernetes object that it is about. `None`: it is about none, or the host is to name it.
    #[must_use]
    pub fn object_name(&self) -> Option<&str> {
        match self {
            Self::Kubernetes(request) => Some(&*request.name).filter(|name| !name.is_empty()),
            Self::Config(_) | Self::Secret(_) | Self::Http(_) | Self::Extension(_) => None,
        }
    }

    /// Whether it deletes a Kubernetes object.
    #[must_use]
    pub const fn deletes_object(&self) -> bool {
        matches!(self, Self::Kubernetes(request) if matches!(request.verb, KubernetesVerb::Delete))
    }

    /// Whether it reads or writes one Kubernetes object, which is there afterwards.
    #[must_use]
    pub const fn answers_object(&self) -> bool {
        match self {
            Self::Kubernetes(request) => {
                !matches!(request.verb, KubernetesVerb::List | KubernetesVerb::Delete)
            }
            Self::Config(_) | Self::Secret(_) | Self::Http(_) | Self::Extension(_) => false,
        }
    }

    /// Whether it may change something at its server. Any `http` request and any request to an extension may.
    #[must_use]
    pub fn is_mutating(&self) -> bool {
        match self {
            Self::Kubernetes(request) => request.verb.is_mutating(),
            Self::Config(request) => request.operations.iter().any(ConfigOperation::is_mutating),
            Self::Secret(request) => request.verb != SecretVerb::Get,
            Self::Http(_) | Self::Extension(_) => true,
        }
    }
}

/// In a line, for people and traces. Says where it goes, never what it carries; of a URL the scheme and the host,
/// because the rest may hold credentials.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kubernetes(request) => write!(f, "{} {request}", request.verb.name()),
            Self::Config(request) => match request.operations.len() {
                1 => f.write_str("1 operation"),
                number => write!(f, "{number} operations"),
            },
            Self::Secret(request) => write!(f, "{} {}", request.verb.name(), request.name),
            Self::Http(request) => {
                let (scheme, rest) = request.url.split_once("://").unwrap_or(("", ""));
                let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
                let host = authority
                    .rsplit_once('@')
                    .map_or(authority, |(_, host)| host);
                write!(f, "{} {scheme}://{host}", request.method)
            }
            Self::Extension(request) => write!(
                f,
                "{} {} {}",
                request.extension, request.verb, request.target
            ),
        }?;
        match self.partition() {
            None => Ok(()),
            Some(namespace) => write!(f, " in the partition of {namespace}"),
        }
    }
}

/// What to do with a Kubernetes object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum KubernetesVerb {
    /// Read one.
    Get,
    /// Read many.
    List,
    /// Change parts of one.
    Patch,
    /// Delete one.
    Delete,
    /// Create one.
    Create,
    /// Replace one whole.
    Replace,
    /// Server-side apply.
    Apply,
}

impl KubernetesVerb {
    /// Every verb.
    pub const ALL: [Self; 7] = [
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Delete,
        Self::Create,
        Self::Replace,
        Self::Apply,
    ];

    /// The name in the protocol and in `capabilities`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Apply => "apply",
        }
    }

    /// Whether it may change something.
    #[must_use]
    pub const fn is_mutating(self) -> bool {
        match self {
            Self::Get | Self::List => false,
            Self::Patch | Self::Delete | Self::Create | Self::Replace | Self::Apply => true,
        }
    }
}

/// How the body of a `patch` is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PatchType {
    /// RFC 7396.
    #[default]
    Merge,
    /// RFC 6902.
    Json,
    /// Kubernetes' strategic merge patch.
    Strategic,
}

/// What becomes of the objects that a deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PropagationPolicy {
    /// Deleted afterwards.
    #[default]
    Background,
    /// Deleted first.
    Foreground,
    /// Kept.
    Orphan,
}

/// Where given, must match what is stored, or the request is a conflict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Precondition {
    /// The object's uid.
    pub uid: Option<String>,
    /// The object's resource version.
    pub resource_version: Option<String>,
}

/// A request to the Kubernetes API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesRequest {
    /// Empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The resource's plural name, lower case.
    pub plural: String,
    /// The kind.
    pub kind: String,
    /// Empty for a cluster-scoped resource, or to list all namespaces.
    pub namespace: String,
    /// Empty for `list`.
    pub name: String,
    /// What to do.
    pub verb: KubernetesVerb,
    /// `status`, `scale` and the like.
    pub subresource: Option<String>,
    /// For `list`.
    pub field_selector: Option<String>,
    /// For `list`.
    pub label_selector: Option<String>,
    /// For `patch`, `create`, `replace` and `apply`.
    pub body: Option<Document>,
    /// For `patch`.
    pub patch_type: PatchType,
    /// For `create`: an existing object is success, and is the result.
    pub precheck_exist: bool,
    /// For `apply`: take fields from other managers.
    pub force: bool,
    /// For `get` and `list`: may be answered from the host's watch cache.
    pub cached: bool,
    /// For `delete`.
    pub propagation_policy: PropagationPolicy,
    /// For `patch`, `replace`, `apply` and `delete`.
    pub precondition: Option<Precondition>,
}

/// What it is about, for people: `plural.group/subresource namespace/name`, without the parts that are empty.
impl fmt::Display for KubernetesRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(subresource) = &self.subresource {
            write!(f, "/{subresource}")?;
        }
        match (self.namespace.as_str(), self.name.as_str()) {
            ("", "") => Ok(()),
            ("", name) => write!(f, " {name}"),
            (namespace, name) => write!(f, " {namespace}/{name}"),
        }
    }
}

impl KubernetesRequest {
    /// A request with the protocol's defaults; the kind is left empty.
    #[must_use]
    pub fn new(verb: KubernetesVerb, group: &str, version: &str, plural: &str) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            plural: plural.into(),
            kind: String::new(),
            namespace: String::new(),
            name: String::new(),
            verb,
            subresource: None,
            field_selector: None,
            label_selector: None,
            body: None,
            patch_type: PatchType::Merge,
            precheck_exist: true,
            force: false,
            cached: false,
            propagation_policy: PropagationPolicy::Background,
            precondition: None,
        }
    }

    /// The object that it is about.
    #[must_use]
    pub fn object_key(&self) -> ObjectKey {
        ObjectKey {
            group: self.group.clone(),
            version: self.version.clone(),
            plural: self.plural.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// Operations on the config store that succeed or fail together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigRequest {
    /// Whether the handler wrote it as a `config-transaction`.
    pub is_transaction: bool,
    /// The operations, in order. Later ones see what earlier ones wrote.
    pub operations: Vec<ConfigOperation>,
    /// The namespace whose partition is meant. `None`: the Configurator's own partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
}

/// One operation on the config store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConfigOperation {
    /// The configuration of one cluster resource.
    Resource(ConfigResource),
    /// One key of the application configuration of a pod.
    AppConf(ConfigAppConf),
    /// One plain key.
    Basic(ConfigBasic),
    /// A leaf under two levels.
    TwoLayers(ConfigTwoLayers),
}

/// What to do with an entry of the config store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConfigVerb {
    /// Read it; an absent one is not found.
    Get,
    /// Write it if it is absent; an existing one stays as it is, and is the result.
    Create,
    /// Write it, whether it exists or not. `put` of a plain key is this.
    Update,
    /// Remove it; an absent one is success.
    Delete,
}

impl ConfigVerb {
    /// Every verb.
    pub const ALL: [Self; 4] = [Self::Get, Self::Create, Self::Update, Self::Delete];

    /// The name in the protocol and in `capabilities`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    /// Whether it may change something.
    #[must_use]
    pub const fn is_mutating(self) -> bool {
        match self {
            Self::Get => false,
            Self::Create | Self::Update | Self::Delete => true,
        }
    }
}

/// Kinds of cluster resource that have an entry of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConfigType {
    /// A Pod.
    Pod,
    /// A Node.
    Node,
    /// A Namespace.
    Namespace,
    /// A Deployment, StatefulSet and the like.
    Workload,
}

impl ConfigType {
    /// Every type.
    pub const ALL: [Self; 4] = [Self::Pod, Self::Node, Self::Namespace, Self::Workload];

    /// The name in the protocol and in keys.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Node => "node",
            Self::Namespace => "namespace",
            Self::Workload => "workload",
        }
    }

    /// Whether its entries lie under a namespace.
    #[must_use]
    pub const fn is_namespaced(self) -> bool {
        match self {
            Self::Pod | Self::Workload => true,
            Self::Node | Self::Namespace => false,
        }
    }
}

/// The configuration of one cluster resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigResource {
    /// The type of the resource.
    pub config_type: ConfigType,
    /// What to do.
    pub verb: ConfigVerb,
    /// The resource's name.
    pub name: String,
    /// A write replaces the entry of another uid and what hangs on it; a `get` finds only this uid.
    pub uid: Option<String>,
    /// For pods and workloads.
    pub namespace: Option<String>,
    /// For workloads.
    pub workload_kind: Option<String>,
    /// For `create` and `update`.
    pub value: Option<String>,
}

/// One key of the application configuration of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigAppConf {
    /// What to do; never [`ConfigVerb::Get`].
    pub verb: ConfigVerb,
    /// The pod's name.
    pub pod_name: String,
    /// `None`: the namespace of the object being handled.
    pub namespace: Option<String>,
    /// The key.
    pub key: String,
    /// For `create` and `update`.
    pub value: Option<String>,
}

/// One plain key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigBasic {
    /// What to do; never [`ConfigVerb::Create`]; `put` is [`ConfigVerb::Update`].
    pub verb: ConfigVerb,
    /// The key.
    pub key: String,
    /// For `put`.
    pub value: Option<String>,
}

/// A leaf under two levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigTwoLayers {
    /// What to do.
    pub verb: ConfigVerb,
    /// The upper level.
    pub second_path: String,
    /// The leaf.
    pub third_path: String,
    /// For `create` and `update`.
    pub value: Option<String>,
}

impl ConfigOperation {
    /// What it does.
    #[must_use]
    pub const fn verb(&self) -> ConfigVerb {
        match self {
            Self::Resource(operation) => operation.verb,
            Self::AppConf(operation) => operation.verb,
            Self::Basic(operation) => operation.verb,
            Self::TwoLayers(operation) => operation.verb,
        }
    }

    /// The same with another verb.
    #[must_use]
    pub fn with_verb(mut self, verb: ConfigVerb) -> Self {
        match &mut self {
            Self::Resource(operation) => operation.verb = verb,
            Self::AppConf(operation) => operation.verb = verb,
            Self::Basic(operation) => operation.verb = verb,
            Self::TwoLayers(operation) => operation.verb = verb,
        }
        self
    }

    /// The value it writes.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        match self {
            Self::Resource(operation) => operation.value.as_deref(),
            Self::AppConf(operation) => operation.value.as_deref(),
            Self::Basic(operation) => operation.value.as_deref(),
            Self::TwoLayers(operation) => operation.value.as_deref(),
        }
    }

    /// Whether it may change something.
    #[must_use]
    pub const fn is_mutating(&self) -> bool {
        self.verb().is_mutating()
    }
}

/// What to do with a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretVerb {
    /// Read it.
    Get,
    /// Write it if it is absent; an existing one stays as it is, and is the result.
    Create,
    /// Write another value in the place of a version.
    Update,
    /// Remove it; an absent one is success.
    Delete,
}

impl SecretVerb {
    /// Every verb.
    pub const ALL: [Self; 4] = [Self::Get, Self::Create, Self::Update, Self::Delete];

    /// The name in the protocol and in `capabilities`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// A request to the secret store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretRequest {
    /// The secret's name.
    pub name: String,
    /// What to do.
    pub verb: SecretVerb,
    /// For `create` and `update`; without it the host generates a value.
    pub value: Option<Document>,
    /// Required for `update`: the version that is stored, or 0 if the secret does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The namespace whose partition is meant. `None`: the Configurator's own partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
}

/// A request to an HTTP endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRequest {
    /// The method, upper case.
    pub method: String,
    /// The URL.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(with = "crate::text_or_bytes::optional", default)]
    pub body: Option<Vec<u8>>,
}

/// A request to a sink that the embedder of the host adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionRequest {
    /// The name of the extension.
    pub extension: String,
    /// A verb that the extension defines.
    pub verb: String,
    /// An address within the extension. Rules of capabilities name it.
    pub target: String,
    /// A document that the extension reads.
    pub body: Option<Document>,
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(operation: Operation, expected: Expect) {
        expected.assert_eq(&operation.to_string());
    }

    #[test]
    fn a_line_says_where_a_request_goes_and_nothing_of_what_it_carries() {
        let mut status = KubernetesRequest::new(KubernetesVerb::Apply, "apps", "v1", "deployments");
        status.namespace = "shop".into();
        status.name = "web".into();
        status.subresource = Some("status".into());
        check(
            Operation::Kubernetes(status),
            expect!["apply deployments.apps/status shop/web"],
        );
        let nodes = KubernetesRequest::new(KubernetesVerb::List, "", "v1", "nodes");
        check(Operation::Kubernetes(nodes), expect!["list nodes"]);
        let http = HttpRequest {
            method: "POST".into(),
            url: "https://user:word@api.example:8443/v1/tokens?key=word".into(),
            headers: Vec::new(),
            body: Some(b"word".to_vec()),
        };
        check(
            Operation::Http(http),
            expect!["POST https://api.example:8443"],
        );
        let mut secret = SecretRequest {
            name: "pods/web".into(),
            verb: SecretVerb::Get,
            value: None,
            version: None,
            partition: None,
        };
        check(Operation::Secret(secret.clone()), expect!["get pods/web"]);
        secret.partition = Some("shop".into());
        check(
            Operation::Secret(secret),
            expect!["get pods/web in the partition of shop"],
        );
    }

    #[test]
    fn the_core_group_has_no_name() {
        assert_eq!(api_version("", "v1"), "v1");
        assert_eq!(api_version("apps", "v1"), "apps/v1");
    }
}
