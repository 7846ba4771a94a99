//! Real manifests, kept as sets on the embedded API and on a real one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use configurator_host::cluster::patient;
use configurator_host::resource::ClusterConfigurator;
use configurator_host::resource::object_set::{ObjectSet, ObjectSetStatus};
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::guests;
use configurator_tests::world::{Place, SCENE, Servers, World, manifest};
use flate2::Compression;
use flate2::write::GzEncoder;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::{ResourceExt as _, discovery};
use serde_json::{Value, json};

/// The longest wait for a set of a hundred objects.
const PATIENCE: Duration = Duration::from_secs(120);

/// The lease of a host.
const LEASE: Duration = Duration::from_secs(15);

/// The Node of all Pods.
const NODE: &str = "node";

/// The most bytes of files in one ConfigMap.
const CHUNK: usize = 500_000;

/// A host that keeps one Application.
struct Scene {
    world: World,
    name: &'static str,
    /// The namespace of the workloads.
    namespace: &'static str,
    has_controllers: bool,
}

impl Scene {
    async fn embedded(name: &'static str, namespace: &'static str) -> Result<Self> {
        Self::start(Place::default().open().await?, name, namespace).await
    }

    async fn real(name: &'static str, namespace: &'static str) -> Result<Self> {
        let servers = ControlPlane::shared().await?.servers().await?;
        Self::start(servers, name, namespace).await
    }

