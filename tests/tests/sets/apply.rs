//! Members are created, updated, repaired and refused.

use expect_test::expect;
use serde_json::json;

use crate::scene::{Scene, after, entry, on_both};

on_both!(
    /// Rows 7 and 10: dependencies are written first, and each member once.
    members_are_created_after_those_that_they_depend_on,
    async |scene: Scene| {
        let diamond = json!([
            after("d", "4", &["b", "c"]),
            after("b", "2", &["a"]),
            after("c", "3", &["a"]),
            entry("a", "1"),
        ]);
        scene.owner("web", diamond).await?;
        let status = scene.until_state("web", "Ready").await?;
        assert_eq!((status.objects, status.ready), (4, 4));
        assert_eq!(status.waiting_for, "");
        let members = scene.members().await?;
        assert_eq!((&*members[0], &*members[3]), ("a", "d"));
        let set = scene.object_set("web").await?.unwrap();
        let mut names: Vec<_> = set.spec.members.iter().map(|member| (member.name.as_str(), member.wave)).collect();
        names.sort_unstable();
        assert_eq!(names, [("a", Some(2)), ("b", Some(1)), ("c", Some(1)), ("d", Some(0))]);
        scene.world.stop().await
    }
);

on_both!(
    /// Rows 26 and 27: an entry that changes changes its member and nothing else, and a field that is left out goes.
    only_what_has_changed_is_written,
    async |scene: Scene| {
        let mut first = entry("a", "1");
        first["object"]["data"]["more"] = json!("x");
        scene.owner("web", json!([first, entry("b", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        let before = scene.config_map("b").await?.unwrap();
        scene.owner("web", json!([entry("a", "2"), entry("b", "1")])).await?;
        scene
            .world
            .until("the change is applied", || async {
                Ok(scene.config_map("a").await?.unwrap()["data"] == json!({"text": "2"}))
            })
            .await?;
        scene.until_state("web", "Ready").await?;
        assert_eq!(scene.config_map("b").await?.unwrap(), before);
        scene.world.stop().await
    }
);

on_both!(
    /// Row 36: a field that others have taken is taken back, and they are named.
    drift_is_repaired_and_attributed,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"text": "mine", "other": "kept"}})).await?;
        scene
            .world
            .until("the drift is repaired", || async {
                Ok(scene.config_map("a").await?.unwrap()["data"] == json!({"text": "1", "other": "kept"}))
            })
            .await?;
        let events = scene.events("DriftRepaired").await?;
        assert!(events[0].contains("ConfigMap") && events[0].contains("meddler"), "{events:?}");
        scene.world.stop().await
    }
);

on_both!(
    /// A member that somebody deletes is created again.
    a_lost_member_is_created_again,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        let uid = |object: serde_json::Value| object["metadata"]["uid"].clone();
        let before = uid(scene.config_map("a").await?.unwrap());
        scene.api("v1", "ConfigMap").await?.delete("a", &Default::default()).await?;
        scene
            .world
            .until("it is there again", || async {
                Ok(scene.config_map("a").await?.is_some_and(|object| uid(object) != before))
            })
            .await?;
        scene.until_state("web", "Ready").await?;
        scene.world.stop().await
    }
);

on_both!(
    /// Rows 30 and 33: an object that exists is adopted only if the entry says so, and never changed by `create-only`.
    existing_objects_are_adopted_only_if_asked,
    async |scene: Scene| {
        for name in ["refused", "adopted", "kept"] {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": scene.name}, "data": {"text": "theirs"},
            });
            scene.world.apply(&object).await?;
        }
        let mut adopted = entry("adopted", "ours");
        adopted["onExisting"] = json!("adopt");
        adopted["force"] = json!(true);
        let mut kept = entry("kept", "ours");
        kept["onExisting"] = json!("createOnly");
        scene.owner("web", json!([entry("refused", "ours"), adopted, kept])).await?;
        scene.until_state("web", "Failed").await?;
        let failure = scene.failure("web").await?;
        expect![[r#"ResourceGeneric: entry "refused": ConfigMap existing-objects-are-adopted-only-if-ask/refused exists and belongs to no set; delete it, or set `on-existing` to `adopt`"#]]
            .assert_eq(&failure);
        assert_eq!(scene.members().await?, ["adopted"]);
        let text = async |name: &str| {
            let object = scene.config_map(name).await?.unwrap();
            anyhow::Ok(object["data"]["text"].as_str().unwrap().to_owned())
        };
        assert_eq!(text("refused").await?, "theirs");
        assert_eq!(text("adopted").await?, "ours");
        assert_eq!(text("kept").await?, "theirs");
        scene.world.stop().await
    }
);

