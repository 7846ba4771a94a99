//! The program as several processes, on a real API and a real etcd, stopped and killed by signals.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use configurator_core::ring::shard_of;
use configurator_tests::configurator::scripted;
use configurator_tests::controlplane::{About, ControlPlane, Plan};
use configurator_tests::guests;
use configurator_tests::program::{Program, Running};
use configurator_tests::world::PATIENCE;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

const SHARDS: u16 = 4;
const OBJECTS: usize = 24;

struct Processes {
    about: About,
    client: Client,
    hosts: BTreeMap<&'static str, Running>,
    folder: tempfile::TempDir,
    _plane: ControlPlane,
}

fn configurator() -> Value {
    let copy = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "copy-of-{name}", "namespace": "{namespace}"},
        "data": {"run": "{run}"},
    });
    let put = json!({"name": "put", "put": {"key": "{name}", "value": "{run}"}});
    scripted(
        "shared",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"handled": "yes"}}}),
        json!({"requests": [put, {"name": "copy", "apply": copy}]}),
        json!({
            "kubernetes": [{"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": ["apply"]}],
            "configstore": [{"prefixes": [""], "verbs": ["create", "update"]}],
        }),
    )
}

impl Processes {
    async fn open() -> Result<Self> {
        let plane = ControlPlane::start(&Plan::default()).await?;
        let about = plane.about().clone();
        Ok(Self {
            client: about.client().await?,
            about,
            hosts: BTreeMap::new(),
            folder: tempfile::tempdir()?,
            _plane: plane,
        })
    }

    /// A kubeconfig by which the record of the API tells the hosts apart.
    fn kubeconfig(&self, host: &str) -> Result<PathBuf> {
        let text = std::fs::read_to_string(&self.about.kubernetes.kubeconfig)?;
        let mut config: Value = serde_saphyr::from_str(&text)?;
        let user = config
            .pointer_mut("/users/0/user")
            .context("a user")?
            .as_object_mut()
            .context("a user")?;
        user.insert("as".into(), host.into());
        user.insert("as-groups".into(), json!(["system:masters"]));
        let path = self.folder.path().join(host);
        std::fs::write(&path, config.to_string())?;
        Ok(path)
    }

    fn start(&mut self, host: &'static str) -> Result<()> {
        let store = &self.about.store;
        let running = Program::new("run")
            .args("--shards 4 --log-format json")
            .arg("--kubeconfig")
            .arg(self.kubeconfig(host)?)
            .arg("--etcd-endpoint")
            .arg(&store.endpoints[0])
            .arg("--modules")
            .arg(guests::folder()?)
            .env("CONFIGURATOR_ETCD__CA", &self.about.ca)
            .env("CONFIGURATOR_ETCD__CERT", &store.cert)
            .env("CONFIGURATOR_ETCD__KEY", &store.key)
            .envs(self.about.vault_variables())
            .env("CONFIGURATOR_SHARDING__HOST", host)
            .env("CONFIGURATOR_SHARDING__NAMESPACE", "default")
            .env("CONFIGURATOR_SHARDING__LEASE_SECONDS", "3")
            .start()?;
        self.hosts.insert(host, running);
        Ok(())
    }

    async fn apply<K>(&self, api: Api<K>, object: &Value) -> Result<()>
    where
        K: serde::de::DeserializeOwned + Clone + std::fmt::Debug,
    {
        let name = object["metadata"]["name"].as_str().context("a name")?;
        let params = PatchParams::apply("test").force();
        api.patch(name, &params, &Patch::Apply(object)).await?;
        Ok(())
    }

