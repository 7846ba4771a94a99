//! Sets of objects whose handlers are nodes of a machine.

use anyhow::Result;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::scene::{Scene, after, entry, on_both};

/// Declares a machine: it comes up in phase `Creating`, and rests in phase `Running`, which has an upkeep or none.
pub async fn comes_up(scene: &Scene, upkeep: Option<&str>) -> Result<()> {
    let mut running = json!({"name": "Running", "stable": true});
    if let Some(upkeep) = upkeep {
        running["upkeep"] = json!(upkeep);
    }
    let creating =
        json!({"name": "Creating", "handler": "root", "onDone": "Running", "onError": "Broken"});
    let broken = json!({"name": "Broken", "stable": true});
    let script = json!({"desiredAt": "/data/set"});
    let parameters = json!({"Creating": script, "Running": script});
    declare(scene, json!([creating, running, broken]), parameters).await
}

/// Declares a machine with these phases.
async fn declare(scene: &Scene, phases: Value, parameters: Value) -> Result<()> {
    let change = |object: &mut Value| {
        let spec = object["spec"].as_object_mut().unwrap();
        spec.remove("chain");
        let machine = json!({"state": {"in": "ConfigMap"}, "phases": phases, "requeueAfter": "1s"});
        spec.insert("machine".into(), machine);
        spec.insert("parameters".into(), parameters);
    };
    scene.configure(change).await
}

/// Returns when an owner is in this phase.
async fn until_phase(scene: &Scene, owner: &str, phase: &str) -> Result<()> {
    let maps = scene.api("v1", "ConfigMap").await?;
    let phases = || async {
        let all = maps.list(&ListParams::default()).await?.items;
        let its = all.into_iter().filter(|map| {
            let owners = map.metadata.owner_references.iter().flatten();
            owners
                .into_iter()
                .any(|of| of.kind == "ConfigMap" && of.name == owner)
        });
        Ok::<Vec<Value>, anyhow::Error>(its.map(|map| map.data["data"]["phase"].clone()).collect())
    };
    let what = format!("{owner} is in phase {phase}");
    let waiting = scene.world.until(&what, || async {
        Ok(phases().await?.iter().any(|at| at == phase))
    });
    if let Err(error) = waiting.await {
        let report = scene.world.report();
        return Err(error.context(format!(
            "the phases are {:?}, the host {report:?}",
            phases().await?
        )));
    }
    Ok(())
}

/// An entry that is ready when its text is `ready`.
fn gate(name: &str, text: &str) -> Value {
    let mut entry = entry(name, text);
    entry["readyWhen"] = json!("object.data.text == 'ready'");
    entry
}

on_both!(
    /// A node is done when the members of its set are ready. In the phase that follows, the upkeep repairs them, and follows the owner.
    a_machine_has_a_set_and_keeps_it_up,
    async |scene: Scene| {
        comes_up(&scene, Some("root")).await?;
        let mut gated = gate("a", "no");
        gated["ignore"] = json!([".data.text"]);
        scene.owner("web", json!([gated, after("b", "1", &["a"])])).await?;
        scene.until_reason("web", "object.data.text == 'ready'").await?;
        until_phase(&scene, "web", "Creating").await?;
        assert!(scene.config_map("b").await?.is_none());
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"text": "ready"}})).await?;
        until_phase(&scene, "web", "Running").await?;
        scene.until_state("web", "Ready").await?;
        scene.meddle("v1", "ConfigMap", "b", json!({"data": {"text": "mine"}})).await?;
        scene.events("DriftRepaired").await?;
        assert_eq!(scene.config_map("b").await?.unwrap()["data"]["text"], "1");
        // What the owner says counts in this phase as well, and a restart changes nothing of that.
        let scene = scene.restart().await?;
        scene.owner("web", json!([entry("c", "1"), entry("b", "2")])).await?;
        scene.until_gone("a").await?;
        scene.until_state("web", "Ready").await?;
        // They do not depend on one another, so they are written in any order.
        let mut members = scene.members().await?;
        members.sort();
        assert_eq!(members, ["b", "c"]);
        scene.delete_owner("web").await?;
        scene.until_gone("web").await?;
        assert_eq!(scene.members().await?, [""; 0]);
        scene.world.stop().await
    }
);

on_both!(
    /// Without an upkeep, what others do to members is told, once, and left.
    without_an_upkeep_drift_is_told_and_left,
    async |scene: Scene| {
        comes_up(&scene, None).await?;
        scene.owner("web", json!([entry("a", "1"), entry("b", "1")])).await?;
        until_phase(&scene, "web", "Running").await?;
        scene.until_state("web", "Ready").await?;
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"text": "mine"}})).await?;
        scene.until_state("web", "Drifted").await?;
        let told = scene.events("Drifted").await?;
        let expected = format!(
            "ConfigMap {}/a was changed by others, and is left so, because the phase of the object has no upkeep",
            scene.name
        );
        assert_eq!(told, [expected]);
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "mine");
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"text": "1"}})).await?;
        scene.until_state("web", "Ready").await?;
        assert_eq!(scene.events("Drifted").await?.len(), 1);
        scene.world.stop().await
    }
);

