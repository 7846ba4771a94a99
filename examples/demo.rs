//! The main job, from nothing to nothing: `cargo xtask demo`.
//!
//! Runs a host on embedded stores in a folder, or on a cluster, etcd and Vault, applies a small shop, shows each run as it
//! happens and what has come of them, changes something, and deletes something. Then it shows a set of objects: it comes up in order, is
//! corrected, changes, and goes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use configurator_apiserver::{ApiServer, ApiServerOptions};
use configurator_host::cli::terminal::{FAINT, GOOD, NAME, Terminal};
use configurator_host::cluster;
use configurator_host::controller::report::HostReport;
use configurator_host::host::Host;
use configurator_host::module_source::ModuleDirectory;
use configurator_host::objects;
use configurator_host::resource::definitions;
use configurator_host::sinks::configstore::etcd::{EtcdConfigStore, EtcdOptions};
use configurator_host::sinks::configstore::{ConfigStore, EmbeddedConfigStore};
use configurator_host::sinks::secretstore::vault::{VaultAuth, VaultOptions, VaultSecretStore};
use configurator_host::sinks::secretstore::{EmbeddedSecretStore, SealingKey, SecretStore};
use configurator_store::{Store, StoreOptions};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How long anything may take before the demo gives up.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(workspace), Some(modules), Some(place)) = (args.next(), args.next(), args.next())
    else {
        anyhow::bail!(
            "usage: demo WORKSPACE MODULES PLACE, where PLACE is a folder for embedded stores or a file that describes servers; `cargo xtask demo` knows them"
        );
    };
    let servers = if place.is_file() {
        real(&place).await?
    } else {
        embedded(&place).await?
    };
    let demo = Demo::start(&modules, servers).await?;

    title("A shop appears: Nodes, a Namespace, workloads, and Pods on them");
    demo.apply_file(&workspace.join("examples/shop/objects.yaml"))
        .await?;
    for name in ["pod-config", "workload-config"] {
        demo.apply_file(
            &workspace
                .join("configurators")
                .join(name)
                .join("configurator.yaml"),
        )
        .await?;
    }
    let gone = demo.pods().await?;
    demo.settled().await?;
    demo.show().await?;

    title("A change flows through: the Pod orders-0 loses its log level and takes the Namespace's");
    let pods = demo.api("v1", "Pod").await?;
    let patch = json!({"metadata": {"annotations": {"config.configurator.dev/log-level": null}}});
    pods.patch("orders-0", &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    demo.until("orders-0 has the Namespace's log level", || async {
        Ok(demo
            .value("appconf/shop/orders-0/log-level")
            .await?
            .as_deref()
            == Some("info"))
    })
    .await?;

    title("A Pod is deleted: its configuration, its secret and its ConfigMap go with it");
    // No kubelet is there to end it.
    pods.delete(&gone, &DeleteParams::default().grace_period(0))
        .await?;
    demo.until(&format!("nothing of {gone} is left"), || async {
        let keys = demo.config.scan("").await?;
        let is_left = keys
            .iter()
            .any(|(key, _)| !key.starts_with("ledger/") && key.contains(&gone));
        let config_map = demo
            .api("v1", "ConfigMap")
            .await?
            .get_opt(&format!("{gone}-config"))
            .await?;
        Ok(!is_left && config_map.is_none())
    })
    .await?;
    demo.settled().await?;
    demo.show().await?;
    demo.books(&workspace).await?;
    demo.stop().await
}

/// What the host works with.
struct Servers {
    client: Client,
    /// Whether Pods are made of workloads, as a cluster's own controllers do.
    has_controllers: bool,
    config: Arc<dyn ConfigStore>,
    secrets: Arc<dyn SecretStore>,
}

/// The embedded API and stores, in a folder.
async fn embedded(folder: &Path) -> Result<Servers> {
    std::fs::create_dir_all(folder)?;
    let store = Store::open(&folder.join("cluster.redb"), StoreOptions::default())?;
    let server = ApiServer::open(store, ApiServerOptions::new(jiff::Timestamp::now)).await?;
    let key = SealingKey::from_file(&folder.join("secret.key"))?;
    Ok(Servers {
        client: Client::new(server, "default"),
        has_controllers: false,
        config: Arc::new(EmbeddedConfigStore::open(&folder.join("config.redb"))?),
        secrets: Arc::new(EmbeddedSecretStore::open(&folder.join("secrets.redb"), &key).await?),
    })
}

