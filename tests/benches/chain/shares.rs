//! How two namespaces share the time of modules, if each always has more to do than there is time for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use configurator_core::handler::{CallFault, HandlerOutput};
use configurator_core::run::{Call, Run};
use configurator_host::observer::RunObserver;
use configurator_tests::configurator;
use configurator_tests::world::{Place, World};
use serde_json::json;

/// The namespaces, their weights, and the number of their Configurators, which makes no difference.
const NAMESPACES: [(&str, u32, usize); 2] = [("light", 1, 3), ("heavy", 3, 1)];
/// Objects of each Configurator, which are handled all the time: so many that calls always wait, although objects are stored between calls.
const OBJECTS: usize = 64;
/// Steps of each call: about 5 ms. So the time is that of modules and not of the host, and no call is a long one.
const STEPS: u64 = 10_000_000;
const BEFORE: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(20);

/// Counts calls by namespace.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<BTreeMap<String, u64>>>);

impl RunObserver for Calls {
    fn called(&self, run: &Run, _: &Call, _: &Result<HandlerOutput, CallFault>) {
        let namespace = run.configurator().key.namespace.clone();
        *self.0.lock().unwrap().entry(namespace).or_default() += 1;
    }
}

/// Prints the parts of the time, and adds the largest deviation from the weights to the figures.
pub async fn measure(figures: &mut Vec<(String, f64)>) -> Result<()> {
    let calls = Calls::default();
    let observer = calls.clone();
    let world = World::start_at(&Place::default(), |builder| builder.observer(observer)).await?;
    for (name, weight, configurators) in NAMESPACES {
        let labels = json!({"part": name});
        world
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}))
            .await?;
        let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch"]});
        world
            .apply(&json!({
                "apiVersion": "configurator.dev/v1alpha1", "kind": "ConfiguratorPolicy",
                "metadata": {"name": name},
                "spec": {
                    "namespaceSelector": {"matchLabels": labels},
                    "capabilities": {"kubernetes": [rule]},
                    "weight": weight,
                },
            }))
            .await?;
        for number in 0..OBJECTS {
            let metadata = json!({"name": format!("busy-{number}"), "namespace": name});
            world
                .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
                .await?;
        }
        for number in 0..configurators {
            let watch = json!({"apiVersion": "v1", "kind": "ConfigMap"});
            let script = json!({"compute": STEPS, "again": true});
            let name_of = format!("busy-{number}");
            let mut busy = configurator::scripted(&name_of, watch, json!({}), json!({}));
            configurator::make_machine(&mut busy, script);
            busy["spec"]["concurrency"] = OBJECTS.into();
            busy["kind"] = "Configurator".into();
            busy["metadata"]["namespace"] = name.into();
            world.apply(&busy).await?;
        }
    }
    let count = || calls.0.lock().unwrap().clone();
    tokio::time::sleep(BEFORE).await;
    let before = count();
    tokio::time::sleep(MEASURED).await;
    let after = count();
    world.kill().await?;
    let had = |name: &str| {
        let of = |counts: &BTreeMap<String, u64>| counts.get(name).copied().unwrap_or_default();
        of(&after).saturating_sub(of(&before)) as f64
    };
    let all: f64 = NAMESPACES.iter().map(|(name, ..)| had(name)).sum();
    let weights: u32 = NAMESPACES.iter().map(|(_, weight, _)| weight).sum();
    println!(
        "| namespace | weight | Configurators | calls | part | deviation |\n|---|---|---|---|---|---|"
    );
    let mut worst: f64 = 0.0;
    for (name, weight, configurators) in NAMESPACES {
        let part = had(name) / all;
        let due = f64::from(weight) / f64::from(weights);
        let deviation = (part / due - 1.0).abs();
        worst = worst.max(deviation);
        println!(
            "| {name} | {weight} | {configurators} | {} | {:.1} % | {:.1} % |",
            had(name),
            part * 100.0,
            deviation * 100.0
        );
    }
    figures.push((
        "largest deviation of namespaces from their weights, in percent".to_owned(),
        worst * 100.0,
    ));
    Ok(())
}
