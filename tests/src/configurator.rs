//! Configurators as tests declare them.

use serde_json::{Value, json};

/// A Configurator with one phase, `root`, of this module, for what `watch` names.
#[must_use]
pub fn configurator(name: &str, module: &str, watch: Value) -> Value {
    of(
        name,
        json!({
            "watch": watch,
            "module": {"file": module},
            "chain": {"phases": [{"name": "root"}]},
        }),
    )
}

/// One that does what the script says, as far as its capabilities go. The module `tests/modules/scripted` describes
/// scripts.
#[must_use]
pub fn scripted(name: &str, watch: Value, script: Value, capabilities: Value) -> Value {
    of(
        name,
        json!({
            "watch": watch,
            "module": {"file": "scripted.wasm"},
            "chain": {"phases": [{"name": "root"}]},
            "parameters": {"root": script},
            "capabilities": capabilities,
        }),
    )
}

/// Gives it a machine instead of its chain, with a phase `Working` that does what the script says, and then a terminal one.
pub fn make_machine(configurator: &mut Value, script: Value) {
    let spec = &mut configurator["spec"];
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("chain");
    }
    spec["machine"] = json!({
        "state": {"in": "ConfigStore"},
        "phases": [
            {"name": "Working", "handler": "root", "onDone": "Done", "onError": "Done"},
            {"name": "Done", "terminal": true},
        ],
    });
    spec["parameters"] = json!({"Working": script});
}

/// A Configurator of this specification.
#[must_use]
pub fn of(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "configurator.dev/v1alpha1",
        "kind": "ClusterConfigurator",
        "metadata": {"name": name},
        "spec": spec,
    })
}
