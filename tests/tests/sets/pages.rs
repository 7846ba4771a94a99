//! Sets whose inventory has several pages.

use configurator_host::resource::object_set::ObjectSet;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};

use crate::scene::{Scene, entry, on_both};

/// More than one page of an inventory holds.
const ENTRIES: usize = 620;

on_both!(
    /// A large set is created, shrinks and goes, also after a restart.
    a_large_set_has_several_pages,
    async |scene: Scene| {
        scene.configure(|object| object["spec"]["sets"] = json!({"maxPrunePercent": 100})).await?;
        scene.owner("web", entries(0, ENTRIES)).await?;
        scene.until_status("web", "all are ready", |status| status.ready as usize == ENTRIES).await?;
        assert_eq!(pages(&scene).await?, [500, ENTRIES - 500]);
        let scene = scene.restart().await?;
        // Most members of the first page are replaced.
        scene.owner("web", entries(300, ENTRIES + 20)).await?;
        let expected = ENTRIES + 20 - 300;
        scene
            .until_status("web", "some are replaced", |status| {
                status.state == "Ready" && status.objects as usize == expected
            })
            .await?;
        assert_eq!(pages(&scene).await?.iter().sum::<usize>(), expected);
        assert_eq!(scene.members().await?.len(), expected);
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        assert_eq!(pages(&scene).await?, [0; 0]);
        assert_eq!(scene.members().await?, [""; 0]);
        assert_eq!(scene.world.config.scan("sets/").await.unwrap(), []);
        scene.world.stop().await
    }
);

on_both!(
    /// Row 57: a page that somebody has deleted is missed.
    a_lost_page_blocks,
    async |scene: Scene| {
        scene.owner("web", entries(0, ENTRIES)).await?;
        scene.until_status("web", "all are ready", |status| status.ready as usize == ENTRIES).await?;
        let name = scene.object_set("web").await?.unwrap().name_any();
        let second = format!("{name}-1");
        let unheld = json!({"metadata": {"finalizers": null}});
        scene.meddle("configurator.dev/v1alpha1", "ObjectSet", &second, unheld).await?;
        let sets = scene.api("configurator.dev/v1alpha1", "ObjectSet").await?;
        sets.delete(&second, &DeleteParams::default()).await?;
        let scene = scene.restart().await?;
        scene.owner("web", entries(0, 1)).await?;
        let failure = scene.failure("web").await?;
        assert!(failure.contains(&format!("{second} is missing")), "{failure}");
        assert_eq!(scene.members().await?.len(), ENTRIES);
        scene.world.stop().await
    }
);

on_both!(
    /// A set that is larger than its Configurator allows is refused as a whole.
    a_set_of_too_many_entries_is_refused,
    async |scene: Scene| {
        scene.configure(|object| object["spec"]["sets"] = json!({"maxEntries": 2})).await?;
        scene.owner("web", entries(0, 3)).await?;
        let failure = scene.failure("web").await?;
        assert!(failure.ends_with("the set has 3 entries; spec.sets.maxEntries allows 2"), "{failure}");
        assert_eq!(scene.members().await?, [""; 0]);
        scene.world.stop().await
    }
);

fn entries(from: usize, to: usize) -> Value {
    (from..to)
        .map(|index| entry(&format!("part-{index}"), "1"))
        .collect()
}

/// The number of members on each page.
async fn pages(scene: &Scene) -> anyhow::Result<Vec<usize>> {
    let api: Api<ObjectSet> = Api::namespaced(scene.world.client.clone(), &scene.name);
    let mut sets = api.list(&ListParams::default()).await?.items;
    sets.sort_by_key(|set| set.name_any());
    Ok(sets.iter().map(|set| set.spec.members.len()).collect())
}
