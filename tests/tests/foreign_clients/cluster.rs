//! What the clients are let loose on.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use configurator_apiserver::{ApiServer, ApiServerOptions, ServeOptions};
use configurator_host::objects;
use configurator_store::{OpenError, Store, StoreOptions};
use configurator_tests::controlplane::{About, ControlPlane, Do, Plan};
use configurator_tests::guests;
use configurator_tests::program::until;
use configurator_tests::world::PATIENCE;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A Kubernetes API, and a namespace of the test's own.
pub struct Cluster {
    pub namespace: String,
    pub kubeconfig: PathBuf,
    client: Client,
    kind: Kind,
}

enum Kind {
    Embedded(Box<Embedded>),
    /// Shared with other tests, so it is never stopped.
    Shared(Box<About>),
    Own(ControlPlane),
}

/// The embedded API, served from a file.
struct Embedded {
    folder: tempfile::TempDir,
    served: Option<Served>,
}

struct Served {
    addr: SocketAddr,
    stop: oneshot::Sender<()>,
    done: JoinHandle<()>,
}

impl Embedded {
    /// Opens the store.
    async fn open(&self) -> ApiServer {
        let path = self.folder.path().join("cluster.redb");
        // Whoever had it before may still be letting it go.
        let store = until("the store is free", PATIENCE, || {
            match Store::open(&path, StoreOptions::default()) {
                Err(OpenError::HeldByAnotherProcess { .. }) => Ok(None),
                opened => opened.map(Some),
            }
        })
        .unwrap();
        let options = ApiServerOptions::new(jiff::Timestamp::now);
        ApiServer::open(store, options).await.unwrap()
    }

    /// Serves it.
    async fn serve(&mut self, server: ApiServer, addr: SocketAddr) {
        let (stop, stopped) = oneshot::channel::<()>();
        let options = ServeOptions { addr, token: None };
        let shutdown = async move {
            let _ = stopped.await;
        };
        let (at, serving) = server.serve(options, shutdown).await.unwrap();
        std::fs::write(self.folder.path().join("kubeconfig"), at.kubeconfig()).unwrap();
        self.served = Some(Served {
            addr: at.addr,
            stop,
            done: tokio::spawn(serving),
        });
    }
}

impl Cluster {
    /// The embedded API, served over TLS on loopback.
    pub async fn embedded() -> Self {
        let mut embedded = Embedded {
            folder: tempfile::tempdir().unwrap(),
            served: None,
        };
        let server = embedded.open().await;
        embedded.serve(server, "127.0.0.1:0".parse().unwrap()).await;
        let kubeconfig = embedded.folder.path().join("kubeconfig");
        Self::of(Kind::Embedded(Box::new(embedded)), kubeconfig).await
    }

    /// A real control plane that other tests use as well.
    pub async fn shared() -> Self {
        let about = ControlPlane::shared().await.unwrap();
        let kubeconfig = about.kubernetes.kubeconfig.clone();
        Self::of(Kind::Shared(Box::new(about)), kubeconfig).await
    }

    /// A real control plane that can be stopped.
    pub async fn own() -> Self {
        let plane = ControlPlane::start(&Plan::default()).await.unwrap();
        let kubeconfig = plane.about().kubernetes.kubeconfig.clone();
        Self::of(Kind::Own(plane), kubeconfig).await
    }

