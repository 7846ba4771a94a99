//! Requests with the strategy `graph`: each is sent when what it depends on is ready.

use anyhow::Result;
use configurator_tests::configurator::make_machine;
use serde_json::{Value, json};

use crate::scene::{Scene, on_both};

/// A request that applies a ConfigMap of the scene.
fn apply(scene: &Scene, name: &str, text: &str) -> Value {
    json!({"name": name, "apply": {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": scene.name, "name": name}, "data": {"text": text},
    }})
}

fn after(mut request: Value, names: &[&str]) -> Value {
    request["dependsOn"] = json!(names);
    request
}

fn ready_when(mut request: Value, condition: &str) -> Value {
    request["readyWhen"] = json!(condition);
    request
}

/// Has the handler return these requests as a graph, and the next phase write what became of them into the ConfigMap `results`.
async fn declare(scene: &Scene, requests: Value) -> Result<()> {
    scene
        .configure(|object| {
            let spec = &mut object["spec"];
            spec["chain"]["phases"] =
                json!([{"name": "root"}, {"name": "tell", "handler": "root"}]);
            spec["parameters"] = json!({
                "root": {"graph": true, "requests": requests},
                "tell": {"requests": [apply(scene, "results", "{results}")]},
            });
            spec["capabilities"]["configstore"] =
                json!([{"prefixes": ["basic/"], "verbs": ["get", "update", "delete"]}]);
        })
        .await
}

/// Creates an object that the handler is called for.
async fn watched(scene: &Scene, name: &str) -> Result<()> {
    scene.owner_of_set(name, json!({})).await
}

async fn finish(scene: &Scene) -> Result<()> {
    let done = json!({"data": {"state": "done"}});
    scene.meddle("v1", "ConfigMap", "schema", done).await
}

async fn until_exists(scene: &Scene, name: &str) -> Result<Value> {
    let what = format!("the ConfigMap {name}");
    let exists = scene.world.until(&what, || async {
        Ok(scene.config_map(name).await?.is_some())
    });
    if let Err(error) = exists.await {
        return Err(error.context(format!("the host {:?}", scene.world.report())));
    }
    Ok(scene.config_map(name).await?.unwrap_or_default())
}

async fn value_of(scene: &Scene, key: &str) -> Result<Option<String>> {
    let keys = scene.world.keys().await?;
    let key = format!("basic/{key}");
    Ok(keys
        .into_iter()
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value))
}

on_both!(
    /// One graph over several servers: an object that becomes ready, a key, an object that goes.
    each_request_waits_for_what_it_depends_on,
    async |scene: Scene| {
        let key = format!("{}-version", scene.name);
        let old = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": scene.name, "name": "old"}});
        scene.world.apply(&old).await?;
        scene.hold("old", true).await?;
        let put = json!({"name": "key", "put": {"key": key, "value": "2"}});
        let requests = json!([
            after(apply(&scene, "last", "1"), &["remove"]),
            after(json!({"name": "remove", "deleteConfigMap": "old"}), &["key"]),
            after(put, &["schema"]),
            ready_when(apply(&scene, "schema", "1"), "object.data.state == 'done'"),
            apply(&scene, "beside", "1"),
        ]);
        declare(&scene, requests).await?;
        watched(&scene, "web").await?;
        until_exists(&scene, "schema").await?;
        until_exists(&scene, "beside").await?;
        assert_eq!(value_of(&scene, &key).await?, None);

        // What is waited for may go and is made again; a host that is gone is followed by another.
        let scene = scene.restart().await?;
        let config_maps = scene.api("v1", "ConfigMap").await?;
        config_maps.delete("schema", &kube::api::DeleteParams::default()).await?;
        until_exists(&scene, "schema").await?;
        assert_eq!(value_of(&scene, &key).await?, None);

        finish(&scene).await?;
        scene.world.until("the old object is being deleted", || async {
            let old = scene.config_map("old").await?.unwrap_or_default();
            Ok(old.pointer("/metadata/deletionTimestamp").is_some())
        }).await?;
        assert_eq!(value_of(&scene, &key).await?.as_deref(), Some("2"));
        assert!(scene.config_map("last").await?.is_none());
        scene.hold("old", false).await?;
        until_exists(&scene, "last").await?;
        let results = until_exists(&scene, "results").await?;
        let results = results["data"]["text"].as_str().unwrap_or_default();
        // The next phase sees the object as it was when it was ready.
        assert!(results.contains("done"), "{results}");
        scene.world.stop().await
    }
);

on_both!(
    /// Row 23: a change of the watched object ends the wait of its older content.
    a_change_of_the_object_ends_the_wait,
    async |scene: Scene| {
        let requests = json!([
            ready_when(apply(&scene, "schema", "1"), "object.data.state == 'done'"),
            after(apply(&scene, "next", "{event}"), &["schema"]),
        ]);
        declare(&scene, requests).await?;
        watched(&scene, "web").await?;
        until_exists(&scene, "schema").await?;
        scene.meddle("v1", "ConfigMap", "web", json!({"data": {"more": "1"}})).await?;
        finish(&scene).await?;
        let next = until_exists(&scene, "next").await?;
        assert_eq!(next["data"]["text"], "WatchEvent::Modified");
        scene.world.stop().await
    }
);

