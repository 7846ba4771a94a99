//! The scenarios of modules that exist in every language: the same golden files for all of them.

use std::path::PathBuf;

use anyhow::Result;
use configurator_guest::options::GuestOptions;
use configurator_host::module_source::ModuleDirectory;
use configurator_host::simulator::Simulator;
use configurator_host::simulator::scenario::Scenario;
use configurator_tests::guests;
use configurator_tests::world::{Place, World, read};
use serde_json::Value;

/// Plays those of `workload-config` and of the language's example with the modules in this folder.
pub fn check(language: &str, modules: PathBuf) {
    let simulator = Simulator::with_options(GuestOptions {
        parallel_calls: 1,
        module_cache: Some(guests::cache().unwrap().join("modules")),
        ..GuestOptions::default()
    })
    .unwrap();
    let example = format!("examples/{language}-hello");
    let mut wrong = Vec::new();
    for (folder, at_least) in [("configurators/workload-config", 3), (&*example, 1)] {
        let files = Scenario::files(&guests::workspace().join(folder)).unwrap();
        assert!(files.len() >= at_least, "{folder} has lost scenarios");
        for file in files {
            let mut scenario = Scenario::read(&file).unwrap();
            scenario.modules.push(modules.clone());
            let played = simulator.play(&scenario).unwrap();
            for mistake in played.mistakes(&scenario).unwrap() {
                wrong.push(format!("{folder} {}: {mistake}", scenario.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What `workload-config` of this language makes of a real application: every key of the config store, with its value. Whose the key is, is
/// left out: objects have other uids each time.
pub async fn configured(language: &str, application: &[Value]) -> Result<Vec<(String, String)>> {
    let modules = ModuleDirectory::new(super::modules(language));
    let world = World::start_at(&Place::default(), |builder| builder.modules(modules)).await?;
    world.configure("workload-config", |_| {}).await?;
    for object in application {
        world.apply(object).await?;
    }
    world.settled(&["workload-config"]).await?;
    let mut keys = world.keys().await?;
    for (_, text) in &mut keys {
        let value: Value = serde_json::from_str(text)?;
        *text = value["value"].as_str().unwrap_or_default().to_owned();
    }
    world.stop().await?;
    Ok(keys)
}

/// The objects of a real application, where it lies beside the checkout.
pub fn application() -> Result<Option<Vec<Value>>> {
    let Some(manifest) = guests::shared_data("online-boutique.yaml") else {
        return Ok(None);
    };
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&read(&manifest)?)?;
    for object in &mut objects {
        object["metadata"]["namespace"] = "default".into();
    }
    Ok(Some(objects))
}