    async fn start(servers: Servers, name: &'static str, namespace: &'static str) -> Result<Self> {
        let has_controllers = servers.server.is_none();
        let world = World::start_scene(servers, name, LEASE).await?;
        if has_controllers {
            world
                .apply(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}))
                .await?;
        }
        world.apply(&manifest("manifests", "crd.yaml")?).await?;
        world
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await?;
        world
            .configure("manifests", |object| {
                object["metadata"] = json!({"name": name, "labels": {SCENE: name}});
                object["spec"]["watch"]["namespaces"] = json!([name]);
            })
            .await?;
        Ok(Self {
            world,
            name,
            namespace,
            has_controllers,
        })
    }

    /// Applies the Application with a revision of these files.
    async fn release(&self, revision: &str, files: &[PathBuf], mut spec: Value) -> Result<()> {
        let parts = packed(files)?;
        for (number, part) in parts.iter().enumerate() {
            self.world
                .apply(&json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {
                        "namespace": self.name, "name": format!("manifests-{revision}-{number}"),
                        "labels": {
                            "manifests.configurator.dev/application": self.name,
                            "manifests.configurator.dev/revision": revision,
                        },
                    },
                    "binaryData": part,
                }))
                .await?;
        }
        spec["revision"] = json!(revision);
        spec["configMaps"] = json!(parts.len());
        self.world
            .apply(&json!({
                "apiVersion": "manifests.configurator.dev/v1alpha1", "kind": "Application",
                "metadata": {"namespace": self.name, "name": self.name}, "spec": spec,
            }))
            .await
    }

    async fn applications(&self) -> Result<Api<DynamicObject>> {
        let version = "manifests.configurator.dev/v1alpha1";
        self.world.objects(version, "Application", self.name).await
    }

    async fn set(&self) -> Result<Option<ObjectSet>> {
        // The definitions that the host of another scene applies take a moment.
        let api: Api<ObjectSet> = Api::namespaced(patient(&self.world.client), self.name);
        Ok(api.list(&ListParams::default()).await?.items.pop())
    }

    async fn status(&self) -> Result<ObjectSetStatus> {
        let set = self.set().await?;
        Ok(set.and_then(|set| set.status).unwrap_or_default())
    }

    /// The workloads of a kind.
    async fn workloads(&self, kind: &str) -> Result<Vec<DynamicObject>> {
        let api = self.world.objects("apps/v1", kind, self.namespace).await?;
        Ok(api.list(&ListParams::default()).await?.items)
    }

    /// Puts Pods on a Node, as a scheduler does.
    async fn schedule(&self) -> Result<()> {
        let pods: Api<DynamicObject> = Api::all_with(self.world.client.clone(), &resource::<Pod>());
        let unscheduled = ListParams::default().fields("spec.nodeName=");
        for pod in pods.list(&unscheduled).await?.items {
            let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding",
                "metadata": {"name": name, "namespace": namespace},
                "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
            });
            let api = self.world.objects("v1", "Pod", &namespace).await?;
            let params = PostParams::default();
            let bound = api
                .create_subresource::<Value, Value>("binding", &name, &params, &binding)
                .await;
            match bound {
                // Another scene has done it, or the Pod is gone.
                Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
                bound => drop(bound?),
            }
        }
        Ok(())
    }

    /// Plays the scheduler, and on the embedded API also the controllers of workloads.
    async fn control(&self) -> Result<()> {
        if self.has_controllers {
            return self.schedule().await;
        }
        for kind in ["Deployment", "DaemonSet"] {
            for object in self.workloads(kind).await? {
                let generation = object.metadata.generation;
                if object.data["status"]["observedGeneration"].as_i64() == generation {
                    continue;
                }
                let replicas = object.data["spec"]["replicas"].as_i64().unwrap_or(1);
                let status = match kind {
                    "Deployment" => json!({
                        "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
                        "readyReplicas": replicas, "availableReplicas": replicas,
                        "conditions": [{"type": "Available", "status": "True"}],
                    }),
                    _ => json!({
                        "observedGeneration": generation, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
                        "updatedNumberScheduled": 1, "numberAvailable": 1, "numberReady": 1, "numberMisscheduled": 0,
                    }),
                };
                let api = self.world.objects("apps/v1", kind, self.namespace).await?;
                let patch = Patch::Merge(json!({"status": status}));
                api.patch_status(&object.name_any(), &PatchParams::default(), &patch)
                    .await?;
            }
        }
        Ok(())
    }

    /// Plays the controllers until this holds.
    async fn until<F>(&self, what: &str, mut holds: impl FnMut() -> F) -> Result<()>
    where
        F: Future<Output = Result<bool>>,
    {
        let waiting = async {
            while !holds().await? {
                self.control().await?;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            anyhow::Ok(())
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(waited) => waited,
            Err(_) => {
                let api: Api<ClusterConfigurator> = Api::all(self.world.client.clone());
                let failures = api
                    .get(self.name)
                    .await?
                    .status
                    .map(|status| status.failures);
                let status = self.status().await?;
                anyhow::bail!("in vain: {what}: the set is {status:#?}, failures: {failures:#?}")
            }
        }
    }

    /// Returns when all objects of a revision are ready. The generation of the Application is that of the revision.
    async fn until_ready(&self, generation: i64) -> Result<ObjectSetStatus> {
        self.until("the set is ready", || async {
            let status = self.status().await?;
            Ok(status.state == "Ready" && status.observed_generation == generation)
        })
        .await?;
        self.status().await
    }

    /// The number of requests for members that the host has sent. Nothing while a run is under way.
    fn requests(&self) -> Option<u64> {
        let sum = |metric: &str| self.world.metric_sum(metric, "");
        let calls = sum("configurator_calls_total");
        let requests = sum("configurator_requests_total");
        let is_at_rest = calls == sum("configurator_calls_total") && calls.is_multiple_of(2);
        // Each run of the Application calls two handlers and lists the ConfigMaps once.
        is_at_rest.then(|| requests - calls / 2)
    }

    /// The number of requests for members that the host has sent when no run is under way.
    async fn requests_at_rest(&self) -> Result<u64> {
        let mut requests = None;
        self.until("no run is under way", || {
            requests = self.requests();
            std::future::ready(Ok(requests.is_some()))
        })
        .await?;
        requests.context("a run is under way")
    }

    /// Returns when the host has sent this many requests for members, and no run is under way.
    async fn until_requests(&self, number: u64) -> Result<()> {
        self.until(&format!("{number} requests for members"), || async {
            Ok(self.requests() == Some(number))
        })
        .await
    }

    /// The versions of all members.
    async fn versions(&self) -> Result<BTreeMap<String, String>> {
        let set = self.set().await?.context("there is no set")?;
        let mut versions = BTreeMap::new();
        for member in set.spec.members {
            let group = discovery::group(&self.world.client, &member.group).await?;
            let (resource, _) = group
                .recommended_kind(&member.kind)
                .with_context(|| member.kind.clone())?;
            let client = self.world.client.clone();
            let api: Api<DynamicObject> = match member.namespace.as_str() {
                "" => Api::all_with(client, &resource),
                namespace => Api::namespaced_with(client, namespace, &resource),
            };
            let object = api.get(&member.name).await?;
            let name = format!("{} {}/{}", member.kind, member.namespace, member.name);
            versions.insert(name, object.resource_version().unwrap_or_default());
        }
        Ok(versions)
    }

    /// Has the API server finish the deletion of definitions. A server that could not list their objects at once, because their storage was
    /// being initialized, tries again only after minutes, or when they change.
    async fn nudge_definitions(&self) -> Result<()> {
        let client = self.world.client.clone();
        let api: Api<CustomResourceDefinition> = Api::all(client);
        for definition in api.list(&ListParams::default()).await?.items {
            let conditions = definition
                .status
                .as_ref()
                .and_then(|status| status.conditions.as_ref());
            let is_stuck = conditions
                .into_iter()
                .flatten()
                .any(|condition| condition.reason.as_deref() == Some("InstanceDeletionFailed"));
            if is_stuck {
                let nudge = json!({"metadata": {"annotations": {"nudged": jiff::Timestamp::now().to_string()}}});
                let name = definition.name_any();
                let nudged = api
                    .patch(&name, &PatchParams::default(), &Patch::Merge(nudge))
                    .await;
                match nudged {
                    // It is gone.
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    nudged => drop(nudged?),
                }
            }
        }
        Ok(())
    }

    /// Deletes the Application, and returns when it is gone.
    async fn remove(&self, mut check: impl AsyncFnMut(&Self) -> Result<()>) -> Result<()> {
        let api = self.applications().await?;
        api.delete(self.name, &DeleteParams::default()).await?;
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while api.get_opt(self.name).await?.is_some() {
            check(self).await?;
            if tokio::time::Instant::now() > deadline {
                let mut status = self.status().await?;
                status.members.retain(|member| member.state != "Blocked");
                anyhow::bail!("the Application is not gone: its set is {status:#?}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

fn resource<K: kube::Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

/// Compresses files, and distributes them over as many ConfigMaps as they need.
fn packed(files: &[PathBuf]) -> Result<Vec<BTreeMap<String, String>>> {
    let mut parts = vec![BTreeMap::new()];
    let mut size = 0;
    for file in files {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&std::fs::read(file)?)?;
        let text = STANDARD.encode(encoder.finish()?);
        if size + text.len() > CHUNK {
            parts.push(BTreeMap::new());
            size = 0;
        }
        size += text.len();
        let name = file.file_name().context("it is no file")?.to_string_lossy();
        if let Some(part) = parts.last_mut() {
            part.insert(format!("{name}.gz"), text);
        }
    }
    Ok(parts)
}

/// The Deployments of the shop that each of them calls, by the environment variables in the manifests.
const CALLS: [(&str, &[&str]); 5] = [
    (
        "frontend",
        &[
            "productcatalogservice",
            "currencyservice",
            "cartservice",
            "recommendationservice",
            "shippingservice",
            "checkoutservice",
            "adservice",
        ],
    ),
    ("loadgenerator", &["frontend"]),
    ("recommendationservice", &["productcatalogservice"]),
    (
        "checkoutservice",
        &[
            "productcatalogservice",
            "shippingservice",
            "paymentservice",
            "emailservice",
            "currencyservice",
            "cartservice",
        ],
    ),
    ("cartservice", &["redis-cart"]),
];

async fn a_shop_comes_up_in_order(scene: Scene) -> Result<()> {
    let Some(file) = guests::shared_data("online-boutique.yaml") else {
        return Ok(());
    };
    let files = [file];
    let variables = json!(["*_ADDR"]);
    let spec = json!({"addresses": {"variables": variables}});
    scene.release("1", &files, spec).await?;
    let events: Api<Event> = Api::namespaced(scene.world.client.clone(), scene.name);
    scene
        .until("an Event names the Service that is missing", || async {
            let events = events.list(&ListParams::default()).await?;
            let names_it = |event: Event| {
                event
                    .message
                    .is_some_and(|message| message.contains("shoppingassistantservice"))
            };
            Ok(events.items.into_iter().any(names_it))
        })
        .await?;

    let spec =
        json!({"addresses": {"variables": variables, "external": ["shoppingassistantservice"]}});
    scene.release("1", &files, spec.clone()).await?;
    // A Deployment may lose its readiness again.
    let seen_ready = Mutex::new(BTreeSet::new());
    scene
        .until("all Deployments come up", || async {
            let deployments = scene.workloads("Deployment").await?;
            let mut seen_ready = seen_ready.lock().unwrap();
            let ready = deployments.iter().filter(|deployment| {
                let available = deployment.data["status"]["availableReplicas"].as_i64();
                available >= Some(1)
            });
            seen_ready.extend(ready.map(DynamicObject::name_any));
            let exists = |name: &str| deployments.iter().any(|there| there.name_any() == name);
            for (name, called) in CALLS.iter().filter(|(name, _)| exists(name)) {
                let is_ready = |name: &&str| seen_ready.contains(*name);
                assert!(called.iter().all(is_ready), "{name}: {seen_ready:?}");
            }
            Ok(seen_ready.len() == 12)
        })
        .await?;
    let status = scene.until_ready(2).await?;
    assert_eq!((status.objects, status.ready), (35, 35));

    let before = scene.versions().await?;
    let sent = scene.requests_at_rest().await?;
    scene.release("2", &files, spec).await?;
    scene.until_ready(3).await?;
    assert_eq!(scene.versions().await?, before);
    scene.until_requests(sent).await?;

    scene
        .remove(async |scene| {
            let deployments = scene.workloads("Deployment").await?;
            let names: Vec<String> = deployments.iter().map(DynamicObject::name_any).collect();
            let has = |name: &str| names.iter().any(|there| there == name);
            for (name, called) in CALLS {
                for called in called {
                    assert!(!has(name) || has(called), "{called} went before {name}");
                }
            }
            Ok(())
        })
        .await?;
    assert!(scene.workloads("Deployment").await?.is_empty());
    scene.world.stop().await
}

async fn a_monitoring_stack_comes_and_goes(scene: Scene) -> Result<()> {
    let Some(folder) = guests::shared_data("kube-prometheus/manifests") else {
        return Ok(());
    };
    let mut files = Vec::new();
    for folder in [folder.join("setup"), folder] {
        for file in std::fs::read_dir(folder)? {
            files.extend(Some(file?.path()).filter(|path| path.is_file()));
        }
    }
    files.sort();
    // No server answers behind the APIService.
    let spec = json!({"rules": [{"match": {"kind": "APIService"}, "readyWhen": "Exists"}]});
    scene.release("1", &files, spec.clone()).await?;
    let status = scene.until_ready(1).await?;
    assert_eq!((status.objects, status.ready), (131, 131));

    let sent = scene.requests_at_rest().await?;
    scene.release("2", &files, spec).await?;
    scene.until_ready(2).await?;
    scene.until_requests(sent).await?;

    scene.remove(Scene::nudge_definitions).await?;
    let namespaces: Api<Namespace> = Api::all(scene.world.client.clone());
    assert!(namespaces.get_opt("monitoring").await?.is_none());
    scene.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_comes_up_in_order_embedded() -> Result<()> {
    a_shop_comes_up_in_order(Scene::embedded("shop", "shop").await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shop_comes_up_in_order_real() -> Result<()> {
    a_shop_comes_up_in_order(Scene::real("shop", "shop").await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_monitoring_stack_comes_and_goes_embedded() -> Result<()> {
    a_monitoring_stack_comes_and_goes(Scene::embedded("stack", "monitoring").await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_monitoring_stack_comes_and_goes_real() -> Result<()> {
    a_monitoring_stack_comes_and_goes(Scene::real("stack", "monitoring").await?).await
}
