//! Members without an entry go.

use serde_json::json;

use crate::scene::{Scene, after, entry, on_both};

on_both!(
    /// Rows 38 and 49: members whose entries are gone are deleted, those that depended on others first.
    members_without_an_entry_are_deleted,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1"), after("b", "1", &["a"]), entry("c", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.owner("web", json!([entry("c", "1")])).await?;
        scene.until_gone("a").await?;
        assert!(scene.config_map("b").await?.is_none());
        let status = scene.until_status("web", "one member", |status| status.objects == 1).await?;
        assert_eq!(status.state, "Ready");
        assert_eq!(scene.members().await?, ["c"]);
        scene.world.stop().await
    }
);

on_both!(
    /// Row 50: a member that is to be kept loses the marks of the set, and keeps its content.
    a_retained_member_is_released,
    async |scene: Scene| {
        let mut a = entry("a", "1");
        a["onDelete"] = json!("retain");
        scene.owner("web", json!([a, entry("b", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.owner("web", json!([entry("b", "1")])).await?;
        scene.until_status("web", "one member", |status| status.objects == 1).await?;
        let kept = scene.config_map("a").await?.unwrap();
        assert_eq!(kept["data"], json!({"text": "1"}));
        assert_eq!(kept["metadata"]["labels"], serde_json::Value::Null);
        assert_eq!(kept["metadata"]["annotations"], serde_json::Value::Null);
        scene.world.stop().await
    }
);

on_both!(
    /// Rows 41 and 42, and `maxPrunePercent`: nothing is deleted while an entry fails, by an empty set, or where it is too much.
    nothing_is_pruned_by_mistake,
    async |scene: Scene| {
        let all = ["a", "b", "c", "d", "e", "f"];
        let entries: Vec<_> = all.iter().map(|name| entry(name, "1")).collect();
        scene.owner("web", json!(entries)).await?;
        scene.until_state("web", "Ready").await?;
        scene.owner("web", json!([entry("a", "1")])).await?;
        let status = scene.until_state("web", "Unconfirmed").await?;
        assert!(status.waiting_for.contains("5 of 6 members"), "{status:?}");
        let (_, change) = status.waiting_for.split_once("configurator.dev/confirm-prune: ").unwrap();
        let change = change.trim_matches('"').to_owned();
        scene.owner("web", json!([])).await?;
        let failure = async || scene.failure("web").await;
        scene
            .world
            .until("the empty set is refused", || async { Ok(failure().await?.contains("allow-empty")) })
            .await?;
        let mut failing = entry("a", "1");
        failing["failedWhen"] = json!("true");
        scene.owner("web", json!([failing, entry("b", "1"), entry("c", "1"), entry("d", "1"), entry("e", "1")])).await?;
        scene.until_state("web", "Failed").await?;
        assert_eq!(scene.members().await?.len(), 6);
        scene.owner("web", json!(entries[..5])).await?;
        scene.until_gone("f").await?;
        // A person allows one change, and no other one.
        scene.owner("web", json!(entries)).await?;
        scene.until_status("web", "six members", |status| status.ready == 6).await?;
        let confirm = async || scene.annotate("web", "configurator.dev/confirm-prune", Some(&change)).await;
        confirm().await?;
        scene.owner("web", json!([entry("b", "1")])).await?;
        scene.until_state("web", "Unconfirmed").await?;
        assert_eq!(scene.members().await?.len(), 6);
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        assert_eq!(scene.members().await?, ["a"]);
        scene.world.stop().await
    }
);
