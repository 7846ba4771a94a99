//! Several hosts on one API and one config store, in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use configurator_apiserver::{ApiServer, ApiServerOptions};
use configurator_core::time::Timestamp;
use configurator_host::clock::VirtualClock;
use configurator_host::controller::call_mode::CallMode;
use configurator_host::host::Unselected;
use configurator_host::module_source::ModuleDirectory;
use configurator_host::resource::{ClusterConfigurator, ConfiguratorStatus};
use configurator_host::scope::HostScope;
use configurator_host::shards::Sharding;
use configurator_host::sinks::configstore::ConfigStore;
use configurator_store::Store;
use configurator_tests::configurator::scripted;
use configurator_tests::world::{Place, Servers, World, until};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::journal::Journal;
use crate::partition::Way;

/// Several hosts.
pub struct Fleet {
    pub journal: Journal,
    servers: Servers,
    /// The API's stored objects.
    store: Store,
    server: watch::Sender<ApiServer>,
    shards: u16,
    hosts: BTreeMap<String, Member>,
    /// Where the modules are, where they are not those that `cargo xtask guests` builds.
    modules: Option<PathBuf>,
    /// The number that each object has.
    objects: BTreeMap<String, u64>,
}

struct Member {
    world: World,
    way: watch::Sender<bool>,
    group: String,
}

fn configurator() -> Value {
    let put = |name: &str| {
        let key = format!("{name}-{{name}}");
        json!({"name": name, "put": {"key": key, "value": "{run}"}})
    };
    let root = json!({"serial": true, "requests": [put("first"), put("second"), put("third")]});
    let remove = json!({"name": "remove", "remove": "first-{name}"});
    let mut shared = scripted(
        "shared",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"handled": "yes"}}}),
        root,
        json!({"configstore": [{"prefixes": [""], "verbs": ["get", "create", "update", "delete"]}]}),
    );
    let spec = &mut shared["spec"];
    spec["deletion"] = json!({"by": "Ledger", "phases": [{"name": "gone", "handler": "root"}]});
    spec["parameters"]["gone"] = json!({"requests": [remove]});
    spec["concurrency"] = json!(64);
    shared
}

async fn serve(store: &Store) -> Result<ApiServer> {
    let options = ApiServerOptions::new(jiff::Timestamp::now);
    Ok(ApiServer::open(store.clone(), options).await?)
}

impl Fleet {
    /// Servers without hosts.
    pub async fn open(shards: u16) -> Result<Self> {
        let store = Store::memory();
        let (server, servers) = watch::channel(serve(&store).await?);
        let (way, _) = Way::to(servers);
        let servers = Servers {
            cluster: Client::new(way, "default").into(),
            server: None,
            ..Place::default().open().await?
        };
        Ok(Self {
            journal: Journal::default(),
            servers,
            store,
            server,
            shards,
            hosts: BTreeMap::new(),
            modules: None,
            objects: BTreeMap::new(),
        })
    }

    /// With its config store behind what this returns.
    pub fn with_config_store(
        mut self,
        before: impl FnOnce(Arc<dyn ConfigStore>) -> Arc<dyn ConfigStore>,
    ) -> Self {
        self.servers.config = before(self.servers.config);
        self
    }

    /// Speaks to the API.
    pub fn client(&self) -> Client {
        self.servers.cluster.client.clone()
    }

    /// With the modules of this folder.
    pub fn with_modules(self, folder: &Path) -> Self {
        Self {
            modules: Some(folder.to_owned()),
            ..self
        }
    }

    /// Applies the Configurator with changes.
    pub async fn configure(&self, change: impl FnOnce(&mut Value)) -> Result<()> {
        let anyone = self.hosts.values().next().context("a host")?;
        let mut shared = configurator();
        change(&mut shared);
        anyone.world.apply(&shared).await
    }

    /// Returns when the status of the Configurator is so.
    pub async fn until_status(
        &self,
        what: &str,
        holds: impl Fn(&ConfiguratorStatus) -> bool,
    ) -> Result<()> {
        let api: Api<ClusterConfigurator> = Api::all(self.servers.cluster.client.clone());
        let anyone = self.hosts.values().next().context("a host")?;
        let is_so = async || {
            let status = api.get("shared").await?.status.unwrap_or_default();
            Ok(holds(&status))
        };
        anyone.world.until(what, is_so).await
    }

    /// Returns the Configurators that a host leaves to others because of its scope.
    pub fn outside(&self, host: &str) -> BTreeSet<String> {
        self.hosts[host].world.report().outside
    }

    /// One more host.
    pub async fn join(&mut self, name: &str) -> Result<()> {
        self.join_group("configurator", name, HostScope::default())
            .await
    }

