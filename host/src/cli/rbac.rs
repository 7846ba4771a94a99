//! `configurator rbac`: the rights that the host needs in a cluster to run these Configurators, and no others.
//!
//! They follow from what the host sends: for itself (the supervisor, statuses, finalizers, Events), and by the kubernetes
//! sink for each verb of a capability. What RBAC cannot express, the host's own check of capabilities goes on to hold;
//! the output says where.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::{Args, ValueEnum};
use configurator_core::capability::KubernetesRule;
use configurator_core::configurator::{Configurator, DeletionBy, Watch};
use configurator_core::request::{KubernetesVerb, api_version};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope as KindScope};
use kube::{Client, CustomResourceExt as _};
use serde::Serialize;

use super::manifests::{self, Manifest};
use super::settings::Settings;
use super::{embedded, servers};
use crate::resource;
use crate::{declaration, objects};

/// The longest line of a comment.
const WIDTH: usize = 110;
/// Where Events are about what has no namespace.
const EVENTS_OF_CLUSTER: &str = "default";

/// Print the rights that the host needs in a cluster.
#[derive(Args)]
pub struct RbacArgs {
    /// Configurators, and the CustomResourceDefinitions of what they watch: files or folders. Repeatable.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The name of the ServiceAccount that gets the rights, and of everything that is printed.
    #[arg(long, default_value = "configurator")]
    name: String,
    /// The namespace of the ServiceAccount.
    #[arg(long, default_value = "configurator")]
    namespace: String,
    /// The handlers write no `statuses`: leave out the right to.
    #[arg(long)]
    no_statuses: bool,
    /// Look up the watched kinds in this cluster, instead of among the built-in ones and those of the files.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// What is printed.
    #[arg(short, long, value_enum, default_value_t = Form::Manifests)]
    output: Form,
}

/// What is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Roles and their bindings, for kubectl.
    Manifests,
    /// Values for the Helm chart.
    Values,
}

/// Prints the rights.
///
/// # Errors
/// When a file cannot be read, a Configurator is wrong, a watched kind is not known, or a capability would need a wildcard.
pub fn rbac(args: &RbacArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rights = runtime.block_on(rights(args))?;
    let text = match args.output {
        Form::Manifests => rights.manifests(&args.name, &args.namespace)?,
        Form::Values => rights.values()?,
    };
    print!("{text}");
    Ok(ExitCode::SUCCESS)
}

async fn rights(args: &RbacArgs) -> anyhow::Result<Rights> {
    let mut manifests = manifests::read(&args.files)?;
    let configurators: Vec<Manifest> = manifests
        .extract_if(.., |manifest| manifest.is_configurator())
        .collect();
    ensure!(
        !configurators.is_empty(),
        "there is no Configurator in these files"
    );
    let client = kinds(args.kubeconfig.as_deref(), manifests).await?;
    let mut rights = Rights::default();
    rights.own(&args.namespace);
    for manifest in configurators {
        let named = format!("{} {}", manifest.file.display(), manifest.name());
        let read: resource::Configurator =
            serde_json::from_value(manifest.object).with_context(|| named.clone())?;
        let configurator = declaration::check(&read).with_context(|| named.clone())?;
        let watched = Watched::find(&client, &configurator.watch)
            .await
            .with_context(|| named.clone())?;
        rights.configurator(&configurator);
        rights.watch(&configurator, &watched, !args.no_statuses);
        for (index, rule) in configurator.capabilities.kubernetes.iter().enumerate() {
            let path = format!("spec.capabilities.kubernetes[{index}]");
            rights
                .capability(&configurator.name, &path, rule)
                .with_context(|| named.clone())?;
        }
    }
    rights.simplify();
    Ok(rights)
}

/// Who knows how kinds are served: the cluster that was named, or an embedded API with the definitions of the files.
async fn kinds(kubeconfig: Option<&Path>, manifests: Vec<Manifest>) -> anyhow::Result<Client> {
    if kubeconfig.is_some() {
        return servers::cluster_client(kubeconfig).await;
    }
    let server = embedded::open_api(&Settings::default()).await?;
    let client = Client::new(server, "default");
    let definitions = manifests
        .into_iter()
        .filter(|manifest| manifest.kind() == "CustomResourceDefinition")
        .collect();
    manifests::apply(&client, definitions).await?;
    Ok(client)
}

/// How a watched kind is served.
struct Watched {
    plural: String,
    is_namespaced: bool,
    has_status: bool,
}

impl Watched {
    async fn find(client: &Client, watch: &Watch) -> anyhow::Result<Self> {
        let kind = GroupVersionKind::gvk(&watch.group, &watch.version, &watch.kind);
        let (resource, capabilities) = match discovery::pinned_kind(client, &kind).await {
            Err(error) if objects::is_missing(&error) => bail!(
                "the kind {} in {} is not known here: give the file with its CustomResourceDefinition too, or --kubeconfig",
                watch.kind,
                api_version(&watch.group, &watch.version)
            ),
            found => found.context("the cluster cannot be asked for its kinds")?,
        };
        Ok(Self {
            plural: resource.plural,
            is_namespaced: capabilities.scope == KindScope::Namespaced,
            has_status: capabilities
                .subresources
                .iter()
                .any(|(subresource, _)| subresource.plural.ends_with("status")),
        })
    }
}

