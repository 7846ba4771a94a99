//! The rights that the host needs in a cluster for itself and for each Configurator, and those that the ServiceAccounts of Configurators need.
//!
//! They follow from what the host sends: for itself (the supervisor, statuses, finalizers, Events), and by the kubernetes
//! sink for each verb of a capability. What RBAC cannot express, the host's own check of capabilities goes on to hold;
//! a note says where. `configurator rbac` prints them, and a keeper asks the cluster for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use configurator_core::capability::KubernetesRule;
use configurator_core::configurator::{Configurator, DeletionBy, StatePlace};
use configurator_core::request::{KubernetesVerb, ObjectRef};
use kube::CustomResourceExt as _;
use kube::api::ApiResource;
use kube::discovery::{ApiCapabilities, Scope as KindScope};

use crate::resource;
use crate::resource::command::Command;
use crate::resource::flow::{ClusterFlow, Flow};
use crate::resource::object_set::ObjectSet;
use crate::resource::policy::ConfiguratorPolicy;

/// Where Events are about what has no namespace.
const EVENTS_OF_CLUSTER: &str = "default";

/// How a watched kind is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// Its plural name.
    pub plural: String,
    /// Whether its objects have namespaces.
    pub is_namespaced: bool,
    /// Whether it has a subresource `status`.
    pub has_status: bool,
}

impl Watched {
    /// What discovery says of a kind.
    #[must_use]
    pub fn of(resource: &ApiResource, capabilities: &ApiCapabilities) -> Self {
        Self {
            plural: resource.plural.clone(),
            is_namespaced: capabilities.scope == KindScope::Namespaced,
            has_status: capabilities
                .subresources
                .iter()
                .any(|(subresource, _)| subresource.plural.ends_with("status")),
        }
    }
}

/// A pattern of a capability that RBAC could hold only by a wildcard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{field}: {pattern:?} would need a wildcard in RBAC, which would grant what nobody has looked \
     at, and what is yet to be invented: list the names instead"
)]
pub struct WildcardError {
    /// As in `spec.capabilities.kubernetes[0].apiGroups`.
    pub field: String,
    /// The pattern.
    pub pattern: String,
}

/// Finds patterns where RBAC knows only wildcards. `path` is that of the rule.
///
/// # Errors
/// At the first one.
pub fn without_wildcards(path: &str, rule: &KubernetesRule) -> Result<(), WildcardError> {
    for (field, patterns) in [
        ("apiGroups", &rule.api_groups),
        ("resources", &rule.resources),
        ("subresources", &rule.subresources),
    ] {
        if let Some(pattern) = patterns.iter().find(|pattern| is_pattern(pattern)) {
            return Err(WildcardError {
                field: format!("{path}.{field}"),
                pattern: pattern.clone(),
            });
        }
    }
    Ok(())
}

/// One right, as a cluster is asked for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// Empty: everywhere.
    pub namespace: String,
    /// Empty: the core group.
    pub group: String,
    /// Its plural name.
    pub resource: String,
    /// Empty: the resource itself.
    pub subresource: String,
    /// Empty: every object.
    pub name: String,
    /// As in `patch`.
    pub verb: &'static str,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        if !self.namespace.is_empty() {
            write!(f, " in {}", self.namespace)?;
        }
        Ok(())
    }
}

/// Where rights hold: in one namespace, or everywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In every namespace, and of what has none.
    Everywhere,
    /// In this namespace.
    Namespace(String),
}

/// What rights are on. In this order they are printed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct On {
    /// Empty: the core group.
    pub group: String,
    /// With its subresource, where it has one: `pods/status`.
    pub resource: String,
    /// Empty: all.
    pub names: BTreeSet<String>,
}

/// Everything that is granted.
#[derive(Debug, Clone, Default)]
pub struct Rights {
    /// By where it holds.
    pub granted: BTreeMap<Scope, BTreeMap<On, BTreeSet<&'static str>>>,
    /// What RBAC cannot express.
    pub notes: BTreeSet<String>,
}