/// A cluster, etcd and Vault, as `cargo xtask controlplane` describes them.
async fn real(description: &Path) -> Result<Servers> {
    let text = std::fs::read_to_string(description)?;
    let about: Value = serde_json::from_str(&text).context("the servers are described in JSON")?;
    let path = |pointer: &str| PathBuf::from(objects::text(&about, pointer));
    let ca = path("/ca");
    let kubeconfig = Kubeconfig::read_from(path("/kubernetes/kubeconfig"))?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    let endpoints = about.pointer("/store/endpoints").cloned();
    let token = VaultAuth::token(objects::text(&about, "/vault/token"));
    let address = objects::text(&about, "/vault/url").to_owned();
    Ok(Servers {
        client: cluster::connect(&config)?.client,
        has_controllers: true,
        config: Arc::new(EtcdConfigStore::new(EtcdOptions {
            endpoints: serde_json::from_value(endpoints.unwrap_or_default())?,
            ca: Some(ca.clone()),
            certificate: Some((path("/store/cert"), path("/store/key"))),
            ..EtcdOptions::default()
        })),
        secrets: Arc::new(VaultSecretStore::new(VaultOptions {
            ca: Some(ca),
            ..VaultOptions::new(vec![address], token)
        })?),
    })
}

struct Demo {
    client: Client,
    has_controllers: bool,
    config: Arc<dyn ConfigStore>,
    secrets: Arc<dyn SecretStore>,
    report: watch::Receiver<HostReport>,
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
}

impl Demo {
    async fn start(modules: &Path, servers: Servers) -> Result<Self> {
        let Servers {
            client,
            has_controllers,
            config,
            secrets,
        } = servers;
        let host = Host::builder()
            .client(client.clone())
            .config_store(config.clone())
            .secret_store(secrets.clone())
            .modules(ModuleDirectory::new(modules))
            .observer(Terminal::default())
            .build()?;
        let report = host.report();
        let stop = CancellationToken::new();
        let demo = Self {
            // The objects of a kind that was just defined cannot be listed at once.
            client: cluster::patient(&client),
            has_controllers,
            config,
            secrets,
            report,
            stop: stop.clone(),
            running: tokio::spawn(host.run(stop.cancelled_owned())),
        };
        for definition in definitions() {
            demo.apply(&definition).await?;
        }
        Ok(demo)
    }

