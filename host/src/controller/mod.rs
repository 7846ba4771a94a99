//! Watches objects and drives their runs.
//!
//! A [`supervisor`] watches the Configurators and gives each a [`keeper`]; the keeper loads the module, keeps one
//! [`worker`] running and has its [`voice`] write the status; the worker watches the objects, asks the queue of `configurator-core`
//! whose turn it is, and has the [`driver`] take each run through its phases.

pub mod driver;
pub mod finalizer;
pub mod keeper;
pub mod parking;
pub mod report;
pub mod rights;
pub mod status;
pub mod supervisor;
pub mod voice;
pub mod watched;
pub mod worker;
