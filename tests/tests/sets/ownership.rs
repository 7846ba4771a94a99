//! Objects and fields that others have.

use serde_json::{Value, json};

use crate::scene::{Scene, after, entry, on_both};

on_both!(
    /// Rows 28 and 29: a field that another manager has is an error with its name, unless the entry takes it by force.
    a_field_of_others_is_taken_only_by_force,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"more": "theirs", "other": "theirs"}})).await?;
        let mut wanted = entry("a", "1");
        wanted["object"]["data"]["more"] = json!("ours");
        scene.owner("web", json!([wanted])).await?;
        scene.until_state("web", "Failed").await?;
        let failure = scene.failure("web").await?;
        assert!(failure.contains("meddler") && failure.contains(".data.more"), "{failure}");
        let text = json!({"text": "1", "more": "theirs", "other": "theirs"});
        assert_eq!(scene.config_map("a").await?.unwrap()["data"], text);
        wanted["force"] = json!(true);
        scene.owner("web", json!([wanted])).await?;
        scene.until_state("web", "Ready").await?;
        let text = json!({"text": "1", "more": "ours", "other": "theirs"});
        assert_eq!(scene.config_map("a").await?.unwrap()["data"], text);
        scene.world.stop().await
    }
);

on_both!(
    /// Row 29: a field that others have with the same value belongs to both, and stays when the set lets go of it.
    a_field_with_the_same_value_belongs_to_both,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"more": "same"}})).await?;
        let mut wanted = entry("a", "1");
        wanted["object"]["data"]["more"] = json!("same");
        scene.owner("web", json!([wanted])).await?;
        scene
            .world
            .until("both have the field", || async {
                let object = scene.config_map("a").await?.unwrap();
                let managers = object["metadata"]["managedFields"].as_array().unwrap().iter();
                let with_field = managers.filter(|of| of["fieldsV1"]["f:data"].get("f:more").is_some());
                Ok(with_field.count() == 2)
            })
            .await?;
        scene.owner("web", json!([entry("a", "2")])).await?;
        scene
            .world
            .until("the change is applied", || async {
                Ok(scene.config_map("a").await?.unwrap()["data"]["text"] == "2")
            })
            .await?;
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["more"], "same");
        scene.world.stop().await
    }
);

on_both!(
    /// Row 35: a change of something immutable fails, and recreates the member only if the entry says so.
    a_member_is_recreated_only_if_its_entry_says_so,
    async |scene: Scene| {
        let mut wanted = entry("a", "1");
        wanted["object"]["immutable"] = json!(true);
        scene.owner("web", json!([wanted])).await?;
        scene.until_state("web", "Ready").await?;
        let before = scene.config_map("a").await?.unwrap();
        wanted["object"]["data"]["text"] = json!("2");
        scene.owner("web", json!([wanted])).await?;
        scene.until_state("web", "Failed").await?;
        let failure = scene.failure("web").await?;
        assert!(failure.contains("immutable"), "{failure}");
        assert_eq!(scene.config_map("a").await?.unwrap(), before);
        wanted["recreate"] = json!(true);
        scene.owner("web", json!([wanted])).await?;
        scene.until_state("web", "Ready").await?;
        let after = scene.config_map("a").await?.unwrap();
        assert_eq!(after["data"]["text"], "2");
        assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
        scene.world.stop().await
    }
);

on_both!(
    /// Rows 45 and 46: an object that somebody has put in the place of a member is not deleted.
    an_object_in_the_place_of_a_member_is_not_deleted,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1"), entry("b", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.suspend("web", true).await?;
        // With the label of the set, but without what proves that it is a member.
        replace(&scene, "a", |object| object["metadata"]["annotations"] = json!(null)).await?;
        scene.owner("web", json!([entry("b", "1")])).await?;
        scene.suspend("web", false).await?;
        scene
            .until_status("web", "the member is forgotten", |status| {
                status.state != "Suspended" && status.objects == 1
            })
            .await?;
        assert!(scene.config_map("a").await?.is_some());
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        assert!(scene.config_map("a").await?.is_some());
        scene.world.stop().await
    }
);