impl Rights {
    fn grant(
        &mut self,
        scope: &Scope,
        group: &str,
        resource: &str,
        names: &[&str],
        verbs: &[&'static str],
    ) {
        let on = On {
            group: group.to_owned(),
            resource: resource.to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let granted = self.granted.entry(scope.clone()).or_default();
        granted.entry(on).or_default().extend(verbs);
    }

    /// What the host needs whatever it runs.
    pub fn own(&mut self, namespace: &str) {
        let definitions = [
            resource::Configurator::crd_name(),
            resource::ClusterConfigurator::crd_name(),
            Flow::crd_name(),
            ClusterFlow::crd_name(),
            Command::crd_name(),
            ConfiguratorPolicy::crd_name(),
            ObjectSet::crd_name(),
        ];
        let everywhere = &Scope::Everywhere;
        self.grant(
            everywhere,
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            &definitions,
            &["get"],
        );
        let group = "configurator.dev";
        for resource in [
            "clusterconfigurators",
            "clusterflows",
            "configuratorpolicies",
            "configurators",
            "flows",
        ] {
            self.grant(everywhere, group, resource, &[], &["list", "watch"]);
        }
        // Whether the rights of a ServiceAccount that the host acts as have changed.
        let rbac = "rbac.authorization.k8s.io";
        for resource in [
            "clusterrolebindings",
            "clusterroles",
            "rolebindings",
            "roles",
        ] {
            self.grant(everywhere, rbac, resource, &[], &["list", "watch"]);
        }
        // Whose a config store on etcd is, and which partitions of the stores belong to namespaces that are gone.
        let verbs = ["get", "list", "watch"];
        self.grant(everywhere, "", "namespaces", &[], &verbs);
        let home = &Scope::Namespace(namespace.to_owned());
        let leases = "coordination.k8s.io";
        // One for each shard and host; the names of hosts are not known before.
        let verbs = ["create", "delete", "get", "list", "patch", "watch"];
        self.grant(home, leases, "leases", &[], &verbs);
        self.events(&Scope::Namespace(EVENTS_OF_CLUSTER.to_owned()));
    }

    fn events(&mut self, scope: &Scope) {
        self.grant(scope, "events.k8s.io", "events", &[], &["create", "patch"]);
    }

    /// What the host itself does for a Configurator: it writes its status, publishes Events, and reads Commands.
    pub fn configurator(&mut self, configurator: &Configurator, watched: &Watched) {
        let ObjectRef { namespace, name } = &configurator.key;
        let name = name.as_str();
        let scope = match namespace.as_str() {
            "" => Scope::Everywhere,
            _ => Scope::Namespace(namespace.clone()),
        };
        let ApiResource { group, plural, .. } = resource::kind_of(&configurator.key);
        let status = format!("{plural}/status");
        self.grant(&scope, &group, &status, &[name], &["patch"]);
        if configurator.deletion.by == DeletionBy::Finalizer {
            self.grant(&scope, &group, &plural, &[name], &["patch"]);
        }
        if configurator.sets.is_some() {
            // Whether a Configurator that is being deleted has sets.
            self.grant(&scope, &group, "objectsets", &[], &["list"]);
        }
        if let Some(account) = &configurator.service_account {
            let scope = Scope::Namespace(account.namespace.clone());
            self.grant(
                &scope,
                "",
                "serviceaccounts",
                &[&account.name],
                &["impersonate"],
            );
        }
        for scope in watched_scopes(configurator, watched) {
            if configurator.machine.is_some() {
                let beside = beside(&scope, watched);
                let verbs = ["delete", "list", "watch"];
                self.grant(&beside, &group, "commands", &[], &verbs);
                self.grant(&beside, &group, "commands/status", &[], &["patch"]);
            }
            if configurator.sets.is_some() {
                let beside = beside(&scope, watched);
                let verbs = ["create", "delete", "get", "patch", "update"];
                self.grant(&beside, &group, "objectsets", &[], &verbs);
                self.grant(&beside, &group, "objectsets/status", &[], &["patch"]);
            }
            self.events(&scope);
        }
        if !watched.is_namespaced {
            self.events(&Scope::Namespace(EVENTS_OF_CLUSTER.to_owned()));
        }
        let Some(mode) = &configurator.machine else {
            return;
        };
        // Whether the API server checks who creates Commands.
        let admission = "admissionregistration.k8s.io";
        for resource in [
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        ] {
            self.grant(&Scope::Everywhere, admission, resource, &[], &["list"]);
        }
        if let StatePlace::Status { .. } = mode.place {
            let definition = format!("{}.{}", watched.plural, configurator.watch.group);
            self.grant(
                &Scope::Everywhere,
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                &[&definition],
                &["get"],
            );
        }
    }

    /// What is read where its module comes from.
    pub fn module(&mut self, module: &resource::ModuleSpec) {
        for (_, plural, ObjectRef { namespace, name }) in module.references() {
            let scope = Scope::Namespace(namespace);
            self.grant(&scope, "", plural, &[&name], &["get"]);
        }
    }

    /// What is read where its parameters come from.
    pub fn parameters(&mut self, sources: &[resource::ParametersSourceSpec]) {
        let verbs = ["get", "list", "watch"];
        for source in sources {
            let kinds = [
                ("configmaps", &source.config_map),
                ("secrets", &source.secret),
            ];
            for (plural, reference) in kinds {
                if let Some(reference) = reference {
                    let scope = Scope::Namespace(reference.namespace.clone());
                    self.grant(&scope, "", plural, &[&reference.name], &verbs);
                }
            }
        }
    }

    /// What its watch needs.
    pub fn reads(&mut self, configurator: &Configurator, watched: &Watched) {
        let group = &configurator.watch.group;
        for scope in watched_scopes(configurator, watched) {
            self.grant(&scope, group, &watched.plural, &[], &["list", "watch"]);
        }
    }

    /// What its watch, and what is written to the watched objects, needs. `statuses` says whether handlers write
    /// `statuses`.
    pub fn watch(&mut self, configurator: &Configurator, watched: &Watched, statuses: bool) {
        self.reads(configurator, watched);
        let watch = &configurator.watch;
        let scopes = watched_scopes(configurator, watched);
        let status = format!("{}/status", watched.plural);
        let is_held = configurator.deletion.by == DeletionBy::Finalizer;
        for scope in &scopes {
            if statuses && watched.has_status {
                self.grant(scope, &watch.group, &status, &[], &["patch"]);
            }
            if is_held {
                self.grant(scope, &watch.group, &watched.plural, &[], &["get", "patch"]);
            }
            if let Some(mode) = &configurator.machine {
                self.grant(scope, &watch.group, &watched.plural, &[], &["get"]);
                if let StatePlace::Status { .. } = mode.place {
                    self.grant(scope, &watch.group, &status, &[], &["patch"]);
                }
                if mode.place == StatePlace::ConfigMap {
                    let verbs = ["create", "get", "patch"];
                    self.grant(&beside(scope, watched), "", "configmaps", &[], &verbs);
                }
            }
        }
        // A Configurator has no objects outside its namespace.
        if is_held && scopes != [Scope::Everywhere] && configurator.key.namespace.is_empty() {
            let everywhere = &Scope::Everywhere;
            self.grant(everywhere, &watch.group, &watched.plural, &[], &["list"]);
            self.notes.insert(format!(
                "{}: objects that have its finalizer are looked for in every namespace, so that none is forgotten when \
                 `watch.namespaces` changes; so {} are listed everywhere.",
                configurator.key, watched.plural
            ));
        }
    }

    /// What the kubernetes sink sends for this rule. Where group, resource or subresource is a pattern, it is asked for
    /// by a wildcard.
    pub fn capability(&mut self, of: &str, path: &str, rule: &KubernetesRule) {
        if rule.names.is_empty() {
            return;
        }
        let scopes = self.scopes(of, path, &rule.namespaces);
        let names = self.names(of, path, &rule.names);
        for (group, resource) in pairs(&rule.api_groups, &rule.resources) {
            for scope in &scopes {
                if rule.watch {
                    self.grant(scope, group, resource, &[], &["list", "watch"]);
                }
                for verb in &rule.verbs {
                    if rule.subresources.is_empty() {
                        self.request(scope, group, resource, &names, *verb, false);
                    }
                    for subresource in &rule.subresources {
                        let on = format!("{resource}/{}", wildcard(subresource));
                        self.request(scope, group, &on, &names, *verb, true);
                    }
                }
            }
        }
        let is_named = !names.is_empty();
        if is_named && rule.subresources.is_empty() && rule.verbs.contains(&KubernetesVerb::Create)
        {
            self.notes.insert(format!(
                "{of}, {path}: RBAC knows no name of what is created; the host creates no others than {}.",
                rule.names.join(", ")
            ));
        }
    }

    /// One verb of a capability, as the sink sends it.
    fn request(
        &mut self,
        scope: &Scope,
        group: &str,
        resource: &str,
        names: &[&str],
        verb: KubernetesVerb,
        is_subresource: bool,
    ) {
        match verb {
            KubernetesVerb::Get => self.grant(scope, group, resource, names, &["get"]),
            // A list has no name, so a rule with names allows none.
            KubernetesVerb::List if names.is_empty() => {
                self.grant(scope, group, resource, &[], &["list"]);
            }
            KubernetesVerb::List => {}
            KubernetesVerb::Delete => self.grant(scope, group, resource, names, &["delete"]),
            KubernetesVerb::Patch => self.grant(scope, group, resource, names, &["patch"]),
            KubernetesVerb::Replace => self.grant(scope, group, resource, names, &["update"]),
            // What is applied has its name in the path, also when that creates it.
            KubernetesVerb::Apply if !is_subresource => {
                self.grant(scope, group, resource, names, &["create", "patch"]);
            }
            KubernetesVerb::Apply => self.grant(scope, group, resource, names, &["patch"]),
            // RBAC knows no name of what is created.
            KubernetesVerb::Create if !is_subresource => {
                self.grant(scope, group, resource, &[], &["create"]);
            }
            KubernetesVerb::Create => self.grant(scope, group, resource, names, &["create"]),
        }
    }

    fn scopes(&mut self, of: &str, path: &str, namespaces: &[String]) -> Vec<Scope> {
        if namespaces.iter().any(|name| is_anything(name)) {
            return vec![Scope::Everywhere];
        }
        if namespaces.iter().any(|name| is_pattern(name)) {
            self.notes.insert(format!(
                "{of}, {path}: RBAC knows no pattern of namespaces, so this holds in all of them; the host goes no further \
                 than {}.",
                namespaces.join(", ")
            ));
            return vec![Scope::Everywhere];
        }
        let scopes = namespaces.iter().cloned().map(Scope::Namespace);
        scopes.collect()
    }

    /// The names that RBAC can hold; empty where it can hold none.
    fn names<'r>(&mut self, of: &str, path: &str, names: &'r [String]) -> Vec<&'r str> {
        if names.iter().any(|name| is_anything(name)) {
            return Vec::new();
        }
        if names.iter().any(|name| is_pattern(name)) {
            self.notes.insert(format!(
                "{of}, {path}: RBAC knows no pattern of names, so this holds for all of them; the host goes no further \
                 than {}.",
                names.join(", ")
            ));
            return Vec::new();
        }
        names.iter().map(String::as_str).collect()
    }

