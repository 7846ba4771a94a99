//! Watches objects and drives their runs.
//!
//! A [`supervisor`] watches the Configurators and gives each a [`keeper`]; the keeper loads the module, keeps one
//! [`worker`] running and has its [`voice`] write the status; the worker watches the objects, asks the queue of `configurator-core`
//! whose turn it is, and has the [`driver`] take each run through its phases. In a machine, a run is a turn of one object's
//! machine: `machine_run` carries out what it decides, and has the driver take each entry of a handler through.

mod awaited;
pub mod call_mode;
pub mod canary;
mod cleanup;
pub(crate) mod commands;
pub mod driver;
mod earlier;
pub mod finalizer;
mod inbox;
pub mod keeper;
mod kinds;
mod machine_run;
mod mailbox;
pub(crate) mod namespace_changes;
pub(crate) mod namespaces;
mod notices;
pub(crate) mod parameters;
pub mod parking;
pub(crate) mod partitions;
pub mod pending;
mod places;
pub(crate) mod policies;
pub(crate) mod quota_usage;
pub(crate) mod rbac_changes;
pub mod report;
pub(crate) mod requesters;
pub mod rights;
pub mod rollout;
mod round_robin;
pub(crate) mod run_rates;
pub(crate) mod state_books;
mod state_schema;
pub(crate) mod state_store;
pub mod status;
pub mod supervisor;
mod sweep;
pub mod voice;
pub mod worker;
