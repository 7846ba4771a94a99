//! Independent entries, and orders other than that of dependencies.

use serde_json::{Value, json};

use crate::scene::{Scene, after, entry, on_both};

/// An entry for a ConfigMap that is ready once somebody has marked it with its text.
fn marked(name: &str, text: &str) -> Value {
    let mut entry = entry(name, text);
    entry["readyWhen"] = json!("object.data.mark == object.data.text");
    entry
}

async fn mark(scene: &Scene, name: &str, text: &str) -> anyhow::Result<()> {
    scene
        .meddle("v1", "ConfigMap", name, json!({"data": {"mark": text}}))
        .await
}

async fn is_terminating(scene: &Scene, name: &str) -> anyhow::Result<bool> {
    let found = scene.config_map(name).await?;
    Ok(found.is_none_or(|found| found["metadata"].get("deletionTimestamp").is_some()))
}

on_both!(
    /// Rows 6 and 8: entries that do not depend on one another do not wait for one another, and with one place go in their order.
    independent_entries_do_not_wait_for_one_another,
    async |scene: Scene| {
        scene.configure(|object| object["spec"]["concurrency"] = json!(1)).await?;
        let set = json!([entry("c", "1"), marked("b", "1"), entry("a", "1"), after("d", "1", &["b"])]);
        scene.owner("web", set).await?;
        scene.until_reason("web", "waits for b: ").await?;
        assert_eq!(scene.members().await?, ["c", "b", "a"]);
        mark(&scene, "b", "1").await?;
        scene.until_state("web", "Ready").await?;
        scene.world.stop().await
    }
);

on_both!(
    /// Row 61: creation, changes and deletion have orders of their own.
    each_order_is_kept,
    async |scene: Scene| {
        let set = |text: &str| json!({
            "entries": [marked("a", text), marked("b", text)],
            "provision": [["a"], ["b"]], "update": [["b"], ["a"]], "terminate": [["a"], ["b"]],
        });
        scene.owner_of_set("web", set("1")).await?;
        scene.until_reason("web", "waits for a: ").await?;
        assert!(scene.config_map("b").await?.is_none());
        mark(&scene, "a", "1").await?;
        scene.until_status("web", "b is created", |status| status.ready == 1 && status.waiting_for.contains("/b:")).await?;
        mark(&scene, "b", "1").await?;
        scene.until_state("web", "Ready").await?;

        scene.owner_of_set("web", set("2")).await?;
        scene.until_reason("web", "waits for b: ").await?;
        assert_eq!(scene.config_map("b").await?.unwrap()["data"]["text"], "2");
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "1");
        mark(&scene, "b", "2").await?;
        scene.until_status("web", "a is changed", |status| status.waiting_for.contains("/a:")).await?;
        mark(&scene, "a", "2").await?;
        scene.until_state("web", "Ready").await?;

        scene.hold("a", true).await?;
        scene.delete_owner("web").await?;
        scene.until_reason("web", "waits for the deletion of ").await?;
        assert!(is_terminating(&scene, "a").await? && !is_terminating(&scene, "b").await?);
        scene.hold("a", false).await?;
        scene.until_gone("web").await?;
        scene.world.stop().await
    }
);

on_both!(
    /// Row 54: a member that somebody else is deleting holds up the members that go after it.
    a_member_that_goes_holds_up_those_after_it,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1"), after("b", "1", &["a"]), entry("c", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.hold("b", true).await?;
        let api = scene.api("v1", "ConfigMap").await?;
        api.delete("b", &kube::api::DeleteParams::default()).await?;
        scene.until_status("web", "b goes", |status| status.state != "Ready").await?;
        scene.delete_owner("web").await?;
        scene.until_gone("c").await?;
        assert!(!is_terminating(&scene, "a").await?);
        scene.hold("b", false).await?;
        scene.until_gone("web").await?;
        assert_eq!(scene.members().await?, [""; 0]);
        scene.world.stop().await
    }
);

on_both!(
    /// Rows 37 and 51: what a handler returns no longer goes with what depends on it, after what it returns now is ready.
    members_that_are_left_out_go_last,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1"), after("b", "1", &["a"]), entry("c", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.owner("web", json!([entry("c", "1"), marked("d", "1")])).await?;
        scene.until_status("web", "d is created", |status| status.waiting_for.contains("/d:")).await?;
        assert!(!is_terminating(&scene, "a").await? && !is_terminating(&scene, "b").await?);
        scene.hold("b", true).await?;
        mark(&scene, "d", "1").await?;
        scene.until_reason("web", "waits for the deletion of ").await?;
        assert!(is_terminating(&scene, "b").await? && !is_terminating(&scene, "a").await?);
        scene.hold("b", false).await?;
        scene.until_status("web", "two members", |status| status.objects == 2).await?;
        assert_eq!(scene.members().await?, ["c", "d"]);
        scene.world.stop().await
    }
);
