//! Shows what runs do to whoever wants to see it: a terminal, the simulator, an embedder.

use std::sync::Arc;

use configurator_core::handler::{CallFault, HandlerOutput};
pub use configurator_core::machine::action::Notice as MachineNotice;
use configurator_core::plan::Plan;
use configurator_core::request::ObjectRef;
use configurator_core::result::RequestResult;
pub use configurator_core::run::RunEnd;
use configurator_core::run::{Call, Run};
use configurator_guest::module::Module;

/// Sees what runs do. Called on the tasks that drive them, so it must be quick; every method does nothing by default.
///
/// Outputs and results are shown as they are, secrets included: what an observer keeps or prints of them it must
/// redact.
pub trait RunObserver: Send + Sync + 'static {
    /// Whether a handler may be called. Where it may not, the run rests there for good: for one who counts calls and ends the host.
    fn may_call(&self, _run: &Run) -> bool {
        true
    }

    /// A handler is about to be called in this module.
    fn calling(&self, _run: &Run, _call: &Call, _module: &Module) {}

    /// A handler was called.
    fn called(&self, _run: &Run, _call: &Call, _result: &Result<HandlerOutput, CallFault>) {}

    /// The requests of an output were executed, or refused one by one. An output that is refused as a whole shows in the
    /// end of the run only.
    fn executed(&self, _run: &Run, _phase: &str, _plan: &Plan, _results: &[RequestResult]) {}

    /// A run ended or rests.
    fn ended(&self, _run: &Run, _end: &RunEnd) {}

    /// Something happened to the machine of an object.
    fn told(&self, _configurator: &ObjectRef, _object: &ObjectRef, _notice: &MachineNotice) {}

    /// Something happened that concerns a whole Configurator.
    fn noticed(&self, _configurator: &ObjectRef, _notice: &Notice) {}
}

/// Something that concerns a whole Configurator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Its module is being fetched and compiled.
    Loading {
        /// The module's source.
        module: String,
    },
    /// It runs.
    Started {
        /// The module's digest.
        digest: String,
        /// How many objects exist.
        objects: usize,
    },
    /// Runs that begin are of another module than those before.
    Swapped {
        /// The digest of the module before.
        before: String,
        /// That of the new one.
        digest: String,
    },
    /// A canary started: new runs of some objects are of another module.
    CanaryStarted {
        /// The digest of the canary.
        digest: String,
        /// The percentage of objects that it handles.
        percent: u8,
    },
    /// The canary was rolled back: new runs are of the stable module.
    RolledBack {
        /// The digest of the canary.
        digest: String,
        /// Why.
        message: String,
    },
    /// It cannot run, or its new version cannot.
    Refused {
        /// One CamelCase word.
        reason: String,
        /// What is wrong.
        message: String,
    },
    /// Every object that existed at start has settled.
    Bootstrapped {
        /// How many objects there are.
        objects: usize,
    },
    /// It waits for something outside.
    Waiting {
        /// For what.
        message: String,
    },
    /// It is gone.
    Stopped,
}

/// Sees nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl RunObserver for NoObserver {}

/// An observer that is shared.
pub type SharedObserver = Arc<dyn RunObserver>;
