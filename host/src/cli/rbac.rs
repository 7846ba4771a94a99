//! `configurator rbac`: the rights that the host and the ServiceAccounts of these Configurators need in a cluster, and no others.
//!
//! The module `rights` derives them; here they become roles. What RBAC cannot express is said in comments.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::{Args, ValueEnum};
use configurator_background::work::Background;
use configurator_core::configurator::Watch;
use configurator_core::request::api_version;
use configurator_core::service_account::ServiceAccount;
use kube::Client;
use kube::core::GroupVersionKind;
use kube::discovery;
use serde::Serialize;

use super::manifests::{self, Manifest};
use super::settings::Settings;
use super::{embedded, servers};
use crate::rights::{self, On, Rights, Scope, Watched};
use crate::{declaration, objects};

/// The longest line of a comment.
const WIDTH: usize = 110;

/// Print the rights that the host needs in a cluster, and those of the ServiceAccounts that Configurators act as.
#[derive(Args)]
pub struct RbacArgs {
    /// Files or folders with Configurators and with the CustomResourceDefinitions of the kinds they watch. Repeatable.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Name of the ServiceAccount of the host, and of every printed object with its rights. Those with the rights of another ServiceAccount are
    /// named NAME-ACCOUNT.
    #[arg(long, default_value = "configurator")]
    name: String,
    /// Namespace of the ServiceAccount.
    #[arg(long, default_value = "configurator")]
    namespace: String,
    /// Leave out the right to write statuses of watched objects. Use it if no handler returns `statuses`.
    #[arg(long)]
    no_statuses: bool,
    /// Look up the watched kinds in this cluster, instead of among the built-in kinds and those in the files.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// What to print.
    #[arg(short, long, value_enum, default_value_t = Form::Manifests)]
    output: Form,
}

/// What to print.
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

async fn rights(args: &RbacArgs) -> anyhow::Result<AllRights> {
    let mut manifests = manifests::read(&args.files)?;
    let flows = manifests::flows(&manifests)?;
    let configurators: Vec<Manifest> = manifests
        .extract_if(.., |manifest| manifest.is_configurator())
        .collect();
    ensure!(
        !configurators.is_empty(),
        "there is no Configurator in these files"
    );
    let client = kinds(args.kubeconfig.as_deref(), manifests).await?;
    let mut all = AllRights::default();
    all.host.own(&args.namespace);
    for manifest in configurators {
        let named = format!("{} {}", manifest.file.display(), manifest.name());
        let read = manifest.configurator().with_context(|| named.clone())?;
        let configurator = declaration::check(&read, &flows).with_context(|| named.clone())?;
        let watched = watched(&client, &configurator.watch)
            .await
            .with_context(|| named.clone())?;
        all.host.configurator(&configurator, &watched);
        all.host.module(&read.spec.module);
        let rights = match &configurator.service_account {
            Some(account) => all.accounts.entry(account.clone()).or_default(),
            None => &mut all.host,
        };
        rights.module(&read.spec.module);
        rights.parameters(&read.spec.parameters_from);
        rights.watch(&configurator, &watched, !args.no_statuses);
        for (index, rule) in configurator.capabilities.kubernetes.iter().enumerate() {
            let path = format!("spec.capabilities.kubernetes[{index}]");
            rights::without_wildcards(&path, rule).with_context(|| named.clone())?;
            rights.capability(&configurator.key.to_string(), &path, rule);
        }
    }
    all.host.simplify();
    all.accounts.values_mut().for_each(Rights::simplify);
    Ok(all)
}

/// Who knows how kinds are served: the cluster that was named, or an embedded API with the definitions of the files.
async fn kinds(kubeconfig: Option<&Path>, manifests: Vec<Manifest>) -> anyhow::Result<Client> {
    if kubeconfig.is_some() {
        return servers::cluster_client(kubeconfig).await;
    }
    let server = embedded::open_api(&Settings::default(), Background::default()).await?;
    let client = Client::new(server, "default");
    let definitions = manifests
        .into_iter()
        .filter(|manifest| manifest.kind() == "CustomResourceDefinition")
        .collect();
    manifests::apply(&client, definitions).await?;
    Ok(client)
}

/// How the watched kind is served.
async fn watched(client: &Client, watch: &Watch) -> anyhow::Result<Watched> {
    let kind = GroupVersionKind::gvk(&watch.group, &watch.version, &watch.kind);
    let (resource, capabilities) = match discovery::pinned_kind(client, &kind).await {
        Err(error) if objects::is_missing(&error) => bail!(
            "the kind {} in {} is not known here: give the file with its CustomResourceDefinition too, or --kubeconfig",
            watch.kind,
            api_version(&watch.group, &watch.version)
        ),
        found => found.context("the cluster cannot be asked for its kinds")?,
    };
    Ok(Watched::of(&resource, &capabilities))
}

/// The rights of the host, and of each ServiceAccount that it acts as.
#[derive(Default)]
struct AllRights {
    host: Rights,
    accounts: BTreeMap<ServiceAccount, Rights>,
}

impl Rights {
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

    /// Roles for the ServiceAccount of a namespace, and their bindings.
    fn manifests(&self, name: &str, account: &ServiceAccount) -> anyhow::Result<Vec<String>> {
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
                    name: account.name.clone(),
                    namespace: account.namespace.clone(),
                }],
            })?);
        }
        Ok(documents)
    }
}

impl AllRights {
    /// Roles and their bindings. `name` and `namespace` are those of the host's ServiceAccount.
    fn manifests(&self, name: &str, namespace: &str) -> anyhow::Result<String> {
        let host = ServiceAccount {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let mut documents = self.host.manifests(name, &host)?;
        for (account, rights) in &self.accounts {
            let name = format!("{name}-{}", account.name);
            documents.extend(rights.manifests(&name, account)?);
        }
        Ok(format!("{}{}", self.comments(), documents.join("---\n")))
    }

    /// The same as values of the Helm chart.
    fn values(&self) -> anyhow::Result<String> {
        let mut rbac = Values::default();
        for (scope, granted) in &self.host.granted {
            let rules = Rights::rules(granted);
            match scope {
                Scope::Everywhere => rbac.cluster = rules,
                Scope::Namespace(namespace) => {
                    rbac.namespaces.insert(namespace.clone(), rules);
                }
            }
        }
        for (account, rights) in &self.accounts {
            let accounts = rbac.service_accounts.entry(account.namespace.clone());
            // A Configurator has no rights outside its namespace.
            let granted = rights.granted.values();
            let rules = granted.flat_map(Rights::rules).collect();
            accounts.or_default().insert(account.name.clone(), rules);
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
        let accounts = self.accounts.values();
        let notes: BTreeSet<&String> = accounts
            .chain([&self.host])
            .flat_map(|rights| &rights.notes)
            .collect();
        for note in notes {
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

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Values {
    cluster: Vec<Rule>,
    namespaces: BTreeMap<String, Vec<Rule>>,
    /// By namespace, then by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    service_accounts: BTreeMap<String, BTreeMap<String, Vec<Rule>>>,
}
