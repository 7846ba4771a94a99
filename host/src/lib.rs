//! The embeddable configurator runtime.
//!
//! A handler decides, a host does: [`host::Host`] watches what Configurators name, calls their handlers in
//! WebAssembly modules, and executes the requests that come back at the [`sinks`].

pub mod declaration;
pub mod host;
pub mod resource;
pub mod rights;
pub mod scope;

pub mod answers;
mod cipher;
pub mod controller;
pub mod declarative;
pub mod executor;
mod gather;
mod idempotency;
mod impersonation;
pub mod kubernetes_faults;
pub mod ledger;
mod readiness;
pub mod recording;
mod redaction;
pub mod seal;
mod sets;
pub mod shards;

pub mod clock;
pub mod cluster;
pub mod events;
pub mod metrics;
pub mod module_source;
#[cfg(any(feature = "http", feature = "oci"))]
pub mod network;
pub mod objects;
pub mod observer;
pub mod sinks;
pub mod suspect_requests;
pub mod tasks;
mod watched;

#[cfg(feature = "apiserver")]
pub mod simulator;

#[cfg(feature = "cli")]
pub mod cli;