    async fn change_all(&self, number: usize) -> Result<()> {
        for index in 0..OBJECTS {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": format!("object-{index}"), "labels": {"handled": "yes"}},
                "data": {"number": number.to_string()},
            });
            let api: Api<ConfigMap> = Api::default_namespaced(self.client.clone());
            self.apply(api, &object).await?;
        }
        Ok(())
    }

    /// The run that each copy comes from.
    async fn copies(&self) -> Result<BTreeMap<String, String>> {
        let api: Api<ConfigMap> = Api::default_namespaced(self.client.clone());
        let copies = api.list(&ListParams::default()).await?.into_iter();
        let of = |copy: ConfigMap| {
            let run = copy.data.as_ref()?.get("run")?.clone();
            Some((copy.name_any(), run))
        };
        Ok(copies.filter_map(of).collect())
    }

    /// Who has each shard, by the names that the hosts were given.
    async fn owners(&self) -> Result<Vec<String>> {
        let api: Api<Lease> = Api::default_namespaced(self.client.clone());
        let mut owners = Vec::new();
        for shard in 0..SHARDS {
            let lease = api.get_opt(&format!("configurator-shard-{shard}")).await?;
            let holder = lease.and_then(|lease| lease.spec?.holder_identity);
            owners.push(owner(&holder.unwrap_or_default()));
        }
        Ok(owners)
    }

    async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
        let waiting = async {
            while !holds().await? {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            anyhow::Ok(())
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(done) => done,
            Err(_) => {
                let told = self.hosts.iter();
                let told: Vec<String> = told
                    .map(|(name, host)| format!("{name}: {}{}", host.stdout(), host.stderr()))
                    .collect();
                anyhow::bail!("in vain: {what}; {}", told.join("\n"))
            }
        }
    }

    /// Returns when exactly these hosts have the shards.
    async fn shared_by(&self, hosts: &[&str]) -> Result<()> {
        self.until(&format!("shared by {hosts:?}"), async || {
            let owners = self.owners().await?;
            let are_known = owners.iter().all(|owner| hosts.contains(&owner.as_str()));
            Ok(are_known
                && hosts
                    .iter()
                    .all(|host| owners.iter().any(|owner| owner == host)))
        })
        .await
    }

    /// Every write of a host to a copy came while its Lease said that the object was that host's.
    async fn check(&self) -> Result<usize> {
        let api: Api<ConfigMap> = Api::default_namespaced(self.client.clone());
        let objects = api
            .list(&ListParams::default().labels("handled=yes"))
            .await?;
        let shards: BTreeMap<String, u16> = objects
            .into_iter()
            .map(|object| {
                let shard = shard_of(&object.uid().unwrap_or_default(), SHARDS);
                (format!("copy-of-{}", object.name_any()), shard)
            })
            .collect();
        let mut owners: BTreeMap<u16, String> = BTreeMap::new();
        let mut hand_overs = 0;
        let mut events: Vec<Value> = std::fs::read_to_string(&self.about.kubernetes.audit)?
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        events.retain(|event| {
            matches!(event["verb"].as_str(), Some("create" | "patch"))
                && event["stage"] == "ResponseComplete"
                && event["responseStatus"]["code"]
                    .as_u64()
                    .is_some_and(|code| code < 300)
        });
        // In the order in which they were finished.
        events.sort_by_key(|event| {
            let at = event["stageTimestamp"].as_str().unwrap_or_default();
            at.parse::<jiff::Timestamp>().unwrap_or_default()
        });
        for event in events {
            let name = ["/objectRef/name", "/requestObject/metadata/name"];
            let name = name.iter().find_map(|at| event.pointer(at)?.as_str());
            let name = name.unwrap_or_default();
            let host = event["impersonatedUser"]["username"]
                .as_str()
                .unwrap_or_default();
            match event["objectRef"]["resource"].as_str() {
                Some("leases") => {
                    let Some(shard) = name.strip_prefix("configurator-shard-") else {
                        continue;
                    };
                    let holder = &event["requestObject"]["spec"]["holderIdentity"];
                    let holder = owner(holder.as_str().unwrap_or_default());
                    let before = owners.insert(shard.parse()?, holder.clone());
                    hand_overs += usize::from(before.as_ref() != Some(&holder));
                }
                Some("configmaps") => {
                    let Some(shard) = shards.get(name) else {
                        continue;
                    };
                    let owner = owners.get(shard).map(String::as_str);
                    ensure!(
                        owner == Some(host),
                        "{host} wrote {name}, which is {owner:?}'s: {event}"
                    );
                }
                _ => {}
            }
        }
        Ok(hand_overs)
    }
}

/// Without its random ending.
fn owner(identity: &str) -> String {
    let name = identity.rsplit_once('-').map(|(name, _)| name);
    name.unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_are_killed_or_stopped_are_replaced_within_seconds() -> Result<()> {
    let mut fleet = Processes::open().await?;
    fleet.start("a")?;
    let definition: Api<kube::api::DynamicObject> = Api::all_with(
        fleet.client.clone(),
        &kube::api::ApiResource {
            group: "configurator.dev".into(),
            version: "v1alpha1".into(),
            api_version: "configurator.dev/v1alpha1".into(),
            kind: "ClusterConfigurator".into(),
            plural: "clusterconfigurators".into(),
        },
    );
    fleet
        .until("the definition is there", async || {
            let applied = fleet.apply(definition.clone(), &configurator()).await;
            Ok(applied.is_ok())
        })
        .await?;
    fleet.start("b")?;
    fleet.start("c")?;
    fleet.shared_by(&["a", "b", "c"]).await?;
    fleet.change_all(1).await?;
    let all_copied = async || anyhow::Ok(fleet.copies().await?.len() == OBJECTS);
    fleet.until("every object is copied", all_copied).await?;
    let first = fleet.copies().await?;

    // One is killed, and nobody is told.
    drop(fleet.hosts.remove("a"));
    fleet.change_all(2).await?;
    fleet.shared_by(&["b", "c"]).await?;

    // One is stopped where it stands, and goes on later as if nothing had happened.
    fleet.hosts["b"].signal("STOP")?;
    fleet.change_all(3).await?;
    fleet.shared_by(&["c"]).await?;
    fleet.change_all(4).await?;
    fleet.hosts["b"].signal("CONT")?;
    fleet.start("a")?;
    fleet.shared_by(&["a", "b", "c"]).await?;

    // One is asked to end: what it has is given back, not lost.
    let mut leaving = fleet.hosts.remove("c").context("a host")?;
    leaving.signal("TERM")?;
    let status = leaving.ended()?;
    ensure!(status.success(), "{status}: {}", leaving.stderr());
    ensure!(
        !leaving.stderr().contains("was lost"),
        "{}",
        leaving.stderr()
    );
    fleet.shared_by(&["a", "b"]).await?;

    // The content of the beginning means the run of the beginning, for every object.
    fleet.change_all(1).await?;
    let as_first = async || Ok(fleet.copies().await? == first);
    fleet
        .until("every object is as it was first", as_first)
        .await?;
    for (_, mut host) in std::mem::take(&mut fleet.hosts) {
        host.signal("TERM")?;
        host.ended()?;
    }
    let hand_overs = fleet.check().await?;
    ensure!(hand_overs >= 12, "{hand_overs} hand-overs");
    Ok(())
}
