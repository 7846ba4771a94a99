//! Requests are sent before the members of a deleted owner are deleted.

use serde_json::{Value, json};

use crate::scene::{Scene, entry, on_both};

/// A request that applies a ConfigMap of the scene.
fn apply(scene: &Scene, name: &str) -> Value {
    json!({"name": name, "apply": {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": scene.name, "name": name}, "data": {"text": "secretive"},
    }})
}

on_both!(
    /// Row 62: the members stay until each request has succeeded and its object is ready, also across a restart of the host.
    a_deletion_waits_for_what_comes_before_it,
    async |scene: Scene| {
        let mut backup = apply(&scene, "backup");
        backup["readyWhen"] = json!("object.data.state == 'done'");
        let mut farewell = apply(&scene, "farewell");
        farewell["dependsOn"] = json!(["backup"]);
        let set = json!({"entries": [entry("a", "1")], "preTerminate": [farewell, backup]});
        scene.owner_of_set("web", set).await?;
        scene.until_state("web", "Ready").await?;
        scene
            .world
            .until("the requests are stored", || async {
                let set = scene.object_set("web").await?.unwrap();
                Ok(!set.spec.pre_terminate.is_empty())
            })
            .await?;
        let stored = scene.object_set("web").await?.unwrap();
        assert!(!serde_json::to_string(&stored)?.contains("secretive"));

        scene.delete_owner("web").await?;
        scene.until_status("web", "the backup is awaited", |status| status.waiting_for.contains("\"backup\"")).await?;
        let sent = scene.config_map("backup").await?.unwrap();
        let scene = scene.restart().await?;
        assert_eq!(scene.members().await?, ["a"]);
        assert!(scene.config_map("farewell").await?.is_none());
        // It was not sent again.
        let backup = scene.config_map("backup").await?.unwrap();
        assert_eq!(backup["metadata"]["resourceVersion"], sent["metadata"]["resourceVersion"]);

        scene.meddle("v1", "ConfigMap", "backup", json!({"data": {"state": "done"}})).await?;
        scene.until_gone("web").await?;
        assert_eq!(scene.members().await?, [""; 0]);
        assert!(scene.config_map("farewell").await?.is_some());
        assert!(scene.object_set("web").await?.is_none());
        scene.world.stop().await
    }
);

on_both!(
    /// Row 62: a request that fails holds the deletion, and can be skipped.
    a_failure_before_a_deletion_can_be_skipped,
    async |scene: Scene| {
        let ask = json!({"name": "ask", "getConfigMap": "missing"});
        let dropped = json!({"name": "dropped", "getConfigMap": "missing", "onError": "drop"});
        let mut after = apply(&scene, "after");
        after["dependsOn"] = json!(["dropped"]);
        let set = json!({"entries": [entry("a", "1")], "preTerminate": [ask, dropped, after]});
        scene.owner_of_set("web", set).await?;
        scene.until_state("web", "Ready").await?;
        scene.delete_owner("web").await?;
        scene.until_status("web", "the failure", |status| {
            status.waiting_for.starts_with("the request \"ask\" of `pre-terminate` has failed: ")
        }).await?;
        assert_eq!(scene.members().await?, ["a"]);
        scene.annotate("web", "configurator.dev/skip-pre-terminate", Some("true")).await?;
        scene.until_gone("web").await?;
        assert_eq!(scene.members().await?, [""; 0]);
        scene.world.stop().await
    }
);

on_both!(
    /// The requests of a set count once it is ready; until then, those of the set before it do.
    the_newest_set_that_was_ready_counts,
    async |scene: Scene| {
        let unready = json!({"entries": [{
            "name": "b", "readyWhen": "false",
            "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}},
        }], "preTerminate": [apply(&scene, "two")]});
        let ready = json!({"entries": [entry("a", "1")], "preTerminate": [apply(&scene, "one")]});
        scene.owner_of_set("web", ready).await?;
        scene.owner_of_set("never", unready.clone()).await?;
        scene.until_state("web", "Ready").await?;
        scene.until_reason("never", "false is false").await?;
        scene.delete_owner("never").await?;
        scene.until_gone("never").await?;
        assert!(scene.config_map("two").await?.is_none());

        scene.owner_of_set("web", unready).await?;
        scene.until_reason("web", "false is false").await?;
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        assert!(scene.config_map("one").await?.is_some());
        assert!(scene.config_map("two").await?.is_none());
        scene.world.stop().await
    }
);

on_both!(
    /// Nothing of a set is written if one of its requests may not be sent.
    what_may_not_be_sent_refuses_the_set,
    async |scene: Scene| {
        let put = json!({"name": "note", "put": {"key": "note", "value": "1"}});
        let set = json!({"entries": [entry("a", "1")], "preTerminate": [put]});
        scene.owner_of_set("web", set).await?;
        let failure = scene.failure("web").await?;
        assert!(failure.contains("request \"note\" of `pre-terminate`"), "{failure}");
        assert!(scene.config_map("a").await?.is_none());
        scene.world.stop().await
    }
);
