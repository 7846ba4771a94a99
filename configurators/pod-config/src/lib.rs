//! Composes the effective configuration of each Pod.
//!
//! A Pod is configured by annotations `config.configurator.dev/<key>: <value>`, on four layers. Where several have a
//! key, the later wins: its Namespace, its Node (labels, then annotations), its workload, the Pod itself.
//!
//! | phase | handler | does |
//! |---|---|---|
//! | root | [`root`](root::root) | asks for Node, Namespace, workload, and what is stored of the Pod |
//! | write | [`write-config`](write::write_config) | writes entry, app-conf and index; secret; ConfigMap |
//! | (deletion) | [`cleanup`](cleanup::cleanup) | asks what is stored under the Pod's name |
//! | (deletion) | [`delete-config`](cleanup::delete_config) | deletes it, unless a newer Pod of the name has it |
//!
//! Every handler is idempotent: asked again with the same input it asks for the same, and a second run of a Pod whose
//! layers have not changed writes nothing to the config store and applies an identical ConfigMap.

pub mod cleanup;
pub mod root;
pub mod write;

pub mod config_map;
pub mod layers;
pub mod names;
pub mod owner;
pub mod pod;
pub mod stored;

use configurator_sdk::Handler;

configurator_sdk::module! {
    handlers: [
        Handler::new("root", root::root).description("Asks for the Pod's Node, Namespace, workload and stored configuration."),
        Handler::new("write-config", write::write_config).description("Writes the Pod's effective configuration, its secret and its ConfigMap."),
        Handler::new("cleanup", cleanup::cleanup).description("Asks for what is stored of a Pod that is gone."),
        Handler::new("delete-config", cleanup::delete_config).description("Deletes what is stored of a Pod that is gone."),
    ],
}
