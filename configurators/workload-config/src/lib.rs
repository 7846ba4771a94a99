//! Configures Deployments in batches.
//!
//! Each Deployment gets an entry in the config store: what it runs (replicas, service account, and of each container the
//! image, ports and names of environment variables), and its configuration from annotations
//! `config.configurator.dev/<key>: <value>`, its own over those of its Namespace.
//!
//! | phase | handler | does, for a whole batch |
//! |---|---|---|
//! | root | [`root`](root::root) | asks for each Namespace once, and for the entry of each Deployment |
//! | write | [`write`](write::write) | writes the entries that have changed |
//! | (deletion) | [`cleanup`](cleanup::cleanup) | deletes the entries |
//!
//! Every request about one Deployment says so (`of`), so a failure is charged to it alone and the others of the batch are
//! done. Every handler is idempotent, and a Deployment whose entry is as it should be costs one read and no write.

pub mod cleanup;
pub mod root;
pub mod write;

pub mod deployment;
pub mod summary;

use configurator_sdk::{Accepts, Handler};

configurator_sdk::module! {
    handlers: [
        Handler::new("root", root::root).accepts(Accepts::Batch).description("Asks for the Namespaces and stored configuration of Deployments."),
        Handler::new("write", write::write).accepts(Accepts::Batch).description("Writes the configuration of Deployments that has changed."),
        Handler::new("cleanup", cleanup::cleanup).accepts(Accepts::Batch).description("Deletes the configuration of Deployments that are gone."),
    ],
}