/// Where rights hold: in one namespace, or everywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Everywhere,
    Namespace(String),
}

/// What rights are on. In this order they are printed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct On {
    group: String,
    /// With its subresource, where it has one: `pods/status`.
    resource: String,
    /// Empty: all.
    names: BTreeSet<String>,
}

/// Everything that is granted.
#[derive(Debug, Default)]
struct Rights {
    granted: BTreeMap<Scope, BTreeMap<On, BTreeSet<&'static str>>>,
    /// What RBAC cannot express.
    notes: BTreeSet<String>,
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
    fn own(&mut self, namespace: &str) {
        let definition = resource::Configurator::crd_name();
        let everywhere = &Scope::Everywhere;
        self.grant(
            everywhere,
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            &[definition],
            &["get"],
        );
        let group = "configurator.dev";
        self.grant(everywhere, group, "configurators", &[], &["list", "watch"]);
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

    /// What the Configurator itself is written for.
    fn configurator(&mut self, configurator: &Configurator) {
        let (group, name) = ("configurator.dev", configurator.name.as_str());
        let everywhere = &Scope::Everywhere;
        self.grant(
            everywhere,
            group,
            "configurators/status",
            &[name],
            &["patch"],
        );
        if configurator.deletion.by == DeletionBy::Finalizer {
            self.grant(everywhere, group, "configurators", &[name], &["patch"]);
        }
    }

    fn watch(&mut self, configurator: &Configurator, watched: &Watched, statuses: bool) {
        let watch = &configurator.watch;
        let scopes = match watched.is_namespaced && !watch.namespaces.is_empty() {
            true => watch
                .namespaces
                .iter()
                .map(|namespace| Scope::Namespace(namespace.clone()))
                .collect(),
            false => vec![Scope::Everywhere],
        };
        let status = format!("{}/status", watched.plural);
        let is_held = configurator.deletion.by == DeletionBy::Finalizer;
        for scope in &scopes {
            self.grant(
                scope,
                &watch.group,
                &watched.plural,
                &[],
                &["list", "watch"],
            );
            if statuses && watched.has_status {
                self.grant(scope, &watch.group, &status, &[], &["patch"]);
            }
            if is_held {
                self.grant(scope, &watch.group, &watched.plural, &[], &["get", "patch"]);
            }
            self.events(scope);
        }
        if is_held && scopes != [Scope::Everywhere] {
            let everywhere = &Scope::Everywhere;
            self.grant(everywhere, &watch.group, &watched.plural, &[], &["list"]);
            self.notes.insert(format!(
                "{}: objects that have its finalizer are looked for in every namespace, so that none is forgotten when \
                 `watch.namespaces` changes; so {} are listed everywhere.",
                configurator.name, watched.plural
            ));
        }
        if !watched.is_namespaced {
            self.events(&Scope::Namespace(EVENTS_OF_CLUSTER.to_owned()));
        }
    }

    /// What the kubernetes sink sends for this rule.
    fn capability(&mut self, of: &str, path: &str, rule: &KubernetesRule) -> anyhow::Result<()> {
        for (field, patterns) in [
            ("groups", &rule.groups),
            ("resources", &rule.resources),
            ("subresources", &rule.subresources),
        ] {
            if let Some(pattern) = patterns.iter().find(|pattern| is_pattern(pattern)) {
                bail!(
                    "{path}.{field}: {pattern:?} would need a wildcard in RBAC, which would grant what nobody has looked \
                     at, and what is yet to be invented: list the names instead"
                );
            }
        }
        let scopes = self.scopes(of, path, &rule.namespaces);
        let names = self.names(of, path, &rule.names);
        for (group, resource) in pairs(&rule.groups, &rule.resources) {
            for scope in &scopes {
                for verb in &rule.verbs {
                    if rule.subresources.is_empty() {
                        self.request(scope, group, resource, &names, *verb, false);
                    }
                    for subresource in &rule.subresources {
                        let on = format!("{resource}/{subresource}");
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
        Ok(())
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
            // A precheck looks first.
            KubernetesVerb::Create if !is_subresource => {
                self.grant(scope, group, resource, &[], &["create"]);
                self.grant(scope, group, resource, names, &["get"]);
            }
            KubernetesVerb::Create => self.grant(scope, group, resource, names, &["create"]),
        }
    }

    fn scopes(&mut self, of: &str, path: &str, namespaces: &[String]) -> Vec<Scope> {
        if namespaces.is_empty() || namespaces.iter().any(|name| is_anything(name)) {
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
    fn simplify(&mut self) {
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

    /// The rules of one scope: resources with the same names and verbs share one, and so do names with the same
    /// resources and verbs.
    fn rules(granted: &BTreeMap<On, BTreeSet<&'static str>>) -> Vec<Rule> {
        let mut rules: Vec<Rule> = Vec::new();
        for (on, verbs) in granted {
            let new = Rule {
                api_groups: [on.group.clone()],
                resources: vec![on.resource.clone()],
                resource_names: on.names.iter().cloned().collect(),
                verbs: verbs.iter().copied().collect(),
            };
            let alike = rules.iter_mut().find(|rule| {
                rule.api_groups == new.api_groups
                    && rule.verbs == new.verbs
                    && rule.resource_names == new.resource_names
            });
            match alike {
                Some(rule) => rule.resources.extend(new.resources),
                None => rules.push(new),
            }
        }
        let mut merged: Vec<Rule> = Vec::new();
        for rule in rules {
            let alike = merged.iter_mut().find(|other| {
                other.api_groups == rule.api_groups
                    && other.verbs == rule.verbs
                    && other.resources == rule.resources
                    && !other.resource_names.is_empty()
                    && !rule.resource_names.is_empty()
            });
            match alike {
                Some(other) => {
                    other.resource_names.extend(rule.resource_names);
                    other.resource_names.sort();
                    other.resource_names.dedup();
                }
                None => merged.push(rule),
            }
        }
        merged
    }

    /// Roles and their bindings.
    fn manifests(&self, name: &str, namespace: &str) -> anyhow::Result<String> {
        let mut documents = Vec::new();
        for (scope, granted) in &self.granted {
            let (role, binding, metadata) = match scope {
                Scope::Everywhere => (
                    "ClusterRole",
                    "ClusterRoleBinding",
                    Metadata {
                        name: name.to_owned(),
                        namespace: None,
                    },
                ),
                Scope::Namespace(namespace) => (
                    "Role",
                    "RoleBinding",
                    Metadata {
                        name: name.to_owned(),
                        namespace: Some(namespace.clone()),
                    },
                ),
            };
            documents.push(serde_saphyr::to_string(&Role {
                api_version: RBAC,
                kind: role,
                metadata: metadata.clone(),
                rules: Self::rules(granted),
            })?);
            documents.push(serde_saphyr::to_string(&Binding {
                api_version: RBAC,
                kind: binding,
                metadata,
                role_ref: Reference {
                    api_group: "rbac.authorization.k8s.io",
                    kind: role,
                    name: name.to_owned(),
                },
                subjects: vec![Subject {
                    kind: "ServiceAccount",
                    name: name.to_owned(),
                    namespace: namespace.to_owned(),
                }],
            })?);
        }
        Ok(format!("{}{}", self.comments(), documents.join("---\n")))
    }

    /// The same as values of the Helm chart.
    fn values(&self) -> anyhow::Result<String> {
        let mut rbac = Values {
            cluster: Vec::new(),
            namespaces: BTreeMap::new(),
        };
        for (scope, granted) in &self.granted {
            let rules = Self::rules(granted);
            match scope {
                Scope::Everywhere => rbac.cluster = rules,
                Scope::Namespace(namespace) => {
                    rbac.namespaces.insert(namespace.clone(), rules);
                }
            }
        }
        let values = BTreeMap::from([("rbac", rbac)]);
        Ok(format!(
            "{}{}",
            self.comments(),
            serde_saphyr::to_string(&values)?
        ))
    }

    fn comments(&self) -> String {
        let mut text =
            "# Made by `configurator rbac`: make it again when a Configurator changes.\n"
                .to_owned();
        for note in &self.notes {
            text.push_str("#\n");
            let mut line = String::from("#");
            for word in note.split_whitespace() {
                if line.len() + word.len() + 1 > WIDTH {
                    text.push_str(&line);
                    text.push('\n');
                    line = String::from("#");
                }
                line.push(' ');
                line.push_str(word);
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Role {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    rules: Vec<Rule>,
}

#[derive(Serialize, Clone)]
struct Metadata {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    /// One: a resource belongs to one group.
    api_groups: [String; 1],
    resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_names: Vec<String>,
    verbs: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    role_ref: Reference,
    subjects: Vec<Subject>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    api_group: &'static str,
    kind: &'static str,
    name: String,
}

#[derive(Serialize)]
struct Subject {
    kind: &'static str,
    name: String,
    namespace: String,
}

#[derive(Serialize)]
struct Values {
    cluster: Vec<Rule>,
    namespaces: BTreeMap<String, Vec<Rule>>,
}

fn pairs<'r>(
    groups: &'r [String],
    resources: &'r [String],
) -> impl Iterator<Item = (&'r str, &'r str)> {
    groups.iter().flat_map(move |group| {
        resources
            .iter()
            .map(move |resource| (group.as_str(), resource.as_str()))
    })
}

fn is_pattern(text: &str) -> bool {
    text.contains('*')
}

/// Whether the pattern matches every name.
fn is_anything(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|character| character == '*')
}