on_both!(
    /// Members that a backup tool has restored, with new uids, are members again.
    restored_members_are_members_again,
    async |scene: Scene| {
        let entries = json!([entry("a", "1"), after("b", "1", &["a"])]);
        scene.owner("web", entries).await?;
        scene.until_state("web", "Ready").await?;
        scene.suspend("web", true).await?;
        let first = replace(&scene, "a", |_| ()).await?;
        let second = replace(&scene, "b", |object| object["data"]["text"] = json!("older")).await?;
        scene.suspend("web", false).await?;
        scene
            .world
            .until("they are as described, and recorded", || async {
                let set = scene.object_set("web").await?.unwrap();
                let members = set.spec.members.iter().filter_map(|member| member.uid.clone());
                let mut uids: Vec<String> = members.collect();
                uids.sort();
                let mut restored = vec![first.clone(), second.clone()];
                restored.sort();
                Ok(uids == restored && scene.config_map("b").await?.unwrap()["data"]["text"] == "1")
            })
            .await?;
        scene.until_state("web", "Ready").await?;
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        assert_eq!(scene.members().await?, [""; 0]);
        scene.world.stop().await
    }
);

/// Deletes a ConfigMap, creates a copy of it with a change, and returns the uid of the copy.
async fn replace(
    scene: &Scene,
    name: &str,
    change: impl FnOnce(&mut Value),
) -> anyhow::Result<String> {
    let maps = scene.api("v1", "ConfigMap").await?;
    let mut copy = serde_json::to_value(maps.get(name).await?)?;
    maps.delete(name, &Default::default()).await?;
    scene.until_gone(name).await?;
    let metadata = copy["metadata"].as_object_mut().unwrap();
    for field in [
        "uid",
        "resourceVersion",
        "managedFields",
        "creationTimestamp",
    ] {
        metadata.remove(field);
    }
    change(&mut copy);
    let created = maps
        .create(&Default::default(), &serde_json::from_value(copy)?)
        .await?;
    Ok(created.metadata.uid.unwrap_or_default())
}

on_both!(
    /// Rows 43, 44 and 52: members of kinds and namespaces that no entry has any more are deleted, also by another host.
    members_of_past_kinds_and_namespaces_are_deleted,
    async |scene: Scene| {
        scene.define_things().await?;
        let elsewhere = format!("{}-2", scene.name);
        let namespace = json!({"name": "ns", "object": {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere},
        }});
        let mut there = entry("there", "1");
        there["object"]["metadata"]["namespace"] = json!(elsewhere);
        let thing = json!({"name": "thing", "object": {
            "apiVersion": "sets.example/v1", "kind": "Thing", "metadata": {"name": "thing"},
        }});
        scene.owner("web", json!([namespace, there, thing, entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        let set = scene.object_set("web").await?.unwrap();
        let kinds = &set.metadata.annotations.unwrap()["applyset.kubernetes.io/contains-group-kinds"];
        assert_eq!(kinds, "ConfigMap,Namespace,Thing.sets.example");
        let scene = scene.restart().await?;
        scene.configure(|object| object["spec"]["sets"] = json!({"maxPrunePercent": 100})).await?;
        scene.owner("web", json!([namespace, entry("a", "1")])).await?;
        scene.until_status("web", "they are gone", |status| status.state == "Ready" && status.objects == 2).await?;
        assert!(scene.object("sets.example/v1", "Thing", "thing").await?.is_none());
        let maps = scene.world.objects("v1", "ConfigMap", &elsewhere).await?;
        assert!(maps.get_opt("there").await?.is_none());
        let set = scene.object_set("web").await?.unwrap();
        let kinds = &set.metadata.annotations.unwrap()["applyset.kubernetes.io/contains-group-kinds"];
        assert_eq!(kinds, "ConfigMap,Namespace");
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        scene.world.stop().await
    }
);
