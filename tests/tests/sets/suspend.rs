//! Sets are suspended and resumed.

use serde_json::json;

use crate::scene::{Scene, entry, on_both};

on_both!(
    /// Row 70: the members of a suspended set are left alone, and are corrected when it is resumed.
    a_suspended_set_is_left_alone,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.suspend("web", true).await?;
        let status = scene.until_state("web", "Suspended").await?;
        assert_eq!((status.waiting_for.as_str(), status.conditions[0].status.as_str()), ("", "True"));
        let changed = json!({"data": {"text": "mine"}});
        scene.meddle("v1", "ConfigMap", "a", changed).await?;
        scene.owner("web", json!([entry("a", "1"), entry("b", "1")])).await?;
        // The host has seen the new entry, and the change by then.
        scene.until_status("web", "b is to be written", |status| status.members.len() == 2).await?;
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "mine");
        assert!(scene.config_map("b").await?.is_none());
        scene.suspend("web", false).await?;
        scene.until_state("web", "Ready").await?;
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "1");
        assert!(scene.config_map("b").await?.is_some());
        scene.world.stop().await
    }
);

on_both!(
    /// An owner that is deleted while its set is suspended waits until the set is resumed.
    a_suspended_set_is_not_deleted,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.suspend("web", true).await?;
        scene.delete_owner("web").await?;
        scene.until_status("web", "the deletion waits", |status| status.waiting_for.contains("suspend-set")).await?;
        let scene = scene.restart().await?;
        assert!(scene.config_map("a").await?.is_some());
        scene.suspend("web", false).await?;
        scene.until_gone("web").await?;
        assert_eq!(scene.members().await?, [""; 0]);
        scene.world.stop().await
    }
);
