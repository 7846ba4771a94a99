//! Entries wait for others until these are ready.

use serde_json::json;

use crate::scene::{Scene, after, entry, on_both};

on_both!(
    /// Rows 15, 17, 20 and 22: an entry waits for the expression of another, says for which, and goes on at once when it is true.
    an_expression_holds_up_what_depends_on_it,
    async |scene: Scene| {
        let mut a = entry("a", "1");
        a["readyWhen"] = json!("object.data.done == 'yes'");
        scene.owner("web", json!([a, after("b", "1", &["a"])])).await?;
        let status = scene.until_reason("web", "waits for a: ").await?;
        assert_eq!((status.state.as_str(), status.ready), ("Progressing", 0));
        assert!(status.waiting_for.contains("object.data.done == 'yes'"), "{status:?}");
        let members = |state: &str| scene.world.metric_sum("configurator_set_members", &format!("state=\"{state}\""));
        assert_eq!((members("ready"), members("waiting"), members("blocked")), (0, 1, 1));
        assert!(scene.config_map("b").await?.is_none());
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"done": "no"}})).await?;
        scene.until_reason("web", "object.data.done == 'yes' is false").await?;
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"done": "yes"}})).await?;
        scene.until_state("web", "Ready").await?;
        scene.world.stop().await
    }
);

/// Row 18: a Deployment is ready when it has its replicas. A real cluster has a controller of its own, which writes the status.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_is_ready_when_it_has_its_replicas() -> anyhow::Result<()> {
    let scene = Scene::embedded("deployment").await?;
    let labels = json!({"app": "web"});
    let deployment = json!({"name": "web", "object": {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nothing.example/web:1"}]}},
        },
    }});
    scene
        .owner("web", json!([deployment, after("b", "1", &["web"])]))
        .await?;
    scene.until_reason("web", "waits for web: ").await?;
    let status = json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [{"type": "Available", "status": "True"}],
    });
    scene
        .set_status("apps/v1", "Deployment", "web", status)
        .await?;
    scene.until_state("web", "Ready").await?;
    assert!(scene.config_map("b").await?.is_some());
    scene.world.stop().await
}

on_both!(
    /// Rows 21 and 23: a set is told when a member loses its readiness, and when the member has it again.
    lost_readiness_is_shown_and_so_is_its_return,
    async |scene: Scene| {
        scene.define_things().await?;
        let thing = json!({"name": "t", "readyWhen": "object.status.ready", "object": {
            "apiVersion": "sets.example/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1},
        }});
        scene.owner("web", json!([thing, after("b", "1", &["t"])])).await?;
        scene.until_reason("web", "waits for t: ").await?;
        for ready in [true, false, true] {
            scene.set_status("sets.example/v1", "Thing", "t", json!({"ready": ready})).await?;
            scene.until_state("web", if ready { "Ready" } else { "Progressing" }).await?;
        }
        assert!(scene.config_map("b").await?.is_some());
        scene.world.stop().await
    }
);

on_both!(
    /// Rows 24 and 25: a status from before the last write does not count.
    an_old_status_does_not_count,
    async |scene: Scene| {
        scene.define_things().await?;
        let thing = |size: u32| json!({"name": "t", "object": {
            "apiVersion": "sets.example/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": size},
        }});
        let ready = |generation: u32| json!({
            "observedGeneration": generation, "conditions": [{"type": "Ready", "status": "True"}],
        });
        scene.owner("web", json!([thing(1)])).await?;
        scene.until_state("web", "Ready").await?;
        scene.set_status("sets.example/v1", "Thing", "t", ready(1)).await?;
        scene.owner("web", json!([thing(2), after("b", "1", &["t"])])).await?;
        let status = scene.until_reason("web", "waits for t: ").await?;
        assert!(status.waiting_for.contains("generation"), "{status:?}");
        assert!(scene.config_map("b").await?.is_none());
        scene.set_status("sets.example/v1", "Thing", "t", ready(2)).await?;
        scene.until_state("web", "Ready").await?;
        assert!(scene.config_map("b").await?.is_some());
        scene.world.stop().await
    }
);

on_both!(
    /// Row 16: an expression that does not compile is an error before anything is written.
    an_expression_that_does_not_compile_is_refused_before_any_write,
    async |scene: Scene| {
        let mut a = entry("a", "1");
        a["readyWhen"] = json!("object.data.");
        scene.owner("web", json!([entry("b", "1"), a])).await?;
        let failure = scene.failure("web").await?;
        assert!(failure.contains(r#"entry "a": `ready-when`: the expression cannot be compiled"#), "{failure}");
        assert!(scene.config_map("b").await?.is_none());
        scene.world.stop().await
    }
);

on_both!(
    /// Rows 1 to 4: what is wrong with a set is named, and nothing of it is written.
    sets_that_make_no_sense_are_refused_before_any_write,
    async |scene: Scene| {
        let cycle = json!([after("a", "1", &["b"]), after("b", "1", &["a"])]);
        scene.owner("cycle", cycle).await?;
        let failure = scene.failure("cycle").await?;
        assert!(failure.contains(r#""a" → "b" → "a""#), "{failure}");
        scene.owner("unknown", json!([after("a", "1", &["nobody"])])).await?;
        let failure = scene.failure("unknown").await?;
        assert!(failure.contains("nobody"), "{failure}");
        scene.owner("empty", json!([])).await?;
        let failure = scene.failure("empty").await?;
        assert!(failure.contains("allow-empty"), "{failure}");
        assert!(scene.config_map("a").await?.is_none());
        scene.world.stop().await
    }
);

on_both!(
    /// Row 9: what depends on a failure is not written, and all else is.
    a_failure_stops_only_what_depends_on_it,
    async |scene: Scene| {
        let mut a = entry("a", "1");
        a["failedWhen"] = json!("object.data.text == '1'");
        let set = json!([a, after("b", "1", &["a"]), entry("c", "1"), after("d", "1", &["c"])]);
        scene.owner("web", set).await?;
        let status = scene.until_state("web", "Failed").await?;
        assert_eq!(status.ready, 2, "{status:?}");
        let failure = scene.failure("web").await?;
        assert!(failure.contains(r#"entry "a": "#), "{failure}");
        assert!(scene.config_map("b").await?.is_none());
        assert!(scene.config_map("d").await?.is_some());
        scene.world.stop().await
    }
);