    /// Drops what is granted more widely as well.
    pub fn simplify(&mut self) {
        let everywhere = self
            .granted
            .get(&Scope::Everywhere)
            .cloned()
            .unwrap_or_default();
        for (scope, granted) in &mut self.granted {
            let here = granted.clone();
            for (on, verbs) in granted.iter_mut() {
                let all = On {
                    names: BTreeSet::new(),
                    ..on.clone()
                };
                let mut wider: Vec<&BTreeSet<&str>> = Vec::new();
                if !on.names.is_empty() {
                    wider.extend(here.get(&all));
                }
                if *scope != Scope::Everywhere {
                    wider.extend(everywhere.get(&all));
                    wider.extend(everywhere.get(on));
                }
                verbs.retain(|verb| wider.iter().all(|wider| !wider.contains(verb)));
            }
            granted.retain(|_, verbs| !verbs.is_empty());
        }
        self.granted.retain(|_, granted| !granted.is_empty());
    }

    /// Every right by itself.
    pub fn each(&self) -> Vec<Right> {
        let mut rights = Vec::new();
        for (scope, granted) in &self.granted {
            let namespace = match scope {
                Scope::Everywhere => "",
                Scope::Namespace(namespace) => namespace,
            };
            for (on, verbs) in granted {
                let (resource, subresource) =
                    on.resource.split_once('/').unwrap_or((&on.resource, ""));
                let all = [String::new()];
                let names = on.names.iter().chain(match on.names.is_empty() {
                    true => &all[..],
                    false => &[],
                });
                for name in names {
                    rights.extend(verbs.iter().map(|verb| Right {
                        namespace: namespace.to_owned(),
                        group: on.group.clone(),
                        resource: resource.to_owned(),
                        subresource: subresource.to_owned(),
                        name: name.clone(),
                        verb,
                    }));
                }
            }
        }
        rights
    }
}