on_both!(
    /// Rows 9, 16, 18 and 19, and a right that is missing: what cannot be carried out is refused before anything is sent, and a failure of an
    /// object is no wait.
    what_cannot_become_ready_fails,
    async |scene: Scene| {
        let refused = async |requests: Value, name: &str| {
            declare(&scene, requests).await?;
            watched(&scene, name).await?;
            let failure = scene.failure(name).await?;
            scene.delete_owner(name).await?;
            scene.until_gone(name).await?;
            Ok::<String, anyhow::Error>(failure)
        };
        let requests = json!([
            apply(&scene, "first", "1"),
            after(ready_when(apply(&scene, "second", "1"), "object.data.("), &["first"]),
        ]);
        let failure = refused(requests, "syntax").await?;
        assert!(failure.starts_with("ResourceGeneric: the output is invalid: request \"second\": `ready-when`"), "{failure}");
        let requests = json!([
            after(apply(&scene, "first", "1"), &["second"]),
            after(apply(&scene, "second", "1"), &["first"]),
        ]);
        let failure = refused(requests, "circle").await?;
        assert!(failure.ends_with(r#"it depends on itself: "first" → "second" → "first""#), "{failure}");

        scene.configure(|object| {
            let spec = &mut object["spec"];
            let first = ready_when(apply(&scene, "first", "1"), "healthy");
            let last = after(apply(&scene, "last", "1"), &["first"]);
            spec["parameters"] = json!({"root": {"graph": true, "requests": [first, last]}});
            spec["capabilities"]["kubernetes"][0]["verbs"] = json!(["apply", "watch"]);
        }).await?;
        watched(&scene, "rights").await?;
        let failure = scene.failure("rights").await?;
        assert!(failure.starts_with("ResourcePermission: to find out whether its object is ready: "), "{failure}");
        scene.delete_owner("rights").await?;
        scene.until_gone("rights").await?;
        for name in ["first", "second", "last"] {
            assert!(scene.config_map(name).await?.is_none(), "{name} was written");
        }

        scene.define_things().await?;
        let old = json!({"apiVersion": "sets.example/v1", "kind": "Thing",
            "metadata": {"namespace": scene.name, "name": "thing"}, "spec": {"color": "red"}});
        scene.world.apply(&old).await?;
        let ready = json!([{"type": "Ready", "status": "True"}]);
        scene.set_status("sets.example/v1", "Thing", "thing", json!({"conditions": ready})).await?;
        let thing = json!({"name": "thing", "readyWhen": "healthy", "ask": {
            "verb": "apply", "group": "sets.example", "plural": "things", "kind": "Thing",
            "namespace": scene.name, "name": "thing", "body": {"spec": {"size": 1}},
        }});
        let requests = json!([
            after(apply(&scene, "behind", "1"), &["thing"]),
            thing,
            apply(&scene, "beside", "1"),
        ]);
        declare(&scene, requests).await?;
        watched(&scene, "stalled").await?;
        scene.world.until("the thing is changed", || async {
            let thing = scene.object("sets.example/v1", "Thing", "thing").await?.unwrap_or_default();
            Ok(thing["spec"]["size"] == 1)
        }).await?;
        until_exists(&scene, "beside").await?;
        // It is not ready by the status from before the change.
        assert!(scene.config_map("behind").await?.is_none());
        let stalled = json!([{"type": "Stalled", "status": "True", "reason": "Full", "message": "no room"}]);
        scene.set_status("sets.example/v1", "Thing", "thing", json!({"conditions": stalled})).await?;
        let failure = scene.failure("stalled").await?;
        assert!(failure.contains("its object has failed: ") && failure.contains("no room"), "{failure}");
        assert!(scene.config_map("behind").await?.is_none());
        scene.world.stop().await
    }
);

on_both!(
    /// A leaf of a machine waits as a chain does.
    a_leaf_of_a_machine_waits,
    async |scene: Scene| {
        let requests = json!([
            ready_when(apply(&scene, "schema", "1"), "object.data.state == 'done'"),
            after(apply(&scene, "next", "1"), &["schema"]),
        ]);
        scene.configure(|object| {
            make_machine(object, json!({"graph": true, "requests": requests}));
            object["spec"].as_object_mut().map(|spec| spec.remove("sets"));
        }).await?;
        watched(&scene, "web").await?;
        until_exists(&scene, "schema").await?;
        assert!(scene.config_map("next").await?.is_none());
        finish(&scene).await?;
        until_exists(&scene, "next").await?;
        scene.world.stop().await
    }
);