    async fn of(kind: Kind, kubeconfig: PathBuf) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let cluster = Self {
            namespace: format!("clients-{number}"),
            client: client(&kubeconfig).await,
            kubeconfig,
            kind,
        };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": cluster.namespace}});
        cluster.apply(&namespace).await;
        let file = guests::workspace().join("tests/servers/clients/widget.yaml");
        let text = std::fs::read_to_string(file).unwrap();
        let definition = serde_saphyr::from_str(&text).unwrap();
        cluster.apply(&definition).await;
        let definitions = cluster
            .api("apiextensions.k8s.io/v1", "CustomResourceDefinition")
            .await;
        let is_established = |found: Option<&DynamicObject>| {
            let conditions = found.and_then(|found| found.data["status"]["conditions"].as_array());
            conditions.is_some_and(|all| {
                all.iter()
                    .any(|one| one["type"] == "Established" && one["status"] == "True")
            })
        };
        cluster
            .until(
                &definitions,
                "widgets.clients.configurator.dev",
                is_established,
            )
            .await;
        cluster
    }

    /// Stops the server and starts it again on the same address and data.
    pub async fn restart(&mut self) {
        self.restart_after(async |_| ()).await;
    }

    /// Stops the server, does something to the data of the embedded one while nobody is connected, and starts it again.
    pub async fn restart_after(&mut self, meanwhile: impl AsyncFnOnce(Client)) {
        match &mut self.kind {
            Kind::Embedded(embedded) => {
                let served = embedded.served.take().unwrap();
                let _ = served.stop.send(());
                served.done.await.unwrap();
                let server = embedded.open().await;
                meanwhile(Client::new(server.clone(), &self.namespace)).await;
                embedded.serve(server, served.addr).await;
            }
            Kind::Shared(about) => panic!("{} belongs to others too", about.kubernetes.url),
            Kind::Own(plane) => {
                plane.command(Do::Kill, "kube-apiserver").await.unwrap();
                plane.command(Do::Start, "kube-apiserver").await.unwrap();
            }
        }
        self.client = client(&self.kubeconfig).await;
        let is_ready = async || {
            let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
            self.client.request_text(request).await.is_ok()
        };
        let waiting = async {
            while !is_ready().await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .expect("the server does not come back");
    }

    /// The objects of a kind: of the namespace, where the kind has one.
    pub async fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        objects::api(&self.client, api_version, kind, &self.namespace)
            .await
            .unwrap()
    }

    pub async fn widgets(&self) -> Api<DynamicObject> {
        self.api("clients.configurator.dev/v1", "Widget").await
    }

    pub async fn config_maps(&self) -> Api<DynamicObject> {
        self.api("v1", "ConfigMap").await
    }

    async fn apply(&self, object: &Value) {
        let params = PatchParams::apply("test");
        objects::apply(&self.client, object, &params).await.unwrap();
    }

    /// Creates an object in the namespace.
    pub async fn create(&self, object: Value) -> DynamicObject {
        let api = self
            .api(
                objects::text(&object, "/apiVersion"),
                objects::text(&object, "/kind"),
            )
            .await;
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    /// Returns the object when `holds` is true of it, or of its absence.
    pub async fn until(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        holds: impl Fn(Option<&DynamicObject>) -> bool,
    ) -> Option<DynamicObject> {
        let waiting = await_condition(api.clone(), name, holds);
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .unwrap_or_else(|_| panic!("in vain: {name}"))
            .unwrap()
    }

    /// Deletes an object and returns when it is gone.
    pub async fn delete(&self, api: &Api<DynamicObject>, name: &str) {
        let deleted = api.delete(name, &DeleteParams::background()).await.unwrap();
        if let Some(object) = deleted.left() {
            let uid = object.metadata.uid.unwrap();
            self.until(api, name, |found| {
                found.is_none_or(|found| found.metadata.uid.as_ref() != Some(&uid))
            })
            .await;
        }
    }

    /// The objects of a kind by their names.
    pub async fn list(&self, api_version: &str, kind: &str) -> Vec<Value> {
        let api = self.api(api_version, kind).await;
        let found = api.list(&ListParams::default()).await.unwrap();
        let mut objects: Vec<Value> = found
            .items
            .iter()
            .map(|object| serde_json::to_value(object).unwrap())
            .collect();
        objects.sort_by_key(|object| object["metadata"]["name"].to_string());
        objects
    }
}

/// Merges this into an object.
pub async fn merge(api: &Api<DynamicObject>, name: &str, change: Value) -> DynamicObject {
    api.patch(name, &PatchParams::default(), &Patch::Merge(change))
        .await
        .unwrap()
}

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

/// A ConfigMap with one datum.
pub fn config_map(name: &str, labels: Value, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels},
        "data": {"value": value}})
}

/// A Widget of a colour.
pub fn widget(name: &str, color: &str) -> Value {
    json!({"apiVersion": "clients.configurator.dev/v1", "kind": "Widget", "metadata": {"name": name},
        "spec": {"color": color}})
}