/// Where the watched objects are.
fn watched_scopes(configurator: &Configurator, watched: &Watched) -> Vec<Scope> {
    let namespaces = &configurator.watch.namespaces;
    match watched.is_namespaced && !namespaces.is_empty() {
        true => namespaces.iter().cloned().map(Scope::Namespace).collect(),
        false => vec![Scope::Everywhere],
    }
}

/// Where the Commands and the stored states of the objects of a scope are. Those of an object without a namespace are where its Events are.
fn beside(scope: &Scope, watched: &Watched) -> Scope {
    match watched.is_namespaced {
        true => scope.clone(),
        false => Scope::Namespace(EVENTS_OF_CLUSTER.to_owned()),
    }
}

fn pairs<'r>(
    groups: &'r [String],
    resources: &'r [String],
) -> impl Iterator<Item = (&'r str, &'r str)> {
    groups.iter().flat_map(move |group| {
        resources
            .iter()
            .map(move |resource| (wildcard(group), wildcard(resource)))
    })
}

/// A pattern as RBAC knows it.
fn wildcard(pattern: &str) -> &str {
    if is_pattern(pattern) { "*" } else { pattern }
}

fn is_pattern(text: &str) -> bool {
    text.contains('*')
}

/// Whether the pattern matches every name.
fn is_anything(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|character| character == '*')
}