    /// One more host in the group of this name, with the group's scope.
    pub async fn join_group(&mut self, group: &str, name: &str, scope: HostScope) -> Result<()> {
        let (way, open) = Way::to(self.server.subscribe());
        let servers = Servers {
            cluster: Client::new(way, "default").into(),
            ..self.servers.clone()
        };
        let mut sharding = Sharding::new("default", name);
        sharding.shards = self.shards;
        sharding.name = group.to_owned();
        let journal = self.journal.clone();
        let host = name.to_owned();
        let modules = self.modules.clone();
        let world = World::start_on(servers, |builder| {
            let builder = match modules {
                Some(folder) => builder.modules(ModuleDirectory::new(folder)),
                None => builder,
            };
            builder
                .sharding(sharding)
                .scope(scope)
                .unselected(Unselected::Allowed)
                .observer(journal.of(name))
                .decorate_sinks(move |sinks| journal.before(&host, sinks))
                .clock(VirtualClock::starting_at(Timestamp::from_millis(0)))
                .call_mode(CallMode::Inline)
        })
        .await?;
        if self.hosts.is_empty() {
            world.apply(&configurator()).await?;
        }
        let member = Member {
            world,
            way: open,
            group: group.to_owned(),
        };
        self.hosts.insert(name.to_owned(), member);
        Ok(())
    }

    /// The claims of Configurators: who has each, and which hosts are entered.
    pub async fn claims(&self) -> Result<String> {
        let leases: Api<Lease> = Api::default_namespaced(self.client());
        let params = ListParams::default().labels("configurator.dev/claimed-by");
        let mut lines = Vec::new();
        for lease in leases.list(&params).await? {
            let annotation = |name: &str| {
                let annotations = lease.annotations();
                annotations
                    .get(&format!("configurator.dev/{name}"))
                    .cloned()
            };
            let hosts = annotation("hosts").unwrap_or_default();
            let hosts: Vec<&str> = hosts
                .split(',')
                .map(|host| host.split('-').next().unwrap_or_default())
                .collect();
            let of = annotation("configurator").unwrap_or_default();
            let spec = lease.spec.clone().unwrap_or_default();
            let group = spec.holder_identity.unwrap_or_default();
            lines.push(format!("{of}: {group}, hosts {}", hosts.join(" ")));
        }
        Ok(lines.join("\n"))
    }

    /// Returns when the claims are so.
    pub async fn until_claims(&self, expected: &str) -> Result<()> {
        until(&format!("the claims are {expected:?}"), async || {
            Ok(self.claims().await? == expected)
        })
        .await
    }

    /// Everything that the API has stored.
    pub fn backup(&self) -> Result<Vec<(Bytes, Bytes)>> {
        Ok(self.store.range(b"", usize::MAX)?)
    }

    /// Replaces the API by one that has what it had then. The config store and the secret store stay as they are.
    pub async fn restore(&mut self, backup: Vec<(Bytes, Bytes)>) -> Result<()> {
        let store = Store::memory();
        let copying = store.write(move |transaction| {
            for (key, value) in backup {
                transaction.put(key, value);
            }
            Ok::<_, std::convert::Infallible>(())
        });
        copying
            .await
            .map_err(|error| anyhow::anyhow!("{error:?}"))?;
        self.server.send_replace(serve(&store).await?);
        self.store = store;
        Ok(())
    }

    /// How many Leases the hosts have found in an older state than they had been.
    pub fn rollbacks(&self) -> u64 {
        let of = |member: &Member| {
            let line = member.world.metric("configurator_lease_rollbacks_total ");
            let number = line.split(' ').next_back().unwrap_or_default();
            number.parse().unwrap_or(0)
        };
        self.hosts.values().map(of).sum()
    }

    /// A host ends as if its machine did.
    pub async fn kill(&mut self, name: &str) -> Result<()> {
        self.hosts
            .remove(name)
            .context("a host")?
            .world
            .kill()
            .await
    }

    /// A host stops as it should.
    pub async fn leave(&mut self, name: &str) -> Result<()> {
        self.hosts
            .remove(name)
            .context("a host")?
            .world
            .stop()
            .await
    }

    /// A host does not reach the API any more.
    pub fn cut_off(&self, name: &str) {
        self.hosts[name].way.send_replace(false);
    }

    /// It does again.
    pub fn reconnect(&self, name: &str) {
        self.hosts[name].way.send_replace(true);
    }

    /// Someone else writes their name into a Lease of a host.
    pub async fn rob(&self, name: &str) -> Result<()> {
        let leases: Api<Lease> = Api::default_namespaced(self.servers.cluster.client.clone());
        for lease in leases.list(&ListParams::default()).await? {
            let spec = lease.spec.clone().unwrap_or_default();
            let holder = spec.holder_identity.unwrap_or_default();
            if holder.starts_with(&format!("{name}-")) && lease.name_any().contains("-shard-") {
                let body = json!({"spec": {"holderIdentity": "a thief"}});
                let params = PatchParams::default();
                leases
                    .patch(&lease.name_any(), &params, &Patch::Merge(&body))
                    .await?;
                return Ok(());
            }
        }
        Ok(())
    }