on_both!(
    /// Rows 31 and 32: the first set has an object, and the second fails with the names of both.
    a_member_of_another_set_is_left_alone,
    async |scene: Scene| {
        scene.owner("first", json!([entry("a", "1")])).await?;
        scene.until_state("first", "Ready").await?;
        scene.owner("second", json!([entry("a", "2"), entry("b", "2")])).await?;
        scene.until_state("second", "Failed").await?;
        let failure = scene.failure("second").await?;
        assert!(failure.contains("ConfigMap") && failure.contains("belongs to the ObjectSet"), "{failure}");
        assert!(failure.contains("/first-"), "{failure}");
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "1");
        scene.world.stop().await
    }
);

on_both!(
    /// Row 34: ignored paths are set at creation and left to others afterwards.
    ignored_paths_are_left_to_others,
    async |scene: Scene| {
        let mut a = entry("a", "1");
        a["ignore"] = json!([".data.text"]);
        scene.owner("web", json!([a])).await?;
        scene.until_state("web", "Ready").await?;
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"text": "theirs"}})).await?;
        a["object"]["data"]["more"] = json!("2");
        scene.owner("web", json!([a])).await?;
        scene
            .world
            .until("the change is applied", || async {
                Ok(scene.config_map("a").await?.unwrap()["data"]["more"] == "2")
            })
            .await?;
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "theirs");
        scene.world.stop().await
    }
);

on_both!(
    /// Nothing is written where a right is missing, and the message has the rules.
    a_set_that_lacks_a_right_is_refused_whole,
    async |scene: Scene| {
        scene
            .configure(|configurator| {
                let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": ["get", "apply", "delete", "watch"]});
                configurator["spec"]["capabilities"] = json!({"kubernetes": [rule]});
            })
            .await?;
        let secret = json!({"name": "s", "object": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}});
        scene.owner("web", json!([entry("a", "1"), secret])).await?;
        let failure = scene.failure("web").await?;
        assert!(failure.contains("ResourcePermission"), "{failure}");
        let rules = format!(r#"{{apiGroups: [""], resources: ["secrets"], verbs: [apply, delete, get, watch], namespaces: ["{}"]}}"#, scene.name);
        assert!(failure.contains(&rules), "{failure}");
        assert!(scene.config_map("a").await?.is_none());
        assert!(scene.object_set("web").await?.is_none());
        scene.world.stop().await
    }
);

on_both!(
    /// Two who change the same field again and again are told of, and the host corrects it less and less often.
    a_fight_over_a_field_is_slowed,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        for round in 0..5 {
            let text = json!({"data": {"text": format!("mine {round}")}});
            scene.meddle("v1", "ConfigMap", "a", text).await?;
            scene
                .world
                .until("the text is that of the entry", || async {
                    Ok(scene.config_map("a").await?.unwrap()["data"]["text"] == "1")
                })
                .await?;
        }
        let events = scene.events("DriftContested").await?;
        assert!(events[0].contains("meddler"), "{events:?}");
        let fights = scene.world.metric("configurator_set_fights_total");
        assert!(fights.ends_with(" 1"), "{fights}");
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"text": "mine"}})).await?;
        scene.until_reason("web", "is changed by others again and again").await?;
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "mine");
        // An entry that has changed is written at once.
        let mut changed = entry("a", "2");
        changed["force"] = json!(true);
        scene.owner("web", json!([changed])).await?;
        scene.until_state("web", "Ready").await?;
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "2");
        scene.world.stop().await
    }
);
