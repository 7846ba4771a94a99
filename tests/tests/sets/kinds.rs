//! Kinds that a set defines itself.

use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::scene::{Scene, entry, on_both};

/// The definition of the kind `Part` in a group, and an object of it before its definition.
fn parts(group: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |name: &str, is_stored: bool| {
        json!({
            "name": name, "served": true, "storage": is_stored,
            "schema": {"openAPIV3Schema": schema.clone()},
        })
    };
    json!([
        // The API prefers the other version.
        {"name": "part", "object": {
            "apiVersion": format!("{group}/v1beta1"), "kind": "Part",
            "metadata": {"name": "part"}, "spec": {"size": 1},
        }},
        entry("other", "1"),
        {"name": "parts", "object": {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("parts.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"kind": "Part", "plural": "parts"},
                "versions": [version("v1", true), version("v1beta1", false)],
            },
        }},
    ])
}

on_both!(
    /// Rows 13, 14 and 36: a definition comes before its objects, and these are watched.
    objects_of_a_kind_that_the_set_defines_are_repaired,
    async |scene: Scene| {
        let group = "repaired.example";
        scene.configure(|object| grant(object, group, &["get", "apply", "delete", "watch"])).await?;
        scene.owner("web", parts(group)).await?;
        scene.until_state("web", "Ready").await?;
        let version = format!("{group}/v1beta1");
        scene.meddle(&version, "Part", "part", json!({"spec": {"size": 2}})).await?;
        scene
            .world
            .until("the size is that of the entry", || async {
                let part = scene.object(&version, "Part", "part").await?.unwrap();
                Ok(part["spec"]["size"] == 1)
            })
            .await?;
        scene.world.stop().await
    }
);

on_both!(
    /// A rule that is missing for a kind that does not exist yet is named before anything is written.
    rights_for_a_kind_that_the_set_defines_are_checked_first,
    async |scene: Scene| {
        let group = "checked.example";
        scene.configure(|object| grant(object, group, &["get", "apply", "watch"])).await?;
        scene.owner("web", parts(group)).await?;
        let failure = scene.failure("web").await?;
        assert!(failure.contains(r#"{apiGroups: ["checked.example"], resources: ["parts"], verbs: [delete], namespaces: "#), "{failure}");
        assert!(scene.config_map("other").await?.is_none());
        scene.world.stop().await
    }
);

fn grant(configurator: &mut Value, group: &str, verbs: &[&str]) {
    let all = ["get", "apply", "delete", "watch"];
    let rules = json!([
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "namespaces": ["*"], "verbs": all},
        {"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": all},
        {"apiGroups": [group], "resources": ["parts"], "namespaces": ["*"], "verbs": verbs},
    ]);
    configurator["spec"]["capabilities"]["kubernetes"] = rules;
}

on_both!(
    /// Row 48: a kind that goes is an error with its name, and is noticed when it is served again. A member of it that is left out is
    /// forgotten: it went with its kind.
    a_kind_that_goes_is_named_and_noticed_when_it_comes_back,
    async |scene: Scene| {
        let group = "gone.example";
        scene.configure(|object| grant(object, group, &["get", "apply", "delete", "watch"])).await?;
        let parts = parts(group);
        let definition = &parts[2]["object"];
        scene.world.apply(definition).await?;
        scene.owner("web", json!([parts[0], parts[1]])).await?;
        scene.until_state("web", "Ready").await?;
        let definitions = scene.world.objects("apiextensions.k8s.io/v1", "CustomResourceDefinition", "").await?;
        definitions.delete(&format!("parts.{group}"), &DeleteParams::default()).await?;
        let reason = "the API server does not serve the kind of Part.gone.example";
        scene.until_reason("web", reason).await?;
        scene.world.apply(definition).await?;
        scene.until_state("web", "Ready").await?;
        definitions.delete(&format!("parts.{group}"), &DeleteParams::default()).await?;
        scene.until_reason("web", reason).await?;
        scene.owner("web", json!([parts[1]])).await?;
        let status = scene.until_state("web", "Ready").await?;
        assert_eq!((status.objects, status.ready), (1, 1));
        scene.world.stop().await
    }
);
