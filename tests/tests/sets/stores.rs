//! Members in the config store and the secret store.

use anyhow::Result;
use configurator_core::layers::Write;
use configurator_host::resource::ClusterConfigurator;
use configurator_host::sinks::configstore::ConfigStore as _;
use expect_test::expect;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::{Scene, after, entry, on_both};

/// An entry for a key of the config store.
fn key(scene: &Scene, name: &str, value: &str) -> Value {
    json!({"name": name, "config": [format!("{}-{name}", scene.name), value]})
}

/// An entry for a secret. The host generates its value.
fn secret(scene: &Scene, name: &str) -> Value {
    json!({"name": name, "secret": format!("{}-{name}", scene.name)})
}

impl Scene {
    /// Lets the Configurator write to the stores, and has members in them read each second.
    async fn with_stores(&self) -> Result<()> {
        self.configure(|object| {
            let verbs = ["get", "create", "update", "delete"];
            object["spec"]["sets"] = json!({"maxPrunePercent": 100, "pollInterval": "1s"});
            let capabilities = &mut object["spec"]["capabilities"];
            capabilities["configstore"] = json!([
                {"prefixes": ["basic/"], "verbs": verbs},
                {"prefixes": ["basic/"], "verbs": verbs, "namespaces": [self.name]},
            ]);
            capabilities["secretstore"] =
                json!([{"names": [format!("{}-*", self.name)], "verbs": verbs}]);
        })
        .await
    }

    fn key_of(&self, name: &str) -> String {
        format!("basic/{}-{name}", self.name)
    }

    /// The value of a key of the config store. `None`: there is none.
    async fn value(&self, name: &str) -> Result<Option<String>> {
        Ok(self.world.config.get(&self.key_of(name)).await?)
    }

    /// Returns when a key has this value.
    async fn until_value(&self, name: &str, value: Option<&str>) -> Result<()> {
        let what = format!("{name} is {value:?}");
        self.world
            .until(&what, || async {
                Ok(self.value(name).await?.as_deref() == value)
            })
            .await
    }

    /// Sets a key of the config store as somebody else.
    async fn put(&self, name: &str, value: &str) -> Result<()> {
        let write = Write::Put(self.key_of(name), value.to_owned());
        Ok(self.world.config.write(vec![write], &[]).await?)
    }

    /// The value of a secret. `None`: there is none.
    async fn secret(&self, name: &str) -> Result<Option<Value>> {
        let found = self
            .world
            .secrets
            .get(&format!("{}-{name}", self.name))
            .await?;
        Ok(found.map(|secret| secret.value.to_value()))
    }

    /// The marks of the host in the config store.
    async fn marks(&self) -> Result<Vec<String>> {
        let marks = self.world.config.scan("members/").await?.into_iter();
        Ok(marks
            .map(|(key, _)| key.replace(&self.name, "SCENE"))
            .collect())
    }
}