    fn shards_of(&self, name: &str) -> usize {
        let line = self.hosts[name].world.metric("configurator_shards ");
        let number = line.split(' ').next_back().unwrap_or_default();
        number.parse().unwrap_or_default()
    }

    /// Returns when `holds` does.
    pub async fn until(&self, what: &str, holds: impl Fn() -> bool) -> Result<()> {
        until(what, async || Ok(holds())).await
    }

    /// Returns when every host has its share of the shards.
    pub async fn shared_out(&self) -> Result<()> {
        let all = usize::from(self.shards);
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, member) in &self.hosts {
            groups.entry(&member.group).or_default().push(name);
        }
        self.until("the shards are shared out", || {
            groups.values().all(|hosts| {
                let most = all.div_ceil(hosts.len());
                let loads = hosts.iter().map(|name| self.shards_of(name));
                let loads: Vec<usize> = loads.collect();
                loads.iter().sum::<usize>() == all && loads.iter().all(|load| *load <= most)
            })
        })
        .await
    }

    /// Returns when the others have the shards of a host.
    pub async fn taken_over(&self, name: &str) -> Result<()> {
        self.until("the shards are taken over", || {
            let others = self.hosts.keys().filter(|other| *other != name);
            let load: usize = others.map(|other| self.shards_of(other)).sum();
            self.shards_of(name) == 0 && load == usize::from(self.shards)
        })
        .await
    }

    fn config_maps(&self) -> Api<k8s_openapi::api::core::v1::ConfigMap> {
        Api::default_namespaced(self.servers.cluster.client.clone())
    }

    /// Makes so many objects.
    pub async fn make(&mut self, number: usize) -> Result<()> {
        for index in 0..number {
            self.objects.insert(format!("object-{index}"), 0);
        }
        self.change_all().await
    }

    /// Changes every object.
    pub async fn change_all(&mut self) -> Result<()> {
        let api = self.config_maps();
        for (name, number) in &mut self.objects {
            *number += 1;
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {"handled": "yes"}},
                "data": {"number": number.to_string()},
            });
            let params = PatchParams::apply("test").force();
            api.patch(name, &params, &Patch::Apply(&object)).await?;
        }
        Ok(())
    }

    /// Removes an object.
    pub async fn delete(&mut self, name: &str) -> Result<()> {
        self.objects.remove(name);
        self.config_maps()
            .delete(name, &DeleteParams::default())
            .await?;
        Ok(())
    }

    /// Returns when the newest version of every object was run to a good end.
    pub async fn done(&self) -> Result<()> {
        let is_done = |(name, number): (&String, &u64)| self.journal.done(name) == Some(*number);
        let waited = self
            .until("every object is done", || self.objects.iter().all(is_done))
            .await;
        self.journal.check();
        waited.with_context(|| {
            let missing = self.objects.iter().filter(|object| !is_done(*object));
            format!("{:?}", missing.collect::<Vec<_>>())
        })
    }

    /// Returns when nothing is left of an object in the config store.
    pub async fn gone(&self, name: &str) -> Result<()> {
        let anyone = self.hosts.values().next().context("a host")?;
        let key = format!("basic/first-{name}");
        anyone
            .world
            .until("nothing is left of the object", async || {
                let keys = anyone.world.keys().await?;
                Ok(keys.iter().all(|(found, _)| *found != key))
            })
            .await
    }

    /// What the Configurator says, once it speaks of every object and host.
    pub async fn status(&self) -> Result<String> {
        let api: Api<ClusterConfigurator> = Api::all(self.servers.cluster.client.clone());
        let anyone = self.hosts.values().next().context("a host")?;
        let read = async || anyhow::Ok(api.get("shared").await?.status.unwrap_or_default());
        anyone
            .world
            .until("the status speaks of everything", async || {
                let status = read().await?;
                let counts = status.counts.unwrap_or_default();
                let of_hosts: u64 = status.hosts.iter().map(|host| host.counts.objects).sum();
                Ok(status.hosts.len() == self.hosts.len()
                    && counts.objects == self.objects.len() as u64
                    && of_hosts == counts.objects)
            })
            .await?;
        let status = read().await?;
        let mut lines: Vec<String> = status
            .conditions
            .iter()
            .map(|condition| {
                format!(
                    "{} {} {}",
                    condition.type_, condition.status, condition.reason
                )
            })
            .collect();
        // The API keeps them in the order in which they came.
        let mut hosts = status.hosts;
        hosts.sort_by(|one, other| one.name.cmp(&other.name));
        for host in hosts {
            let name = host.name.split('-').next().unwrap_or_default();
            lines.push(format!("{name}: shards {}", host.shards));
        }
        Ok(lines.join("\n") + "\n")
    }

    /// Stops every host.
    pub async fn stop(self) -> Result<()> {
        for member in self.hosts.into_values() {
            member.world.stop().await?;
        }
        Ok(())
    }
}