    async fn apply_file(&self, file: &Path) -> Result<()> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
        for object in &objects {
            self.apply(object).await?;
        }
        anstream::println!(
            "{FAINT}applied {} objects of {}{FAINT:#}",
            objects.len(),
            file.display()
        );
        Ok(())
    }

    async fn apply(&self, object: &Value) -> Result<()> {
        objects::apply(&self.client, object, &PatchParams::apply("demo").force()).await?;
        Ok(())
    }

    /// Has every workload its Pods, on Nodes. Returns the name of one that others replace.
    async fn pods(&self) -> Result<String> {
        let log_level = json!({"config.configurator.dev/log-level": "debug"});
        if !self.has_controllers {
            let replica_set = self.replica_set("web").await?;
            for (name, node) in [("web-7d4b9-1", "node-a"), ("web-7d4b9-2", "node-b")] {
                self.pod(name, node, &replica_set, json!({})).await?;
            }
            let orders = self.owner("apps/v1", "StatefulSet", "orders").await?;
            self.pod("orders-0", "node-a", &orders, log_level).await?;
            return Ok("web-7d4b9-2".to_owned());
        }
        let pods = self.api("v1", "Pod").await?;
        let named = async || {
            let found = pods.list(&ListParams::default()).await?;
            let names: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
            anyhow::Ok(names)
        };
        self.until("the cluster has made the Pods", || async {
            Ok(named().await?.len() == 3)
        })
        .await?;
        let names = named().await?;
        for (name, node) in names.iter().zip(["node-a", "node-a", "node-b"]) {
            self.schedule(name, node).await?;
        }
        let patch = json!({"metadata": {"annotations": log_level}});
        pods.patch("orders-0", &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
        for name in &names {
            self.until(&format!("{name} knows the disk of its Node"), || async {
                let key = format!("appconf/shop/{name}/disk");
                Ok(self.value(&key).await?.is_some())
            })
            .await?;
        }
        self.until("orders-0 has a log level of its own", || async {
            let level = self.value("appconf/shop/orders-0/log-level").await?;
            Ok(level.as_deref() == Some("debug"))
        })
        .await?;
        names.into_iter().next_back().context("there are no Pods")
    }

    /// What a scheduler says of a Pod.
    async fn schedule(&self, name: &str, node: &str) -> Result<()> {
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": "shop"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let pods = self.api("v1", "Pod").await?;
        let params = PostParams::default();
        let _: Value = pods
            .create_subresource("binding", name, &params, &binding)
            .await?;
        Ok(())
    }

    /// What a cluster's own controller would make of the Deployment.
    async fn replica_set(&self, deployment: &str) -> Result<Value> {
        let owner = self.owner("apps/v1", "Deployment", deployment).await?;
        self.apply(&json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": format!("{deployment}-7d4b9"), "namespace": "shop",
                "labels": {"app": deployment, "pod-template-hash": "7d4b9"}, "ownerReferences": [owner],
            },
            "spec": {
                "selector": {"matchLabels": {"app": deployment}},
                "template": {
                    "metadata": {"labels": {"app": deployment}},
                    "spec": {"containers": [{"name": "c", "image": "registry.example/shop/web:1.4.0"}]},
                },
            },
        }))
        .await?;
        self.owner("apps/v1", "ReplicaSet", &format!("{deployment}-7d4b9"))
            .await
    }

    async fn owner(&self, api_version: &str, kind: &str, name: &str) -> Result<Value> {
        let uid = self.api(api_version, kind).await?.get(name).await?.uid();
        Ok(
            json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true}),
        )
    }

    async fn pod(&self, name: &str, node: &str, owner: &Value, annotations: Value) -> Result<()> {
        self.apply(&json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "shop", "annotations": annotations, "ownerReferences": [owner],
                "labels": {"pod-template-hash": "7d4b9"},
            },
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "registry.example/shop/any:1"}]},
        }))
        .await
    }

    async fn api(&self, api_version: &str, kind: &str) -> Result<Api<DynamicObject>> {
        Ok(objects::api(&self.client, api_version, kind, "shop").await?)
    }

    async fn value(&self, key: &str) -> Result<Option<String>> {
        let found = self.config.scan(key).await?;
        Ok(found
            .into_iter()
            .find(|(found, _)| found == key)
            .map(|(_, value)| value))
    }

    async fn settled(&self) -> Result<()> {
        let mut report = self.report.clone();
        let both = |report: &HostReport| {
            report.is_ready() && report.is_settled() && report.keepers.len() == 2
        };
        tokio::time::timeout(PATIENCE, report.wait_for(both))
            .await
            .context("it did not settle")??;
        Ok(())
    }

    async fn until<F: Future<Output = Result<bool>>>(
        &self,
        what: &str,
        mut holds: impl FnMut() -> F,
    ) -> Result<()> {
        let waiting = async {
            while !holds().await? {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok::<(), anyhow::Error>(())
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .with_context(|| format!("in vain: {what}"))??;
        anstream::println!("{GOOD}✓ {what}{GOOD:#}");
        Ok(())
    }

    /// Has a set of objects come up, drift, change and go.
    async fn books(&self, workspace: &Path) -> Result<()> {
        let folder = workspace.join("examples/books");
        title("A set comes up in order: the database first, then what needs it");
        self.apply_file(&folder.join("definition.yaml")).await?;
        let manifests = workspace.join("configurators/manifests");
        self.apply_file(&manifests.join("crd.yaml")).await?;
        let declared = std::fs::read_to_string(manifests.join("configurator.yaml"))?;
        let mut declared: Value = serde_saphyr::from_str(&declared)?;
        let databases = json!({
            "apiGroups": ["books.example"], "resources": ["databases"], "namespaces": ["*"],
            "verbs": ["get", "apply", "delete", "watch"],
        });
        let granted = declared.pointer_mut("/spec/capabilities/kubernetes");
        let granted = granted.and_then(Value::as_array_mut);
        granted
            .context("rules of the Configurator")?
            .push(databases);
        self.apply(&declared).await?;
        self.release(&folder, 1).await?;
        self.apply_file(&folder.join("application.yaml")).await?;
        self.until("the set waits for the database", || async {
            let sets = self.api("configurator.dev/v1alpha1", "ObjectSet").await?;
            let sets = sets.list(&ListParams::default()).await?;
            Ok(sets.iter().any(|set| {
                let waiting_for = set.data.pointer("/status/waitingFor");
                let waiting_for = waiting_for.and_then(Value::as_str).unwrap_or_default();
                waiting_for.starts_with("Database") && waiting_for.contains("is false")
            }))
        })
        .await?;
        let databases = self.api("books.example/v1", "Database").await?;
        let running = json!({"status": {"phase": "Running"}});
        databases
            .patch_status("books", &PatchParams::default(), &Patch::Merge(&running))
            .await?;
        self.until("its page is there since the database runs", || async {
            Ok(self.title_of("books-page").await?.as_deref() == Some("Books"))
        })
        .await?;

        title("Somebody changes an object of the set: the host corrects it");
        let maps = self.api("v1", "ConfigMap").await?;
        let changed = json!({"data": {"title": "Closed"}});
        maps.patch(
            "books-page",
            &PatchParams::default(),
            &Patch::Merge(&changed),
        )
        .await?;
        self.until("the page has its title again", || async {
            Ok(self.title_of("books-page").await?.as_deref() == Some("Books"))
        })
        .await?;

        title("A release changes one object and leaves one out: the host deletes it");
        self.release(&folder, 2).await?;
        let applications = self
            .api("manifests.configurator.dev/v1alpha1", "Application")
            .await?;
        let revision = json!({"spec": {"revision": "2"}});
        applications
            .patch("books", &PatchParams::default(), &Patch::Merge(&revision))
            .await?;
        self.until(
            "the page has a new title, and the news are gone",
            || async {
                let is_new =
                    self.title_of("books-page").await?.as_deref() == Some("Books and news");
                Ok(is_new && maps.get_opt("books-news").await?.is_none())
            },
        )
        .await?;

        title("The Application is deleted: its objects go in reverse order");
        applications
            .delete("books", &DeleteParams::default())
            .await?;
        self.until(
            "the page, the database and the Application are gone",
            || async {
                Ok(maps.get_opt("books-page").await?.is_none()
                    && databases.get_opt("books").await?.is_none()
                    && applications.get_opt("books").await?.is_none())
            },
        )
        .await
    }

    /// Publishes the manifests of a release, as `kubectl create configmap` would.
    async fn release(&self, folder: &Path, revision: u8) -> Result<()> {
        let file = folder.join(format!("release-{revision}.yaml"));
        let manifests = std::fs::read_to_string(file)?;
        self.apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": format!("books-{revision}"), "namespace": "shop",
                "labels": {
                    "manifests.configurator.dev/application": "books",
                    "manifests.configurator.dev/revision": revision.to_string(),
                },
            },
            "data": {"manifests.yaml": manifests},
        }))
        .await
    }

    async fn title_of(&self, config_map: &str) -> Result<Option<String>> {
        let found = self
            .api("v1", "ConfigMap")
            .await?
            .get_opt(config_map)
            .await?;
        let title = found.and_then(|found| {
            let title = found.data.pointer("/data/title")?;
            Some(title.as_str()?.to_owned())
        });
        Ok(title)
    }

    async fn show(&self) -> Result<()> {
        title("What there is now");
        for (key, value) in self.config.scan("").await? {
            if !key.starts_with("ledger/") {
                anstream::println!("{NAME}{key}{NAME:#} {FAINT}{value:.100}{FAINT:#}");
            }
        }
        for pod in self
            .api("v1", "Pod")
            .await?
            .list(&ListParams::default())
            .await?
            .items
        {
            let name = format!("pod-shop.{}", pod.name_any());
            if self.secrets.get(&name).await?.is_some() {
                anstream::println!("{NAME}secret {name}{NAME:#} {FAINT}(sealed){FAINT:#}");
            }
        }
        // A cluster has some of its own.
        let is_made = |object: &DynamicObject| {
            let mut managers = object
                .managed_fields()
                .iter()
                .filter_map(|of| of.manager.as_deref());
            managers.any(|manager| manager.starts_with("ccfgr/"))
        };
        let config_maps = self.api("v1", "ConfigMap").await?;
        let config_maps = config_maps.list(&ListParams::default()).await?;
        for object in config_maps.items.into_iter().filter(is_made) {
            let data = object.data.get("data").cloned().unwrap_or_default();
            let name = object.name_any();
            anstream::println!("{NAME}ConfigMap {name}{NAME:#} {FAINT}{data}{FAINT:#}");
        }
        Ok(())
    }

    async fn stop(self) -> Result<()> {
        self.stop.cancel();
        self.running.await?;
        Ok(())
    }
}

fn title(text: &str) {
    anstream::println!("\n{GOOD}── {text} ──{GOOD:#}");
}
