//! The host's own writes carry the fences of its shards.

use anyhow::Result;
use configurator_core::layers::Write;
use configurator_tests::books::Books;
use configurator_tests::machine::definition;
use configurator_tests::world::{apply, until};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use serde_json::json;

use crate::fleet::Fleet;

#[tokio::test(start_paused = true)]
async fn every_transaction_of_the_bookkeeping_carries_a_fence() -> Result<()> {
    let mut books = None;
    let mut fleet = Fleet::open(2).await?.with_config_store(|inner| {
        let before = Books::before(inner);
        let store = before.store();
        books = Some(before);
        store
    });
    let books = books.unwrap();
    fleet.join("a").await?;
    fleet.join("b").await?;
    fleet.shared_out().await?;
    let client = fleet.client();
    apply(&client, &definition("Thing")).await?;
    let machine = json!({
        "apiVersion": "configurator.dev/v1alpha1",
        "kind": "ClusterConfigurator",
        "metadata": {"name": "things"},
        "spec": {
            "watch": {"apiVersion": "example.org/v1", "kind": "Thing"},
            "module": {"file": "scripted.wasm"},
            "machine": {
                "state": {"in": "ConfigStore"},
                "phases": [
                    {"name": "Work", "onDone": "Done", "serial": [
                        {"name": "step", "handler": "root", "parameters": {"script": {}}},
                    ]},
                    {"name": "Done", "terminal": true},
                ],
            },
        },
    });
    apply(&client, &machine).await?;
    for number in 0..6 {
        let thing = json!({
            "apiVersion": "example.org/v1", "kind": "Thing",
            "metadata": {"name": format!("thing-{number}"), "namespace": "default"},
        });
        apply(&client, &thing).await?;
    }
    fleet.make(6).await?;
    fleet.done().await?;
    let stored = |prefix: &str, number: usize| {
        let is_put = |(write, _): &(Write, usize)| matches!(write, Write::Put(key, _) if key.starts_with(prefix));
        let keys: std::collections::BTreeSet<String> = books
            .written()
            .iter()
            .filter(|written| is_put(written))
            .filter_map(|(write, _)| match write {
                Write::Put(key, _) => Some(key.clone()),
                _ => None,
            })
            .collect();
        keys.len() >= number
    };
    fleet
        .until("states and records are written", || {
            stored("revisions/", 6) && stored("ledger/", 6)
        })
        .await?;
    // Objects go while hosts run, while none does, and with their Configurators.
    let things: Api<DynamicObject> =
        configurator_host::objects::api(&client, "example.org/v1", "Thing", "default").await?;
    things.delete("thing-0", &DeleteParams::default()).await?;
    fleet.delete("object-0").await?;
    fleet.gone("object-0").await?;
    fleet.leave("a").await?;
    fleet.leave("b").await?;
    things.delete("thing-1", &DeleteParams::default()).await?;
    fleet.delete("object-1").await?;
    fleet.join("c").await?;
    fleet.shared_out().await?;
    fleet.gone("object-1").await?;
    let left = async |prefix: &str| anyhow::Ok(books.kept(prefix).await?.len());
    until("what went is removed", async || {
        Ok(left("revisions/").await? == 4 && left("ledger/").await? == 4)
    })
    .await?;
    let configurators: Api<configurator_host::resource::ClusterConfigurator> =
        Api::all(client.clone());
    configurators
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    until("the ledger is removed", async || {
        Ok(left("ledger/").await? == 0)
    })
    .await?;
    fleet.stop().await?;
    let unfenced: Vec<Write> = books
        .written()
        .into_iter()
        .filter(|(_, fences)| *fences == 0)
        .map(|(write, _)| write)
        // A fence is raised on the one that stood before.
        .filter(|write| !matches!(write, Write::Put(key, _) if key.starts_with("fences/")))
        .collect();
    assert_eq!(unfenced, []);
    Ok(())
}