on_both!(
    /// Row 39: one graph over all stores.
    a_set_has_members_in_all_stores,
    async |scene: Scene| {
        scene.with_stores().await?;
        let mut password = secret(&scene, "password");
        password["dependsOn"] = json!(["limits"]);
        let all = json!([key(&scene, "limits", "10"), password, after("web", "1", &["password"])]);
        scene.owner("shop", all).await?;
        let status = scene.until_state("shop", "Ready").await?;
        assert_eq!((status.objects, status.ready), (3, 3));
        assert_eq!(scene.value("limits").await?.as_deref(), Some("10"));
        let generated = scene.secret("password").await?;
        assert!(generated.as_ref().and_then(Value::as_str).is_some_and(|value| value.len() > 32));
        expect![[r#"["members/config/basic/SCENE-limits", "members/secret/SCENE-password"]"#]]
            .assert_eq(&format!("{:?}", scene.marks().await?));
        let set = scene.object_set("shop").await?.unwrap();
        let keys: Vec<String> = set.spec.members.iter().map(|member| member.key().to_string()).collect();
        expect![[r#"["ConfigMap SCENE/web", "config-store key basic/SCENE-limits", "secret-store secret SCENE-password"]"#]]
            .assert_eq(&format!("{keys:?}").replace(&scene.name, "SCENE"));

        // A change of one entry leaves the others alone. A generated value is stable.
        let mut password = secret(&scene, "password");
        password["dependsOn"] = json!(["web"]);
        scene.owner("shop", json!([key(&scene, "limits", "20"), password, entry("web", "1")])).await?;
        scene.until_value("limits", Some("20")).await?;
        scene.until_state("shop", "Ready").await?;
        assert_eq!(scene.secret("password").await?, generated);

        // An entry that is left out is pruned.
        scene.owner("shop", json!([secret(&scene, "password"), entry("web", "1")])).await?;
        scene.until_value("limits", None).await?;
        scene.until_state("shop", "Ready").await?;

        scene.delete_owner("shop").await?;
        scene.until_gone("shop").await?;
        assert_eq!((scene.secret("password").await?, scene.marks().await?), (None, vec![]));
        scene.world.stop().await
    }
);

on_both!(
    /// A secret has the value that the handler gives it, and gets another one.
    a_secret_with_a_value_is_updated,
    async |scene: Scene| {
        scene.with_stores().await?;
        let mut token = secret(&scene, "token");
        token["value"] = json!({"user": "web", "password": "first-secret"});
        scene.owner("shop", json!([token])).await?;
        scene.until_state("shop", "Ready").await?;
        assert_eq!(scene.secret("token").await?, Some(token["value"].clone()));
        token["value"]["password"] = json!("second-secret");
        scene.owner("shop", json!([token])).await?;
        scene
            .world
            .until("the secret has changed", || async {
                Ok(scene.secret("token").await? == Some(token["value"].clone()))
            })
            .await?;
        scene.until_state("shop", "Ready").await?;
        // Nothing of the value is in what people read.
        let stored = serde_json::to_string(&scene.object_set("shop").await?)?;
        let marks = format!("{:?}", scene.world.config.scan("members/").await?);
        assert!(!stored.contains("secret\"") && !marks.contains("-secret\""), "{stored} {marks}");
        scene.world.stop().await
    }
);

on_both!(
    /// The next phase sees the value of a key, and of a secret the version alone.
    results_have_no_values_of_secrets,
    async |scene: Scene| {
        scene.with_stores().await?;
        let mut token = secret(&scene, "token");
        token["value"] = json!("hidden-secret");
        let entries = json!([key(&scene, "limits", "10"), token]);
        let api: Api<ClusterConfigurator> = Api::all(scene.world.client.clone());
        let results = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": scene.name, "name": "results"}, "data": {"text": "{results}"}});
        let spec = json!({"spec": {
            "chain": {"phases": [{"name": "root"}, {"name": "tell", "handler": "root"}]},
            "parameters": {
                "root": {"desiredAt": null, "desired": {"entries": entries}},
                "tell": {"requests": [{"name": "tell", "apply": results}]},
            },
        }});
        api.patch(&scene.name, &PatchParams::default(), &Patch::Merge(&spec)).await?;
        scene.owner("shop", json!([])).await?;
        scene
            .world
            .until("the results are written", || async { Ok(scene.config_map("results").await?.is_some()) })
            .await?;
        let results = scene.config_map("results").await?.unwrap();
        let results: Vec<Value> = serde_json::from_str(results["data"]["text"].as_str().unwrap())?;
        let objects: Vec<String> = results.iter().map(|result| result["objects"][0].as_str().unwrap().replace(&scene.name, "SCENE")).collect();
        let version = scene.world.secrets.get(&format!("{}-token", scene.name)).await?.unwrap().version;
        assert_eq!(objects, [
            json!({"key": "basic/SCENE-limits", "value": "10"}).to_string(),
            json!({"name": "SCENE-token", "version": version}).to_string(),
        ]);
        scene.world.stop().await
    }
);

on_both!(
    /// The host notices without a watch that others have changed members in the stores, and corrects them.
    drift_in_the_stores_is_repaired,
    async |scene: Scene| {
        scene.with_stores().await?;
        let all = json!([key(&scene, "limits", "10"), key(&scene, "gone", "1"), secret(&scene, "password")]);
        scene.owner("shop", all).await?;
        scene.until_state("shop", "Ready").await?;
        scene.put("limits", "99").await?;
        scene.until_value("limits", Some("10")).await?;
        let events = scene.events("DriftRepaired").await?;
        expect!["config-store key basic/SCENE-limits was changed by others and is corrected: the store does not say by whom"]
            .assert_eq(&events[0].replace(&scene.name, "SCENE"));

        scene.world.config.write(vec![Write::Delete(scene.key_of("gone"))], &[]).await?;
        scene.until_value("gone", Some("1")).await?;

        // Who changes a generated secret has another one. A lost one is generated again.
        let name = format!("{}-password", scene.name);
        let first = scene.world.secrets.get(&name).await?.unwrap();
        let rotated = configurator_core::document::Document::parse("\"rotated\"")?;
        scene.world.secrets.update(&name, first.version, rotated).await?;
        scene.put("limits", "98").await?;
        scene.until_value("limits", Some("10")).await?;
        assert_eq!(scene.secret("password").await?, Some(json!("rotated")));
        scene.world.secrets.delete(&name).await?;
        scene
            .world
            .until("the secret is there again", || async { Ok(scene.secret("password").await?.is_some()) })
            .await?;
        assert_ne!(scene.secret("password").await?, Some(json!("rotated")));
        scene.world.stop().await
    }
);

on_both!(
    /// Rows 30, 31 and 50: what exists is adopted only if asked for, belongs to one set, and stays if it is retained.
    keys_and_secrets_belong_to_one_set,
    async |scene: Scene| {
        scene.with_stores().await?;
        scene.put("limits", "theirs").await?;
        scene.owner("shop", json!([key(&scene, "limits", "ours")])).await?;
        let status = scene.until_state("shop", "Failed").await?;
        expect!["config-store key basic/SCENE-limits: config-store key basic/SCENE-limits exists and belongs to no set; delete it, or set `on-existing` to `adopt`"]
            .assert_eq(&status.waiting_for.replace(&scene.name, "SCENE"));
        assert_eq!((scene.value("limits").await?.as_deref(), scene.marks().await?), (Some("theirs"), vec![]));

        let mut adopted = key(&scene, "limits", "ours");
        adopted["onExisting"] = json!("adopt");
        adopted["onDelete"] = json!("retain");
        scene.owner("shop", json!([adopted])).await?;
        scene.until_state("shop", "Ready").await?;
        assert_eq!(scene.value("limits").await?.as_deref(), Some("ours"));

        scene.owner("other", json!([adopted])).await?;
        let status = scene.until_state("other", "Failed").await?;
        let reason = status.waiting_for.replace(&scene.name, "SCENE");
        assert!(reason.contains("belongs to the ObjectSet SCENE/shop-"), "{reason}");

        scene.delete_owner("other").await?;
        scene.until_gone("other").await?;
        scene.delete_owner("shop").await?;
        scene.until_gone("shop").await?;
        assert_eq!((scene.value("limits").await?.as_deref(), scene.marks().await?), (Some("ours"), vec![]));
        scene.world.stop().await
    }
);

on_both!(
    /// A set with a member that no rule allows is refused whole, and the message has the rules.
    stores_need_rules,
    async |scene: Scene| {
        scene.owner("shop", json!([entry("web", "1"), key(&scene, "limits", "10"), secret(&scene, "password")])).await?;
        let failure = scene.failure("shop").await?;
        expect![[r#"
            ResourcePermission: nothing of the set was written, because rules are missing: entry "limits": spec.capabilities has no rule that allows configstore: {prefixes: [basic/SCENE-limits], verbs: [get]}. The set needs:
            configstore:
            - {prefixes: ["basic/SCENE-limits"], verbs: [create, delete, get, update]}
            secretstore:
            - {names: ["SCENE-password"], verbs: [create, delete, get, update]}"#]]
        .assert_eq(&failure.replace(&scene.name, "SCENE"));
        assert_eq!((scene.config_map("web").await?, scene.marks().await?), (None, vec![]));
        scene.world.stop().await
    }
);

on_both!(
    /// The partition of a namespace holds the marks of its members, so that both go with the namespace.
    a_member_is_in_the_partition_that_its_entry_names,
    async |scene: Scene| {
        scene.with_stores().await?;
        let mut limits = key(&scene, "limits", "10");
        limits["partition"] = json!(scene.name);
        scene.owner("shop", json!([limits])).await?;
        scene.until_state("shop", "Ready").await?;
        let prefix = format!("namespaces/{}/", scene.name);
        let shown = async || {
            let keys = scene.world.config.scan(&prefix).await?.into_iter();
            let within = keys.filter_map(|(key, _)| Some(key.splitn(4, '/').nth(3)?.replace(&scene.name, "SCENE")));
            anyhow::Ok(within.collect::<Vec<String>>())
        };
        assert_eq!(shown().await?, ["basic/SCENE-limits", "members/config/basic/SCENE-limits"]);
        scene.delete_owner("shop").await?;
        scene.until_gone("shop").await?;
        assert_eq!(shown().await?, [""; 0]);
        scene.world.stop().await
    }
);

on_both!(
    /// An expression is about the value of a key. Others may set it.
    a_key_is_ready_when_its_expression_says_so,
    async |scene: Scene| {
        scene.with_stores().await?;
        let mut state = key(&scene, "state", "done");
        state["onExisting"] = json!("createOnly");
        state["readyWhen"] = json!("object.value == 'done'");
        scene.put("state", "pending").await?;
        scene.owner("shop", json!([state, after("web", "1", &["state"])])).await?;
        scene.until_reason("shop", "object.value == 'done' is false").await?;
        scene.put("state", "done").await?;
        scene.until_state("shop", "Ready").await?;
        assert!(scene.config_map("web").await?.is_some());
        scene.world.stop().await
    }
);
