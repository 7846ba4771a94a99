//! `configurator sets`: the desired sets of a cluster, and what they wait for.

mod drawing;

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};

use super::escape::Escaped;
use super::servers;
use super::table::table;
use crate::resource::object_set::{MemberSpec, ObjectSet, ObjectSetSpec};

/// Inspect desired sets.
#[derive(Args)]
pub struct SetsArgs {
    /// Kubeconfig of the cluster. Default: the cluster of the Pod this runs in.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG", global = true)]
    kubeconfig: Option<PathBuf>,
    #[command(subcommand)]
    view: View,
}

#[derive(Subcommand)]
enum View {
    /// List sets: owner, number of objects, state, and what they wait for.
    List {
        /// Only sets of this namespace. Default: all namespaces.
        #[arg(short, long, value_name = "NAMESPACE")]
        namespace: Option<String>,
        /// Only sets that are not ready.
        #[arg(long)]
        unready: bool,
    },
    /// Show the members of a set in the order in which they are created, with the state of each.
    Tree(Owner),
    /// Show what a set waits for: each member that holds up others, with the reason.
    Why {
        #[command(flatten)]
        owner: Owner,
        /// Only what this entry waits for.
        entry: Option<String>,
    },
}

/// The owner of a set.
#[derive(Args)]
struct Owner {
    /// Owner of the set: NAMESPACE/NAME, or NAME in the namespace `default` or of a cluster-scoped object. The name of the ObjectSet is accepted too.
    owner: String,
    /// Kind of the owner, where owners of several kinds have the same name.
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
}

/// Does what the command line says.
///
/// # Errors
/// When the cluster cannot be asked, or there is no such set or entry.
pub fn sets(args: &SetsArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = servers::cluster_client(args.kubeconfig.as_deref()).await?;
        let text = match &args.view {
            View::List { namespace, unready } => {
                list(&client, namespace.as_deref(), *unready).await?
            }
            View::Tree(owner) => {
                let sets = owner.sets(&client).await?;
                sets.iter().map(drawing::tree).collect()
            }
            View::Why { owner, entry } => {
                let sets = owner.sets(&client).await?.into_iter();
                let drawn = sets.map(|set| drawing::why(&set, entry.as_deref()));
                drawn.collect::<anyhow::Result<String>>()?
            }
        };
        anstream::print!("{text}");
        Ok(ExitCode::SUCCESS)
    })
}

/// All sets, each with the members of all pages of its inventory.
async fn all(client: &Client, namespace: Option<&str>) -> anyhow::Result<Vec<ObjectSet>> {
    let api: Api<ObjectSet> = match namespace {
        None => Api::all(client.clone()),
        Some(namespace) => Api::namespaced(client.clone(), namespace),
    };
    let found = api.list(&ListParams::default()).await;
    let found = found.context("cannot read the ObjectSets")?;
    let (mut sets, further): (Vec<ObjectSet>, Vec<ObjectSet>) =
        found.items.into_iter().partition(|set| set.spec.pages > 0);
    let mut members: HashMap<(String, String), Vec<MemberSpec>> = HashMap::new();
    for page in further {
        members
            .entry(inventory_of(&page))
            .or_default()
            .extend(page.spec.members);
    }
    for set in &mut sets {
        let further = members.remove(&inventory_of(set));
        set.spec.members.extend(further.unwrap_or_default());
    }
    Ok(sets)
}

/// Identifies the inventory of a page, by the uids of the owner and the Configurator.
fn inventory_of(page: &ObjectSet) -> (String, String) {
    let ObjectSetSpec {
        owner,
        configurator,
        ..
    } = &page.spec;
    (owner.uid.clone(), configurator.uid.clone())
}

async fn list(client: &Client, namespace: Option<&str>, unready: bool) -> anyhow::Result<String> {
    let header = ["SET", "OWNER", "OBJECTS", "READY", "STATE", "WAITING FOR"];
    let mut rows = vec![header.map(str::to_owned)];
    for set in all(client, namespace).await? {
        let status = set.status.clone().unwrap_or_default();
        if unready && status.state == "Ready" {
            continue;
        }
        rows.push([
            format!("{}/{}", set.namespace().unwrap_or_default(), set.name_any()),
            Escaped(status.owner).to_string(),
            status.objects.to_string(),
            status.ready.to_string(),
            Escaped(status.state).to_string(),
            Escaped(status.waiting_for).to_string(),
        ]);
    }
    Ok(table(&rows))
}

impl Owner {
    /// Returns the sets of the owner. An owner has one for each Configurator that keeps a set for it.
    async fn sets(&self, client: &Client) -> anyhow::Result<Vec<ObjectSet>> {
        let (namespace, name) = match self.owner.split_once('/') {
            None => ("default", self.owner.as_str()),
            Some((namespace, name)) => (namespace, name),
        };
        let mut sets = all(client, Some(namespace)).await?;
        sets.retain(|set| {
            let owner = &set.spec.owner;
            let is_kind = self.kind.as_ref().is_none_or(|kind| *kind == owner.kind);
            is_kind && (owner.name == name || set.name_any() == name)
        });
        if sets.is_empty() {
            let kind = self.kind.as_deref().unwrap_or("object");
            bail!(
                "no {kind} {name:?} in the namespace {namespace:?} has a set; `configurator sets list` lists the owners"
            );
        }
        Ok(sets)
    }
}
