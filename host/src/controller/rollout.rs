//! Which module an object's runs are of. It is swapped while runs are under way.

use std::sync::{Arc, PoisonError, RwLock};

use configurator_core::module::RunModule;
use configurator_guest::module::Module;

/// The module of a Configurator. Who begins a run asks once, and keeps what it gets.
pub struct Rollout {
    current: RwLock<Current>,
}

#[derive(Clone)]
struct Current {
    module: Arc<Module>,
    handle: RunModule,
}

impl Rollout {
    /// This module for everything.
    #[must_use]
    pub fn new(module: Arc<Module>) -> Self {
        Self {
            current: RwLock::new(Current::of(module)),
        }
    }

    /// That of a run that begins now.
    #[must_use]
    pub fn choose(&self) -> RunModule {
        self.current().handle
    }

    /// That of a run that was chosen for it; where none was, the one of runs that begin now.
    #[must_use]
    pub fn chosen(&self, module: &RunModule) -> Arc<Module> {
        module.get().unwrap_or_else(|| self.current().module)
    }

    /// Every run that begins from now on is of this module.
    pub fn swap(&self, module: Arc<Module>) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Current::of(module);
    }

    fn current(&self) -> Current {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Current {
    fn of(module: Arc<Module>) -> Self {
        Self {
            handle: RunModule::new(&module.digest().to_string(), module.clone()),
            module,
        }
    }
}
