//! Owners go, and their members with them.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams};
use serde_json::json;

use crate::scene::{Scene, after, entry, on_both};

on_both!(
    /// Rows 49 and 56: members go in reverse order, and the owner after all of them.
    an_owner_goes_after_its_members,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1"), after("b", "1", &["a"])])).await?;
        scene.until_state("web", "Ready").await?;
        // A finalizer of somebody else holds what goes first.
        scene.hold("b", true).await?;
        scene.delete_owner("web").await?;
        scene.until_reason("web", "finalizers are not complete").await?;
        assert!(scene.config_map("a").await?.unwrap()["metadata"].get("deletionTimestamp").is_none());
        scene.hold("b", false).await?;
        scene.until_gone("web").await?;
        assert!(scene.config_map("a").await?.is_none());
        assert!(scene.object_set("web").await?.is_none());
        assert_eq!(scene.world.config.scan("sets/").await.unwrap(), []);
        scene.world.stop().await
    }
);

on_both!(
    /// Row 53: the deletion needs neither the handler nor what it returned; here the host has just started.
    a_deletion_goes_on_after_a_restart,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1"), after("b", "1", &["a"])])).await?;
        scene.until_state("web", "Ready").await?;
        scene.hold("b", true).await?;
        scene.delete_owner("web").await?;
        scene.until_reason("web", "finalizers are not complete").await?;
        let scene = scene.restart().await?;
        scene.hold("b", false).await?;
        scene.until_gone("web").await?;
        assert_eq!(scene.members().await?, [""; 0]);
        scene.world.stop().await
    }
);

on_both!(
    /// Rows 58 and 60: with DoNotTerminate nothing changes, and another policy counts at once.
    the_policy_of_the_live_owner_counts,
    async |scene: Scene| {
        let set = json!({"entries": [entry("a", "1")], "terminationPolicyAt": ".metadata.annotations.policy"});
        scene.owner_of_set("web", set).await?;
        scene.until_state("web", "Ready").await?;
        scene.annotate("web", "policy", Some("DoNotTerminate")).await?;
        scene.delete_owner("web").await?;
        scene.until_state("web", "Kept").await?;
        let events = scene.events("SetKept").await?;
        assert!(events[0].contains("DoNotTerminate"), "{events:?}");
        assert!(scene.config_map("a").await?.is_some());
        scene.annotate("web", "policy", Some("Delete")).await?;
        scene.until_gone("web").await?;
        assert!(scene.config_map("a").await?.is_none());
        scene.world.stop().await
    }
);

on_both!(
    /// A change of the policy alone reaches the inventory, and with it a deletion that another host carries out.
    a_policy_that_changes_alone_is_stored,
    async |scene: Scene| {
        let set = |policy: &str| json!({"entries": [entry("a", "1")], "terminationPolicy": policy});
        scene.owner_of_set("web", set("Delete")).await?;
        scene.until_state("web", "Ready").await?;
        scene.owner_of_set("web", set("DoNotTerminate")).await?;
        scene
            .world
            .until("the policy is stored", || async {
                let stored = scene.object_set("web").await?.unwrap();
                Ok(stored.spec.termination_policy == "DoNotTerminate")
            })
            .await?;
        scene.world.stop().await
    }
);

on_both!(
    /// Row 59: what is kept under a policy stays when the owner goes.
    policies_keep_what_they_say,
    async |scene: Scene| {
        let mut kept = entry("kept", "1");
        kept["onDelete"] = json!("onlyUnderWipeOut");
        let claim = json!({"name": "claim", "readyWhen": "exists", "object": {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }});
        let set = json!({"entries": [kept, claim, entry("a", "1")], "terminationPolicy": "KeepVolumes"});
        scene.owner_of_set("web", set).await?;
        scene.until_state("web", "Ready").await?;
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        assert!(scene.config_map("a").await?.is_none());
        assert_eq!(scene.config_map("kept").await?.unwrap()["data"], json!({"text": "1"}));
        assert!(scene.object("v1", "PersistentVolumeClaim", "claim").await?.is_some());
        assert_eq!(scene.members().await?, [""; 0]);
        scene.world.stop().await
    }
);

on_both!(
    /// Row 57: what somebody else has written into an inventory is not believed.
    an_altered_inventory_blocks,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        let set = scene.object_set("web").await?.unwrap();
        let name = set.metadata.name.unwrap();
        let mut members = serde_json::to_value(&set.spec.members)?;
        members[0]["name"] = json!("foreign");
        scene.meddle("configurator.dev/v1alpha1", "ObjectSet", &name, json!({"spec": {"members": members}})).await?;
        let scene = scene.restart().await?;
        scene.owner("web", json!([entry("a", "2")])).await?;
        let failure = scene.failure("web").await?;
        assert!(failure.contains("was changed by somebody else than a host"), "{failure}");
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "1");
        scene.world.stop().await
    }
);

on_both!(
    /// Whichever propagation policy an owner is deleted with: its members go.
    an_owner_is_deleted_with_every_propagation_policy,
    async |scene: Scene| {
        let policies = [DeleteParams::foreground(), DeleteParams::background(), DeleteParams::orphan()];
        let owners = scene.api("v1", "ConfigMap").await?;
        for (index, policy) in policies.iter().enumerate() {
            let (web, first, second) = (format!("web-{index}"), format!("a-{index}"), format!("b-{index}"));
            scene.owner(&web, json!([entry(&first, "1"), after(&second, "1", &[&first])])).await?;
            scene.until_state(&web, "Ready").await?;
            owners.delete(&web, policy).await?;
            scene.until_gone(&web).await?;
            assert_eq!(scene.members().await?, [""; 0], "{policy:?}");
            assert!(scene.object_set(&web).await?.is_none());
        }
        scene.world.stop().await
    }
);

on_both!(
    /// An ObjectSet that somebody deletes stays until its set is gone, and the set is kept meanwhile.
    an_object_set_that_somebody_deletes_stays,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        let name = scene.object_set("web").await?.unwrap().metadata.name.unwrap();
        let sets = scene.api("configurator.dev/v1alpha1", "ObjectSet").await?;
        for policy in [DeleteParams::foreground(), DeleteParams::background(), DeleteParams::orphan()] {
            sets.delete(&name, &policy).await?;
        }
        scene.owner("web", json!([entry("a", "2"), entry("b", "1")])).await?;
        scene.until_status("web", "both are ready", |status| status.ready == 2).await?;
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "2");
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        assert_eq!(scene.members().await?, [""; 0]);
        assert!(scene.object_set("web").await?.is_none());
        scene.world.stop().await
    }
);

on_both!(
    /// A namespace that is deleted takes its sets with it, and is not held up by them.
    a_namespace_is_deleted_with_its_sets,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1"), after("b", "1", &["a"])])).await?;
        scene.until_state("web", "Ready").await?;
        let namespaces: Api<Namespace> = Api::all(scene.world.client.clone());
        namespaces.delete(&scene.name, &DeleteParams::default()).await?;
        scene
            .world
            .until("the namespace is gone", || async {
                Ok(namespaces.get_opt(&scene.name).await?.is_none())
            })
            .await?;
        assert_eq!(scene.world.config.scan("sets/").await.unwrap(), []);
        scene.world.stop().await
    }
);
