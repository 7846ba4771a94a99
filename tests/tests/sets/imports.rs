//! Objects that other tools have applied become members.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::{Scene, entry, on_both};

/// The annotation that `kubectl apply` keeps what it applied in.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Creates a ConfigMap as a tool does that applies on the client's side.
async fn apply_by(scene: &Scene, manager: &str, metadata: Value, data: Value) -> Result<()> {
    let mut object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
    object["metadata"]["name"] = json!("a");
    let params = kube::api::PostParams {
        field_manager: Some(manager.to_owned()),
        ..Default::default()
    };
    let api = scene.api("v1", "ConfigMap").await?;
    api.create(&params, &serde_json::from_value(object)?)
        .await?;
    Ok(())
}

/// The managers of an object, with the operation of each.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    let name = |entry: &Value| {
        let text = |field: &str| entry[field].as_str().unwrap_or_default();
        let manager = text("manager").rsplit('/').next().unwrap_or_default();
        format!("{manager} {}", text("operation"))
    };
    entries.into_iter().flatten().map(name).collect()
}

fn adopted(text: &str) -> Value {
    let mut adopted = entry("a", text);
    adopted["onExisting"] = json!("adopt");
    adopted
}

on_both!(
    /// What kubectl has applied becomes the set's, so that the set changes it without a conflict and removes what the entry does not mention.
    /// What others have set stays theirs.
    what_kubectl_applied_is_taken_over,
    async |scene: Scene| {
        let metadata = json!({"labels": {"app": "web"}, "annotations": {LAST_APPLIED: "{}"}});
        apply_by(&scene, "kubectl-client-side-apply", metadata, json!({"text": "0", "old": "x"})).await?;
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"theirs": "y"}})).await?;
        let before = scene.config_map("a").await?.unwrap();
        scene.owner("web", json!([adopted("1")])).await?;
        scene.until_state("web", "Ready").await?;
        let object = scene.config_map("a").await?.unwrap();
        assert_eq!(object["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(object["data"], json!({"text": "1", "theirs": "y"}));
        assert_eq!(object["metadata"]["labels"]["app"], Value::Null);
        assert_eq!(object["metadata"]["annotations"][LAST_APPLIED], Value::Null);
        assert_eq!(managers(&object), ["set Apply", "meddler Update"]);
        scene.world.stop().await
    }
);

on_both!(
    /// Helm applies on the server's side.
    what_helm_applied_is_taken_over,
    async |scene: Scene| {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "web"}},
            "data": {"text": "0", "old": "x"},
        });
        let api = scene.api("v1", "ConfigMap").await?;
        api.patch("a", &PatchParams::apply("helm"), &Patch::Apply(&object)).await?;
        scene.owner("web", json!([adopted("1")])).await?;
        scene.until_state("web", "Ready").await?;
        let object = scene.config_map("a").await?.unwrap();
        assert_eq!(object["data"], json!({"text": "1"}));
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/managed-by"], Value::Null);
        assert_eq!(object["metadata"]["annotations"]["meta.helm.sh/release-name"], Value::Null);
        assert_eq!(managers(&object), ["set Apply"]);
        scene.world.stop().await
    }
);

on_both!(
    /// Fields of managers that `spec.sets.adoptedManagers` does not name stay theirs, and a conflict names their manager.
    fields_of_other_managers_stay_theirs,
    async |scene: Scene| {
        scene.configure(|object| object["spec"]["sets"] = json!({"adoptedManagers": ["tool-*"]})).await?;
        apply_by(&scene, "kubectl", json!({}), json!({"text": "0"})).await?;
        scene.owner("web", json!([adopted("1")])).await?;
        let status = scene.until_state("web", "Failed").await?;
        assert!(status.members[0].reason.contains("conflict with \"kubectl\""), "{status:?}");
        assert_eq!(scene.config_map("a").await?.unwrap()["data"], json!({"text": "0"}));
        scene.world.stop().await
    }
);

on_both!(
    /// Another Configurator takes over the members that were left when a Configurator was deleted: so it is given another name.
    released_members_are_taken_over,
    async |scene: Scene| {
        let mut two = entry("a", "1");
        two["object"]["data"]["old"] = json!("x");
        scene.owner("web", json!([two])).await?;
        scene.until_state("web", "Ready").await?;
        scene.annotate("web", "configurator.dev/abandon-set", Some("moved")).await?;
        scene.events("SetAbandoned").await?;
        assert_eq!(managers(&scene.config_map("a").await?.unwrap()), ["released Apply"]);
        scene.owner("other", json!([adopted("2")])).await?;
        scene.until_state("other", "Ready").await?;
        let object = scene.config_map("a").await?.unwrap();
        assert_eq!(object["data"], json!({"text": "2"}));
        assert_eq!(managers(&object), ["set Apply"]);
        scene.world.stop().await
    }
);
