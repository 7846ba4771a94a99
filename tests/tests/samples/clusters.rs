//! A host that runs database clusters.

use anyhow::Result;
use configurator_host::resource::flow::resource_of;
use configurator_tests::guests;
use configurator_tests::machine::{Machine, text};
use configurator_tests::world::{Servers, World};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::infrastructure::Infrastructure;

/// A host, and machines.
pub struct Clusters {
    pub world: World,
    pub infrastructure: Infrastructure,
    pub machine: Machine,
}

impl Clusters {
    /// A host on these servers.
    pub async fn start(servers: Servers) -> Result<Self> {
        let world = World::start_on(servers, |builder| builder).await?;
        declare(&world).await?;
        Self::around(world).await
    }

    /// With a host that knows the clusters already.
    pub async fn around(world: World) -> Result<Self> {
        let infrastructure = Infrastructure::start(world.client.clone()).await?;
        let (version, kind) = ("db.example.org/v1", "SharedStorageCluster");
        let name = "shared-storage-cluster";
        let machine = Machine::of(&world.client, name, version, kind, "default").await?;
        let machine = machine.with_phase_at("/status/clusterStatus");
        Ok(Self {
            world,
            infrastructure,
            machine,
        })
    }

    /// Asks for a cluster, with changes to what it is by default.
    pub async fn ask(&self, more: Value) -> Result<()> {
        let mut spec = json!({
            "classInfo": {"className": "small"},
            "version": "1.0.0",
            "roReplicas": 2,
            "storage": {"size": "10Gi"},
        });
        if let (Value::Object(spec), Value::Object(more)) = (&mut spec, more) {
            spec.extend(more);
        }
        self.world
            .apply(&json!({
                "apiVersion": "db.example.org/v1",
                "kind": "SharedStorageCluster",
                "metadata": {"name": "db", "namespace": "default"},
                "spec": spec,
            }))
            .await
    }

    /// Marks the cluster.
    pub async fn annotate(&self, annotations: Value) -> Result<()> {
        let patch = json!({"metadata": {"annotations": annotations}});
        let params = PatchParams::default();
        self.machine
            .api
            .patch("db", &params, &Patch::Merge(&patch))
            .await?;
        Ok(())
    }

    /// Returns when the cluster is in this phase.
    pub async fn until(&self, phase: &str) -> Result<()> {
        self.machine.until_phase("db", phase).await
    }

    /// Returns when the cluster runs, with this in a field of its status.
    pub async fn until_running_with(&self, field: &str, value: Value) -> Result<()> {
        let pointer = format!("/status/{field}");
        let is_so = |cluster: &Value| {
            text(cluster, "/status/clusterStatus") == "Running"
                && cluster.pointer(&pointer) == Some(&value)
        };
        self.machine.until("db", field, is_so).await
    }

    /// What there is in the cluster's name, a line each.
    pub async fn things(&self) -> Result<String> {
        let mut lines = Vec::new();
        for kind in ["ConfigMap", "PersistentVolumeClaim", "Pod", "Service"] {
            let api: Api<DynamicObject> = self.world.objects("v1", kind, "default").await?;
            let labelled = ListParams::default().labels("db.example.org/cluster=db");
            for object in api.list(&labelled).await? {
                let object = serde_json::to_value(object)?;
                let more = match kind {
                    "Pod" => {
                        text(&object, "/spec/containers/0/image")
                            + " "
                            + &text(&object, "/spec/containers/0/resources/requests/cpu")
                    }
                    "PersistentVolumeClaim" => text(&object, "/spec/resources/requests/storage"),
                    "ConfigMap" => text(&object, "/data/ro"),
                    _ => String::new(),
                };
                let line = format!("{kind} {} {more}", text(&object, "/metadata/name"));
                lines.push(line.trim_end().to_owned());
            }
        }
        Ok(lines.join("\n"))
    }
}

/// Declares the kind, its flows and the Configurator.
pub async fn declare(world: &World) -> Result<()> {
    let folder = guests::workspace().join("configurators/shared-storage-cluster");
    let read = |file: &str| -> Result<Value> {
        let text = std::fs::read_to_string(folder.join(file))?;
        Ok(serde_saphyr::from_str(&text)?)
    };
    world.apply(&read("crd.yaml")?).await?;
    for name in ["create-shared-storage-cluster", "rebuild-pods"] {
        let flow = resource_of(read(&format!("{name}.yaml"))?);
        world.apply(&flow).await?;
    }
    world
        .configure("shared-storage-cluster", |configurator| {
            let spec = &mut configurator["spec"];
            spec["requeueAfter"] = "50ms".into();
            for phase in spec["phases"].as_array_mut().into_iter().flatten() {
                if phase.get("retry").is_some() {
                    phase["retry"]["delay"] = "50ms".into();
                }
            }
        })
        .await
}
