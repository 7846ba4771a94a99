//! A Configurator is deleted, and its sets with it.

use anyhow::Result;
use configurator_host::resource::ClusterConfigurator;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::machines::comes_up;
use crate::scene::{Scene, after, entry, on_both};

/// Changes `spec.deletion.sets` of the Configurator.
async fn choose(scene: &Scene, policy: &str) -> Result<()> {
    let api: Api<ClusterConfigurator> = Api::all(scene.world.client.clone());
    let patch = json!({"spec": {"deletion": {"sets": policy}}});
    api.patch(&scene.name, &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    Ok(())
}

async fn delete_configurator(scene: &Scene) -> Result<()> {
    let api: Api<ClusterConfigurator> = Api::all(scene.world.client.clone());
    api.delete(&scene.name, &DeleteParams::default()).await?;
    Ok(())
}

async fn until_configurator_is_gone(scene: &Scene) -> Result<()> {
    let api: Api<ClusterConfigurator> = Api::all(scene.world.client.clone());
    let gone = scene.world.until("the Configurator is gone", || async {
        Ok(api.get_opt(&scene.name).await?.is_none())
    });
    if let Err(error) = gone.await {
        let sets = [
            scene.object_set("web").await?,
            scene.object_set("db").await?,
        ];
        return Err(error.context(format!("{sets:?}, {:?}", scene.world.report())));
    }
    Ok(())
}

/// Returns what Events say of the sets that are left, when one does.
async fn told(scene: &Scene) -> Result<Vec<String>> {
    let api: Api<Event> = Api::namespaced(scene.world.client.clone(), "default");
    let messages = || async {
        let events = api.list(&ListParams::default()).await?.items.into_iter();
        let its = events.filter(|event| {
            event.involved_object.name.as_ref() == Some(&scene.name)
                && event.reason.as_deref() == Some("SetsRemain")
        });
        anyhow::Ok(its.filter_map(|event| event.message).collect::<Vec<_>>())
    };
    let told = || async { Ok(!messages().await?.is_empty()) };
    scene.world.until("an Event SetsRemain", told).await?;
    messages().await
}

/// Checks that an owner has neither a set nor a finalizer.
async fn assert_free(scene: &Scene, owner: &str) -> Result<()> {
    let object = scene.config_map(owner).await?.unwrap();
    assert_eq!(object["metadata"]["finalizers"], Value::Null);
    assert_eq!(object["metadata"]["deletionTimestamp"], Value::Null);
    assert!(scene.object_set(owner).await?.is_none());
    Ok(())
}

on_both!(
    /// With `Delete`, the members of each set are deleted in reverse order, also after a restart, and the owners stay.
    members_are_deleted_in_order,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1"), after("b", "1", &["a"])])).await?;
        scene.owner("db", json!([entry("c", "1")])).await?;
        scene.owner("none", json!([])).await?;
        scene.until_state("web", "Ready").await?;
        scene.until_state("db", "Ready").await?;
        // A finalizer of somebody else holds what goes first.
        scene.hold("b", true).await?;
        choose(&scene, "Delete").await?;
        delete_configurator(&scene).await?;
        scene.until_reason("web", "finalizers are not complete").await?;
        assert!(scene.config_map("a").await?.unwrap()["metadata"].get("deletionTimestamp").is_none());
        let scene = scene.restart().await?;
        scene.until_gone("c").await?;
        scene.hold("b", false).await?;
        until_configurator_is_gone(&scene).await?;
        assert_eq!(scene.members().await?, [""; 0]);
        for owner in ["web", "db", "none"] {
            assert_free(&scene, owner).await?;
        }
        assert_eq!(scene.world.config.scan("sets/").await.unwrap(), []);
        scene.world.stop().await
    }
);

on_both!(
    /// A Configurator with sets stays by default, and says why. Another value of `spec.deletion.sets` counts at once.
    a_configurator_with_sets_stays_until_another_policy_is_chosen,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        delete_configurator(&scene).await?;
        let told = told(&scene).await?;
        assert!(told[0].contains("it stays until their owners are deleted"), "{told:?}");
        // Its sets are reconciled as before.
        scene.owner("web", json!([entry("a", "2"), entry("b", "1")])).await?;
        scene.until_status("web", "b is ready", |status| status.objects == 2 && status.ready == 2).await?;
        choose(&scene, "Orphan").await?;
        until_configurator_is_gone(&scene).await?;
        assert_eq!(scene.members().await?, [""; 0]);
        let member = scene.config_map("a").await?.unwrap();
        assert_eq!(member["data"]["text"], "2");
        assert_eq!(member["metadata"]["ownerReferences"], Value::Null);
        assert!(scene.config_map("b").await?.is_some());
        assert_free(&scene, "web").await?;
        scene.world.stop().await
    }
);

on_both!(
    /// The set of a machine ends whatever phase its object is in.
    sets_of_machines_end_too,
    async |scene: Scene| {
        comes_up(&scene, Some("root")).await?;
        scene.owner("web", json!([entry("a", "1"), after("b", "1", &["a"])])).await?;
        scene.until_state("web", "Ready").await?;
        choose(&scene, "Delete").await?;
        delete_configurator(&scene).await?;
        until_configurator_is_gone(&scene).await?;
        assert_eq!(scene.members().await?, [""; 0]);
        assert_free(&scene, "web").await?;
        scene.world.stop().await
    }
);

on_both!(
    /// The owners keep their sets until they are deleted, also those that change meanwhile. Then the change is taken over.
    sets_are_not_dropped_with_their_declaration,
    async |scene: Scene| {
        scene.owner("web", json!([entry("a", "1")])).await?;
        scene.until_state("web", "Ready").await?;
        let api: Api<ClusterConfigurator> = Api::all(scene.world.client.clone());
        let patch = json!({"spec": {"sets": null}});
        let changed = api.patch(&scene.name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        let message = || async {
            let status = api.get(&scene.name).await?.status.unwrap_or_default();
            let why = status.conditions.into_iter().find(|condition| condition.reason == "SetsRemain");
            anyhow::Ok(why.map(|why| why.message).unwrap_or_default())
        };
        scene.world.until("the change is refused", || async {
            Ok(message().await?.contains("`spec.sets` is missing"))
        }).await?;
        assert!(message().await?.contains("one of ConfigMap "), "{}", message().await?);
        scene.owner("web", json!([entry("a", "2")])).await?;
        scene.world.until("the earlier generation goes on", || async {
            Ok(scene.config_map("a").await?.unwrap()["data"]["text"] == "2")
        }).await?;
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        assert_eq!(scene.members().await?, [""; 0]);
        scene.world.until("the change is taken over", || async {
            let status = api.get(&scene.name).await?.status.unwrap_or_default();
            let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
            Ok(ready.is_some_and(|ready| ready.status == "True" && ready.observed_generation == changed.metadata.generation))
        }).await?;
        scene.world.stop().await
    }
);