on_both!(
    /// A node that waits for a set which is never ready is entered again when the owner changes.
    a_changed_owner_replaces_a_set_that_is_never_ready,
    async |scene: Scene| {
        comes_up(&scene, None).await?;
        scene.owner("web", json!([gate("a", "no"), entry("b", "1")])).await?;
        scene.until_reason("web", "object.data.text == 'ready'").await?;
        scene.owner("web", json!([gate("a", "ready"), entry("b", "1")])).await?;
        until_phase(&scene, "web", "Running").await?;
        assert_eq!(scene.config_map("a").await?.unwrap()["data"]["text"], "ready");
        scene.world.stop().await
    }
);

on_both!(
    /// A node whose host stops while members are not ready is entered again by the next host.
    a_node_that_waits_for_members_survives_its_host,
    async |scene: Scene| {
        comes_up(&scene, None).await?;
        let mut gated = gate("a", "no");
        gated["ignore"] = json!([".data.text"]);
        scene.owner("web", json!([gated, after("b", "1", &["a"])])).await?;
        scene.until_reason("web", "object.data.text == 'ready'").await?;
        let scene = scene.restart().await?;
        scene.meddle("v1", "ConfigMap", "a", json!({"data": {"text": "ready"}})).await?;
        until_phase(&scene, "web", "Running").await?;
        assert_eq!(scene.members().await?, ["a", "b"]);
        scene.world.stop().await
    }
);

on_both!(
    /// The timeout of a phase ends the wait for members, and what has been created stays for the next node.
    a_timeout_ends_the_wait_for_members,
    async |scene: Scene| {
        let creating = json!({
            "name": "Creating", "handler": "root", "timeout": "2s", "onDone": "Running", "onError": "Broken",
        });
        let script = json!({"desiredAt": "/data/set"});
        // The parameters of a phase are those of its upkeep.
        let broken = json!({
            "name": "Broken", "stable": true, "upkeep": "root", "parameters": {"script": script},
        });
        let phases = json!([creating, {"name": "Running", "terminal": true}, broken]);
        declare(&scene, phases, json!({"Creating": script})).await?;
        scene.owner("web", json!([gate("a", "no")])).await?;
        until_phase(&scene, "web", "Broken").await?;
        scene.until_reason("web", "object.data.text == 'ready'").await?;
        // The upkeep of the phase goes on with the set.
        scene.owner("web", json!([gate("a", "ready")])).await?;
        scene.until_state("web", "Ready").await?;
        scene.world.stop().await
    }
);

/// A node that returns a set of one ConfigMap.
fn returns(node: &str, member: &str) -> Value {
    let script = json!({"desired": {"entries": [entry(member, "1")]}});
    json!({"name": node, "handler": "root", "parameters": {"script": script}})
}

on_both!(
    /// Of nodes one after another, the later replaces the set. Of nodes side by side, only one may return it.
    a_later_node_replaces_the_set_and_one_beside_it_may_not,
    async |scene: Scene| {
        let ends = [json!({"name": "Running", "stable": true}), json!({"name": "Broken", "stable": true})];
        let serial = json!({
            "name": "Creating", "serial": [returns("first", "x"), returns("second", "y")],
            "onDone": "Running", "onError": "Broken",
        });
        declare(&scene, json!([serial, ends[0], ends[1]]), json!({})).await?;
        scene.owner("web", json!([])).await?;
        until_phase(&scene, "web", "Running").await?;
        assert_eq!(scene.members().await?, ["y"]);
        let parallel = json!({
            "name": "Creating", "parallel": [returns("first", "v"), returns("second", "w")],
            "onDone": "Running", "onError": "Broken",
        });
        declare(&scene, json!([parallel, ends[0], ends[1]]), json!({})).await?;
        scene.owner("shop", json!([])).await?;
        until_phase(&scene, "shop", "Broken").await?;
        let told = scene.events("StepEnded").await?;
        let is_told = |message: &String| message.contains("has returned the set of the object, and the node");
        assert!(told.iter().any(is_told), "{told:?}");
        scene.world.stop().await
    }
);

on_both!(
    /// A node with `once`, and the handler of an event, return no set.
    nodes_that_may_not_return_a_set_are_refused,
    async |scene: Scene| {
        let mut once = returns("first", "x");
        once["once"] = json!(true);
        let broken = json!({
            "name": "Broken", "stable": true, "events": [{"handler": "root", "to": "Creating"}],
        });
        let phases = json!([
            {"name": "Creating", "serial": [once], "onDone": "Running", "onError": "Broken"},
            {"name": "Running", "terminal": true}, broken,
        ]);
        let script = json!({"desired": {"entries": [entry("y", "1")]}});
        declare(&scene, phases, json!({"Broken": script})).await?;
        scene.owner("web", json!([])).await?;
        until_phase(&scene, "web", "Broken").await?;
        let told = scene.events("StepEnded").await?;
        assert!(told.iter().any(|message| message.contains("not valid in a node with `once`")), "{told:?}");
        assert_eq!(scene.members().await?, [""; 0]);
        scene.world.stop().await
    }
);
