//! What a cluster of machines does about Pods and storage, which a test has none of: Pods become ready, claims get their volumes, and
//! volumes grow. Some things can be told to go wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Under way until it is dropped.
pub struct Infrastructure {
    client: Client,
    troubles: Arc<Mutex<Troubles>>,
    working: JoinHandle<()>,
}

/// What goes wrong, and what there was.
#[derive(Default)]
struct Troubles {
    /// Pods that are made and never become ready.
    held: BTreeSet<String>,
    /// Pods that fail the next time they are made.
    failing: BTreeSet<String>,
    /// Versions whose image is not to be had.
    missing: BTreeSet<String>,
    /// The uids of the Pods that there were, by name.
    made: BTreeMap<String, BTreeSet<String>>,
}

impl Infrastructure {
    /// For the namespace `default`. It needs an API only.
    pub async fn start(client: Client) -> Result<Self> {
        let class: StorageClass = serde_json::from_value(json!({
            "metadata": {"name": "shared"},
            "provisioner": "example.org/shared",
            "allowVolumeExpansion": true,
        }))?;
        let params = PatchParams::apply("infrastructure").force();
        let classes: Api<StorageClass> = Api::all(client.clone());
        classes
            .patch("shared", &params, &Patch::Apply(&class))
            .await?;
        let troubles: Arc<Mutex<Troubles>> = Arc::default();
        let working = tokio::spawn(work(client.clone(), troubles.clone()));
        Ok(Self {
            client,
            troubles,
            working,
        })
    }

    /// A Pod of this name does not become ready.
    pub fn hold(&self, pod: &str) {
        self.troubles.lock().unwrap().held.insert(pod.to_owned());
    }

    /// A Pod that was held does.
    pub async fn release(&self, pod: &str) -> Result<()> {
        self.troubles.lock().unwrap().held.remove(pod);
        self.look_again(pod).await
    }

    /// The next Pod of this name fails.
    pub fn fail(&self, pod: &str) {
        self.troubles.lock().unwrap().failing.insert(pod.to_owned());
    }

    /// The image of this version is not to be had.
    pub fn miss(&self, version: &str) {
        let mut troubles = self.troubles.lock().unwrap();
        troubles.missing.insert(version.to_owned());
    }

    /// It is pushed.
    pub async fn push(&self, version: &str, pod: &str) -> Result<()> {
        self.troubles.lock().unwrap().missing.remove(version);
        self.look_again(pod).await
    }

    /// How many Pods of each name there were.
    pub fn made(&self) -> String {
        let made = &self.troubles.lock().unwrap().made;
        let lines = made
            .iter()
            .map(|(name, uids)| format!("{name}: {}", uids.len()));
        lines.collect::<Vec<_>>().join("\n")
    }

    async fn look_again(&self, pod: &str) -> Result<()> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        see_to_pod(&pods, &pods.get(pod).await?, &self.troubles).await
    }
}

impl Drop for Infrastructure {
    fn drop(&mut self) {
        self.working.abort();
    }
}

async fn work(client: Client, troubles: Arc<Mutex<Troubles>>) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client.clone());
    let seen_pods = watcher(pods.clone(), watcher::Config::default()).default_backoff();
    let seen_claims = watcher(claims.clone(), watcher::Config::default()).default_backoff();
    let mut seen = stream::select(
        seen_pods
            .applied_objects()
            .map_ok(|pod| Seen::Pod(pod.into()))
            .boxed(),
        seen_claims
            .applied_objects()
            .map_ok(|claim| Seen::Claim(claim.into()))
            .boxed(),
    );
    while let Some(seen) = seen.next().await {
        // What has changed meanwhile is seen again.
        let _ = match seen {
            Ok(Seen::Pod(pod)) => see_to_pod(&pods, &pod, &troubles).await,
            Ok(Seen::Claim(claim)) => see_to_claim(&client, &claims, &claim).await,
            Err(_) => Ok(()),
        };
    }
}

enum Seen {
    Pod(Box<Pod>),
    Claim(Box<PersistentVolumeClaim>),
}

async fn see_to_pod(pods: &Api<Pod>, pod: &Pod, troubles: &Mutex<Troubles>) -> Result<()> {
    let name = pod.name_any();
    let object = serde_json::to_value(pod)?;
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    if matches!(phase, "Running" | "Failed") {
        return Ok(());
    }
    let image = object["spec"]["containers"][0]["image"].clone();
    let version = image.as_str().unwrap_or_default().rsplit(':').next();
    let status = {
        let mut troubles = troubles.lock().unwrap();
        let uids = troubles.made.entry(name.clone()).or_default();
        uids.extend(pod.uid());
        if troubles.failing.remove(&name) {
            json!({"phase": "Failed"})
        } else if troubles.missing.contains(version.unwrap_or_default()) {
            let waiting = json!({"waiting": {"reason": "ImagePullBackOff"}});
            let container = json!({
                "name": "database", "image": image, "imageID": "", "ready": false, "restartCount": 0,
                "state": waiting,
            });
            json!({"phase": "Pending", "containerStatuses": [container]})
        } else if troubles.held.contains(&name) {
            return Ok(());
        } else {
            let ready = json!({"type": "Ready", "status": "True"});
            json!({"phase": "Running", "conditions": [ready], "containerStatuses": null})
        }
    };
    if object["status"]["containerStatuses"] == status["containerStatuses"]
        && object["status"]["phase"] == status["phase"]
    {
        return Ok(());
    }
    let patch = json!({"metadata": {"uid": pod.uid()}, "status": status});
    pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    Ok(())
}

async fn see_to_claim(
    client: &Client,
    claims: &Api<PersistentVolumeClaim>,
    claim: &PersistentVolumeClaim,
) -> Result<()> {
    let object = serde_json::to_value(claim)?;
    let wanted = &object["spec"]["resources"]["requests"]["storage"];
    if object["status"]["phase"] == "Bound" && object["status"]["capacity"]["storage"] == *wanted {
        return Ok(());
    }
    let volume: Value = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": claim.name_any()},
        "spec": {
            "capacity": {"storage": wanted},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "shared",
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": "default", "name": claim.name_any(), "uid": claim.uid(),
            },
            "csi": {"driver": "example.org", "volumeHandle": claim.name_any()},
        },
    });
    let volume: DynamicObject = serde_json::from_value(volume)?;
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let params = PatchParams::apply("infrastructure").force();
    volumes
        .patch(&claim.name_any(), &params, &Patch::Apply(&volume))
        .await?;
    // A control plane binds by itself; to say it as well does no harm.
    let patch = json!({"status": {"phase": "Bound", "capacity": {"storage": wanted}}});
    claims
        .patch_status(
            &claim.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&patch),
        )
        .await?;
    Ok(())
}
