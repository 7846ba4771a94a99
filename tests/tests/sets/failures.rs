//! Failures are told from waiting, and are not forgotten.

use serde_json::{Value, json};

use crate::scene::{Scene, after, entry, on_both};

fn thing(name: &str, failed: &str) -> Value {
    json!({"name": name, "readyWhen": "object.status.ready", "failedWhen": failed, "object": {
        "apiVersion": "sets.example/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"size": 1},
    }})
}

on_both!(
    /// Rows 19 and 65: a failure is told at once, though others are only waited for, and every member that is not ready has its state
    /// and its reason.
    a_failure_is_told_from_waiting,
    async |scene: Scene| {
        scene.define_things().await?;
        let set = json!([thing("t", "object.status.broken"), thing("u", "object.status.broken"), after("b", "1", &["t"])]);
        scene.owner("web", set).await?;
        scene.until_status("web", "all wait", |status| status.state == "Progressing" && status.members.len() == 3).await?;
        scene.set_status("sets.example/v1", "Thing", "t", json!({"broken": true})).await?;
        let status = scene.until_status("web", "t has failed", |status| status.members.first().is_some_and(|first| first.state == "Failed")).await?;
        let members: Vec<_> = status.members.iter().map(|member| (member.entry.as_str(), member.state.as_str(), member.waits_for.as_str())).collect();
        assert_eq!(members, [("t", "Failed", ""), ("u", "Waiting", ""), ("b", "Blocked", "t")]);
        assert_eq!(status.members[0].reason, "the expression of `failed-when` is true");
        assert_eq!(status.members[1].reason, "object.status.ready: the expression failed: No such key: status");
        scene.set_status("sets.example/v1", "Thing", "t", json!({"broken": false, "ready": true})).await?;
        scene.set_status("sets.example/v1", "Thing", "u", json!({"ready": true})).await?;
        scene.until_state("web", "Ready").await?;
        scene.world.stop().await
    }
);

on_both!(
    /// Row 12: what a handler says of the owner is written after the members, also when one of them has failed.
    the_status_of_the_owner_comes_last,
    async |scene: Scene| {
        scene.define_things().await?;
        scene
            .configure(|object| {
                object["spec"]["watch"]["apiVersion"] = json!("sets.example/v1");
                object["spec"]["watch"]["kind"] = json!("Thing");
                let script = json!({"desiredAt": "/spec/set", "status": {"said": true}});
                object["spec"]["parameters"]["root"] = script;
            })
            .await?;
        let mut failing = entry("b", "1");
        failing["failedWhen"] = json!("true");
        let set = json!({"entries": [entry("a", "1"), failing]});
        let owner = json!({
            "apiVersion": "sets.example/v1", "kind": "Thing",
            "metadata": {"name": "web", "namespace": scene.name, "labels": {configurator_tests::world::SCENE: scene.name}},
            "spec": {"set": set.to_string()},
        });
        scene.world.apply(&owner).await?;
        let said = scene.world.until("the status of the owner is written", || async {
            let owner = scene.object("sets.example/v1", "Thing", "web").await?.unwrap();
            Ok(owner["status"]["said"] == true)
        });
        said.await?;
        let version = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
        let owner = scene.object("sets.example/v1", "Thing", "web").await?.unwrap();
        for name in ["a", "b"] {
            let member = scene.config_map(name).await?.unwrap();
            assert!(version(&owner) > version(&member), "{name}");
        }
        scene.world.stop().await
    }
);

on_both!(
    /// Row 47: a member whose deletion is refused stays in the inventory, and is deleted when it may be.
    a_member_whose_deletion_is_refused_stays_known,
    async |scene: Scene| {
        let verbs = |verbs: Value| move |object: &mut Value| {
            object["spec"]["capabilities"]["kubernetes"] = json!([
                {"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": verbs},
            ]);
        };
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.configure(verbs(json!(["get", "apply", "watch"]))).await?;
        scene.delete_owner("web").await?;
        let status = scene.until_state("web", "Failed").await?;
        assert!(status.members[0].reason.contains("delete"), "{status:?}");
        let stored = scene.object_set("web").await?.unwrap();
        assert_eq!(stored.spec.members.len(), 1);
        assert!(scene.config_map("a").await?.is_some());
        scene.configure(verbs(json!(["get", "apply", "watch", "delete"]))).await?;
        scene.until_gone("web").await?;
        assert_eq!(scene.members().await?, [""; 0]);
        scene.world.stop().await
    }
);

on_both!(
    /// An owner that is deleted while members are not ready goes, with what has been created.
    an_owner_is_deleted_in_mid_rollout,
    async |scene: Scene| {
        let mut first = entry("a", "no");
        first["readyWhen"] = json!("object.data.text == 'ready'");
        scene.owner("web", json!([first, after("b", "1", &["a"])])).await?;
        scene.until_reason("web", "object.data.text == 'ready'").await?;
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        assert_eq!(scene.members().await?, [""; 0]);
        assert!(scene.object_set("web").await?.is_none());
        scene.world.stop().await
    }
);

on_both!(
    /// An expression that cannot be evaluated is waited for, with its error, and does not fail the entries beside it.
    an_expression_that_always_fails_is_told,
    async |scene: Scene| {
        let mut first = entry("a", "1");
        first["readyWhen"] = json!("object.data.text + 1 == 2");
        scene.owner("web", json!([first, entry("b", "1")])).await?;
        let status = scene.until_reason("web", "the expression failed").await?;
        assert_eq!((status.objects, status.ready), (2, 1));
        scene.world.stop().await
    }
);

on_both!(
    /// An object that is larger than the API takes is refused by it, and the entries beside it are written.
    an_object_that_is_too_large_fails_alone,
    async |scene: Scene| {
        scene
            .configure(|object| {
                object["spec"]["limits"] = json!({"outputSize": "16Mi", "memory": "256Mi"});
                object["spec"]["retry"] = json!({"maxAttempts": 1});
            })
            .await?;
        let mut large = entry("a", "1");
        large["padding"] = json!(3 << 20);
        scene.owner("web", json!([large, entry("b", "1"), after("c", "1", &["a"])])).await?;
        let failure = scene.failure("web").await?;
        assert!(failure.contains("entry \"a\": ") && failure.contains("limit is 3145728"), "{failure}");
        assert_eq!(scene.members().await?, ["b"]);
        scene.world.stop().await
    }
);
