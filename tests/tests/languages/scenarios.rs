//! The scenarios of modules that exist in every language: the same golden files for all of them.

use std::path::PathBuf;

use configurator_guest::options::GuestOptions;
use configurator_host::simulator::Simulator;
use configurator_host::simulator::scenario::Scenario;
use configurator_tests::guests;

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
        let scenarios = Scenario::find(&guests::workspace().join(folder)).unwrap();
        assert!(scenarios.len() >= at_least, "{folder} has lost scenarios");
        for mut scenario in scenarios {
            scenario.modules.push(modules.clone());
            let played = simulator.play(&scenario).unwrap();
            for mistake in played.mistakes(&scenario).unwrap() {
                wrong.push(format!("{folder} {}: {mistake}", scenario.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
