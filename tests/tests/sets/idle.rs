//! Sets to which nothing happens are kept as summaries.

use anyhow::Result;
use serde_json::{Value, json};

use crate::scene::{Scene, after, entry, on_both};

impl Scene {
    /// Declares the Configurator so that a set is idle after a second.
    async fn with_idle_sets(&self) -> Result<()> {
        let change = |object: &mut Value| object["spec"]["sets"]["idleAfter"] = json!("1s");
        self.configure(change).await
    }

    /// Returns when so many sets are idle.
    async fn until_idle(&self, sets: u64) -> Result<()> {
        let what = format!("{sets} sets are idle");
        self.world
            .until(&what, || async {
                Ok(self.world.metric_sum("configurator_idle_sets", "") == sets)
            })
            .await
    }

    /// Returns when more runs than this have ended.
    async fn until_runs(&self, before: u64) -> Result<()> {
        self.world
            .until("another run has ended", || async {
                Ok(self.world.metric_sum("configurator_runs_total", "") > before)
            })
            .await
    }
}

on_both!(
    /// A run of an idle set that changes nothing sends nothing. One that a member causes reads the inventory and that member.
    an_idle_set_is_looked_at_only_where_something_has_changed,
    async |scene: Scene| {
        scene.with_idle_sets().await?;
        let entries = json!([entry("a", "1"), after("b", "1", &["a"]), after("c", "1", &["b"])]);
        scene.owner("web", entries.clone()).await?;
        scene.until_state("web", "Ready").await?;
        scene.until_idle(1).await?;
        let count = || (scene.world.metric_sum("configurator_runs_total", ""), scene.world.metric_sum("configurator_requests_total", ""));

        let (runs, requests) = count();
        scene.annotate("web", "touched", Some("yes")).await?;
        scene.until_runs(runs).await?;
        assert_eq!(scene.world.metric_sum("configurator_requests_total", ""), requests);
        assert_eq!(scene.world.metric_sum("configurator_idle_sets", ""), 1);

        // A label of somebody else is no drift, but only a look at the entry tells.
        let (runs, requests) = count();
        scene.meddle("v1", "ConfigMap", "a", json!({"metadata": {"labels": {"theirs": "yes"}}})).await?;
        scene.until_runs(runs).await?;
        scene.until_idle(1).await?;
        assert_eq!(scene.world.metric_sum("configurator_requests_total", ""), requests + 1);
        assert_eq!(scene.config_map("a").await?.unwrap()["metadata"]["labels"]["theirs"], "yes");

        let (runs, requests) = count();
        scene.meddle("v1", "ConfigMap", "b", json!({"data": {"text": "mine"}})).await?;
        scene.world.until("b is corrected", || async {
            Ok(scene.config_map("b").await?.unwrap()["data"]["text"] == "1")
        }).await?;
        scene.until_runs(runs).await?;
        scene.until_idle(1).await?;
        // A look, a write that is refused because of the other manager, and one that takes the field back.
        assert_eq!(scene.world.metric_sum("configurator_requests_total", ""), requests + 3);
        assert_eq!(scene.events("DriftRepaired").await?.len(), 1);
        scene.world.stop().await
    }
);

on_both!(
    /// Members that are deleted come back, entries that change are written, and members go with their owner.
    an_idle_set_goes_on_like_any_other,
    async |scene: Scene| {
        scene.with_idle_sets().await?;
        scene.owner("web", json!([entry("a", "1"), after("b", "1", &["a"])])).await?;
        scene.until_state("web", "Ready").await?;
        scene.until_idle(1).await?;
        let before = scene.config_map("b").await?.unwrap();
        let maps = scene.api("v1", "ConfigMap").await?;
        maps.delete("b", &kube::api::DeleteParams::default()).await?;
        scene.world.until("b is created again", || async {
            let object = scene.config_map("b").await?;
            Ok(object.is_some_and(|object| object["metadata"]["uid"] != before["metadata"]["uid"]))
        }).await?;
        scene.until_idle(1).await?;
        scene.owner("web", json!([entry("a", "2"), entry("c", "1")])).await?;
        scene.world.until("the change is applied", || async {
            Ok(scene.members().await?.len() == 2 && scene.config_map("b").await?.is_none())
        }).await?;
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "2");
        scene.until_state("web", "Ready").await?;
        scene.until_idle(1).await?;
        // A member that is suspended is not corrected, nor is the set idle.
        scene.suspend("web", true).await?;
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"text": "mine"}})).await?;
        scene.suspend("web", false).await?;
        scene.until_state("web", "Ready").await?;
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "2");
        scene.until_idle(1).await?;
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        assert_eq!(scene.members().await?, [""; 0]);
        assert_eq!(scene.world.metric_sum("configurator_idle_sets", ""), 0);
        scene.world.stop().await
    }
);

on_both!(
    /// A member that loses its readiness by its status or its content wakes the set.
    an_idle_set_notices_that_a_member_is_not_ready,
    async |scene: Scene| {
        scene.with_idle_sets().await?;
        scene.define_things().await?;
        let thing = json!({"name": "thing", "readyWhen": "object.status.up == true", "object": {
            "apiVersion": "sets.example/v1", "kind": "Thing", "metadata": {"name": "thing"}, "spec": {"size": 1},
        }});
        scene.owner("web", json!([thing])).await?;
        scene.until_reason("web", "object.status.up").await?;
        let up = |is_up: bool, round: u32| json!({"up": is_up, "round": round});
        scene.set_status("sets.example/v1", "Thing", "thing", up(true, 1)).await?;
        scene.until_state("web", "Ready").await?;
        scene.until_idle(1).await?;
        // Another status with which it is ready changes nothing.
        let runs = scene.world.metric_sum("configurator_runs_total", "");
        scene.set_status("sets.example/v1", "Thing", "thing", up(true, 2)).await?;
        scene.set_status("sets.example/v1", "Thing", "thing", up(false, 3)).await?;
        scene.until_state("web", "Progressing").await?;
        assert_eq!(scene.world.metric_sum("configurator_idle_sets", ""), 0);
        // A run is counted after it has published the status.
        scene.until_runs(runs).await?;
        scene.set_status("sets.example/v1", "Thing", "thing", up(true, 4)).await?;
        scene.until_state("web", "Ready").await?;
        scene.until_idle(1).await?;
        scene.world.stop().await
    }
);
