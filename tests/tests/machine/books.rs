//! The host's records of objects that stop matching and match again while their removal is under way.

use anyhow::Result;
use configurator_host::resource::ClusterConfigurator;
use configurator_tests::books::Books;
use configurator_tests::configurator::scripted;
use configurator_tests::machine::definition;
use configurator_tests::world::{Place, Servers, World};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::things::*;

/// Servers whose config store notes what the host writes.
async fn servers() -> Result<(Servers, Books)> {
    let servers = Place::default().open().await?;
    let books = Books::before(servers.config.clone());
    let config = books.store();
    Ok((Servers { config, ..servers }, books))
}

async fn start(servers: &Servers) -> Result<World> {
    World::start_on(servers.clone(), |builder| builder).await
}

/// Returns when the Configurator says that it has so many objects.
async fn until_objects(client: &Client, name: &str, number: u64) -> Result<()> {
    let api: Api<ClusterConfigurator> = Api::all(client.clone());
    configurator_tests::world::until("the objects are counted", || async {
        let status = api.get(name).await?.status.unwrap_or_default();
        Ok(status.counts.is_some_and(|counts| counts.objects == number))
    })
    .await
}

async fn label(world: &World, api_version: &str, kind: &str, handled: &str) -> Result<()> {
    let patch = json!({"metadata": {"labels": {"handled": handled}}});
    let objects = world.objects(api_version, kind, "default").await?;
    let patch = Patch::Merge(&patch);
    objects
        .patch("one", &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_matches_again_stays_in_the_ledger() -> Result<()> {
    let (servers, books) = servers().await?;
    let world = start(&servers).await?;
    let put = json!({"requests": [{"name": "put", "put": {"key": "made", "value": "{run}"}}]});
    let mut configurator = scripted(
        "recorded",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"handled": "yes"}}}),
        put,
        json!({"configstore": [{"prefixes": [""], "verbs": ["get", "create", "update", "delete"]}]}),
    );
    let spec = &mut configurator["spec"];
    spec["deletion"] = json!({"by": "Ledger", "phases": [{"name": "gone", "handler": "root"}]});
    spec["parameters"]["gone"] = json!({"requests": [{"name": "remove", "remove": "made"}]});
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": "default", "labels": {"handled": "yes"}},
    });
    world.apply(&object).await?;
    world.apply(&configurator).await?;
    let is_made = async |is_there: bool| {
        let keys = servers.config.scan("basic/made").await?;
        anyhow::Ok(keys.is_empty() != is_there)
    };
    let until_made = async |is_there| {
        configurator_tests::world::until("the handler's key", || is_made(is_there)).await
    };
    until_made(true).await?;
    books.hold_removals();
    label(&world, "v1", "ConfigMap", "no").await?;
    until_made(false).await?;
    label(&world, "v1", "ConfigMap", "yes").await?;
    until_made(true).await?;
    world.settled(&["recorded"]).await?;
    books.release_removals();
    // The removal is carried out before the host ends.
    world.stop().await?;
    let recorded = servers.config.scan("ledger/").await?;
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    // So its deletion is noticed although no host runs.
    let client = servers.cluster.client.clone();
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::default_namespaced(client);
    maps.delete("one", &DeleteParams::default()).await?;
    let world = start(&servers).await?;
    until_made(false).await?;
    world
        .until("the ledger is empty", || async {
            Ok(servers.config.scan("ledger/").await?.is_empty())
        })
        .await?;
    world.stop().await
}

/// Sends once, and waits.
fn once_then_waits(place: &str) -> Value {
    let mut once = put("sent", "1");
    once["once"] = json!(true);
    let mut configurator = machine(json!({
        "state": {"in": place},
        "phases": [
            {"name": "Work", "onDone": "Done", "serial": [
                once,
                steps("pause", json!([{"wait": {"signals": ["go"]}}, {}])),
                put("after", "1"),
            ]},
            {"name": "Done", "terminal": true},
        ],
    }));
    configurator["spec"]["watch"]["labelSelector"] = json!({"matchLabels": {"handled": "yes"}});
    configurator
}

async fn keeps_its_state(place: &str) -> Result<()> {
    let (servers, books) = servers().await?;
    let world = start(&servers).await?;
    world.apply(&definition("Thing")).await?;
    let things = Things { world };
    let mut one = thing("one", json!({}));
    one["metadata"]["labels"] = json!({"handled": "yes"});
    things.world.apply(&one).await?;
    things.world.apply(&once_then_waits(place)).await?;
    things.until_key("sent").await?;
    things.world.settled(&["things"]).await?;
    things.drop_key("sent").await?;
    let client = things.world.client.clone();
    books.hold_removals();
    label(&things.world, "example.org/v1", "Thing", "no").await?;
    until_objects(&client, "things", 0).await?;
    label(&things.world, "example.org/v1", "Thing", "yes").await?;
    until_objects(&client, "things", 1).await?;
    things.world.settled(&["things"]).await?;
    books.release_removals();
    things.world.stop().await?;
    let world = start(&servers).await?;
    let things = Things { world };
    things.world.settled(&["things"]).await?;
    let go = json!({"signal": {"name": "go"}});
    assert_eq!(things.command("Signal", go).await?, "done");
    things.until_key("after").await?;
    assert_eq!(
        things.key("sent").await?,
        None,
        "what is sent once is not sent again"
    );
    // With the object its records go.
    things.delete().await?;
    things
        .world
        .until("nothing is left of it", || async {
            let mut keys = servers.config.scan("states/").await?;
            keys.extend(servers.config.scan("revisions/").await?);
            Ok(keys.is_empty())
        })
        .await?;
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_matches_again_keeps_its_state() -> Result<()> {
    keeps_its_state("ConfigStore").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_matches_again_keeps_the_revision_of_its_state() -> Result<()> {
    keeps_its_state("Status").await
}
