//! How the host learns of changes of members.

use anyhow::Result;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::{Scene, entry, on_both};

/// Declares the Configurator with these options of sets.
async fn with(scene: &Scene, options: Value) -> Result<()> {
    let change = |object: &mut Value| object["spec"]["sets"] = options;
    scene.configure(change).await
}

on_both!(
    /// Members are listed periodically where there are more kinds and namespaces than may be watched.
    members_that_are_not_watched_are_listed,
    async |scene: Scene| {
        scene.define_things().await?;
        with(&scene, json!({"maxWatches": 1, "pollInterval": "1s"})).await?;
        let thing = |name: &str| json!({"name": name, "readyWhen": "exists", "object": {
            "apiVersion": "sets.example/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"size": 1},
        }});
        // The ConfigMap has the watch.
        scene.owner("web", json!([entry("a", "1"), thing("b"), thing("c")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.meddle("sets.example/v1", "Thing", "b", json!({"spec": {"size": 2}})).await?;
        let things = scene.api("sets.example/v1", "Thing").await?;
        scene.world.until("b is corrected", || async {
            Ok(things.get("b").await?.data["spec"]["size"] == 1)
        }).await?;
        let before = things.get("c").await?.metadata.uid;
        things.delete("c", &DeleteParams::default()).await?;
        scene.world.until("c is created again", || async {
            let object = things.get_opt("c").await?;
            Ok(object.is_some_and(|object| object.metadata.uid != before))
        }).await?;
        scene.world.stop().await
    }
);

on_both!(
    /// One watch shows the members in many namespaces.
    members_in_many_namespaces_need_one_watch,
    async |scene: Scene| {
        with(&scene, json!({"maxWatches": 1, "pollInterval": "1h"})).await?;
        let namespaces: Vec<String> = (0..9).map(|number| format!("{}-{number}", scene.name)).collect();
        let mut entries = Vec::new();
        for namespace in &namespaces {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            scene.world.apply(&object).await?;
            let mut entry = entry("a", "1");
            entry["name"] = json!(namespace);
            entry["object"]["metadata"]["namespace"] = json!(namespace);
            entries.push(entry);
        }
        scene.owner("web", json!(entries)).await?;
        scene.until_state("web", "Ready").await?;
        for namespace in [&namespaces[0], &namespaces[8]] {
            let maps = scene.world.objects("v1", "ConfigMap", namespace).await?;
            let patch = Patch::Merge(json!({"data": {"text": "mine"}}));
            maps.patch("a", &PatchParams::default(), &patch).await?;
            scene.world.until("a is corrected", || async {
                Ok(maps.get("a").await?.data["data"]["text"] == "1")
            }).await?;
            maps.delete("a", &DeleteParams::default()).await?;
            scene.world.until("a is created again", || async {
                Ok(maps.get_opt("a").await?.is_some_and(|object| object.metadata.deletion_timestamp.is_none()))
            }).await?;
        }
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        scene.world.stop().await
    }
);
