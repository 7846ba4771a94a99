//! A loaded module.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use configurator_core::handler::ModuleDescription;

use crate::digest::Digest;
use crate::idle::IdleInstances;
use crate::v0_1::Pre;

/// A compiled and checked module. One of each digest is in memory, however many Configurators use it.
pub struct Module {
    pub(crate) facts: Facts,
    pub(crate) pre: Pre,
    /// Has instances of it that wait for a call.
    pub(crate) idle: Arc<IdleInstances>,
    /// The most memory that a call has had so far, in bytes.
    pub(crate) memory: AtomicU64,
}

/// The instances go with it.
impl Drop for Module {
    fn drop(&mut self) {
        self.idle.purge();
    }
}

/// What there is to know about a module.
pub(crate) struct Facts {
    pub(crate) digest: Digest,
    pub(crate) size: usize,
    pub(crate) version: String,
    pub(crate) imports: Vec<String>,
    pub(crate) description: ModuleDescription,
}

impl Module {
    /// SHA-256 of the component's bytes.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.facts.digest
    }

    /// What the module says of itself: never empty, and no two handlers of one name.
    #[must_use]
    pub const fn description(&self) -> &ModuleDescription {
        &self.facts.description
    }

    /// The names of its handlers, separated by commas, for messages.
    #[must_use]
    pub fn handler_names(&self) -> String {
        let handlers = &self.facts.description.handlers;
        let names: Vec<&str> = handlers.iter().map(|handler| &*handler.name).collect();
        names.join(", ")
    }

    /// Size of the component, in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.facts.size
    }

    /// What it imports, as written in the component: `configurator:handler/log@0.1.0`.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.facts.imports
    }

    /// The version of `configurator:handler` that it was built for: `0.1.0`.
    #[must_use]
    pub fn world_version(&self) -> &str {
        &self.facts.version
    }

    pub(crate) const fn pre(&self) -> &Pre {
        &self.pre
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("digest", self.digest())
            .field("version", &self.facts.version)
            .field("handlers", &self.handler_names())
            .finish_non_exhaustive()
    }
}
