//! Database clusters, and what is there in their names.

use anyhow::Result;
use configurator_host::objects;
use configurator_host::resource::flow::resource_of;
use configurator_tests::machine::{Machine, text};
use configurator_tests::world::{apply, manifest};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::infrastructure::Infrastructure;

/// One cluster, and the machines that it runs on.
pub struct Clusters {
    pub infrastructure: Infrastructure,
    pub machine: Machine,
    client: Client,
}

impl Clusters {
    /// Those of an API that knows the kind.
    pub async fn of(client: &Client) -> Result<Self> {
        let infrastructure = Infrastructure::start(client.clone()).await?;
        let (version, kind) = ("db.example.org/v1", "SharedStorageCluster");
        let name = "shared-storage-cluster";
        let machine = Machine::of(client, name, version, kind, "default").await?;
        let machine = machine.with_phase_at("/status/clusterStatus");
        Ok(Self {
            infrastructure,
            machine,
            client: client.clone(),
        })
    }

    /// Asks for a cluster, with changes to what it is by default.
    pub async fn ask(&self, more: Value) -> Result<()> {
        apply(&self.client, &wanted(more)).await
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
            let api: Api<DynamicObject> = objects::api(&self.client, "v1", kind, "default").await?;
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

/// A cluster, with changes to what it is by default.
pub fn wanted(more: Value) -> Value {
    let mut spec = json!({
        "classInfo": {"className": "small"},
        "version": "1.0.0",
        "roReplicas": 2,
        "storage": {"size": "10Gi"},
    });
    if let (Value::Object(spec), Value::Object(more)) = (&mut spec, more) {
        spec.extend(more);
    }
    json!({
        "apiVersion": "db.example.org/v1",
        "kind": "SharedStorageCluster",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": spec,
    })
}

/// Declares the kind, its flows and the Configurator.
pub async fn declare(client: &Client) -> Result<()> {
    let folder = "shared-storage-cluster";
    apply(client, &manifest(folder, "crd.yaml")?).await?;
    for name in ["create-shared-storage-cluster", "rebuild-pods"] {
        let flow = manifest(folder, &format!("{name}.yaml"))?;
        apply(client, &resource_of(flow)).await?;
    }
    let mut configurator = manifest(folder, "configurator.yaml")?;
    let spec = &mut configurator["spec"];
    spec["machine"]["requeueAfter"] = "50ms".into();
    for phase in spec["machine"]["phases"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        if phase.get("retry").is_some() {
            phase["retry"]["delay"] = "50ms".into();
        }
    }
    apply(client, &configurator).await
}
