//! A person gives up a set.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::{Scene, entry, on_both};

const ABANDON: &str = "configurator.dev/abandon-set";

on_both!(
    /// The members of a set that is given up lose its marks, and it begins anew when the annotation is gone.
    the_members_of_a_set_that_is_given_up_stay,
    async |scene: Scene| {
        let mut adopted = entry("a", "1");
        adopted["onExisting"] = json!("adopt");
        let entries = json!([adopted, entry("b", "1")]);
        scene.owner("web", entries.clone()).await?;
        scene.until_state("web", "Ready").await?;
        let before = scene.config_map("a").await?.unwrap();
        scene.annotate("web", ABANDON, Some("moved to another team")).await?;
        let failure = scene.failure("web").await?;
        assert!(failure.contains("the set was given up"), "{failure}");
        let told = scene.events("SetAbandoned").await?;
        assert_eq!(told, ["the set is given up, and no member was deleted (moved to another team): its members have lost its marks"]);
        let after = scene.config_map("a").await?.unwrap();
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(after["metadata"]["labels"], Value::Null);
        assert!(scene.object_set("web").await?.is_none());

        scene.annotate("web", ABANDON, None).await?;
        scene.until_state("web", "Failed").await?;
        assert_eq!(scene.members().await?, ["a"]);
        scene.annotate("web", ABANDON, Some("once more")).await?;
        scene.world.until("the set is given up again", || async {
            Ok(scene.members().await?.is_empty())
        }).await?;
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        assert!(scene.config_map("b").await?.is_some());
        scene.world.stop().await
    }
);

on_both!(
    /// Row 57: an owner whose inventory is damaged can be deleted, and none of its members is.
    an_owner_with_a_damaged_inventory_can_be_deleted,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        let set = scene.object_set("web").await?.unwrap();
        let name = set.metadata.name.unwrap();
        let sets = scene.api("configurator.dev/v1alpha1", "ObjectSet").await?;
        let damage = json!({"spec": {"members": []}});
        sets.patch(&name, &PatchParams::default(), &Patch::Merge(&damage)).await?;
        let scene = scene.restart().await?;
        let failure = scene.failure("web").await?;
        assert!(failure.contains("was changed by somebody else than a host"), "{failure}");
        assert!(failure.contains(ABANDON), "{failure}");
        scene.delete_owner("web").await?;
        scene.annotate("web", ABANDON, Some("the inventory was edited")).await?;
        scene.until_gone("web").await?;
        assert!(scene.config_map("a").await?.is_some());
        assert!(sets.get_opt(&name).await?.is_none());
        let told = scene.events("SetAbandoned").await?;
        assert!(told[0].contains("its members still have its marks"), "{told:?}");
        scene.world.stop().await
    }
);
