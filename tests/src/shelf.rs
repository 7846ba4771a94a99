//! A source of modules that a test changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use configurator_host::module_source::{Fetched, ModulePolicies, ModuleSource, SourceError};
use configurator_host::resource::ModuleSpec;

/// Has one module, whatever is asked for. Cloning shares it.
#[derive(Clone)]
pub struct Shelf {
    held: Arc<Mutex<Held>>,
}

struct Held {
    changes: u64,
    module: Result<Vec<u8>, String>,
}

impl Shelf {
    /// One with this module on it.
    #[must_use]
    pub fn with(module: Vec<u8>) -> Self {
        Self {
            held: Arc::new(Mutex::new(Held {
                changes: 0,
                module: Ok(module),
            })),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something else there, or has whoever asks told this.
    pub fn put(&self, module: Result<Vec<u8>, String>) {
        let mut held = self.held();
        held.changes += 1;
        held.module = module;
    }
}

#[async_trait]
impl ModuleSource for Shelf {
    async fn fetch(&self, _: &ModuleSpec, _: &ModulePolicies) -> Result<Fetched, SourceError> {
        let held = self.held();
        let module = held.module.clone().map_err(SourceError::Unavailable)?;
        Ok(module.into())
    }

    async fn version(
        &self,
        _: &ModuleSpec,
        _: &ModulePolicies,
    ) -> Result<Option<String>, SourceError> {
        Ok(Some(self.held().changes.to_string()))
    }

    fn interval(&self, _: &ModuleSpec) -> Duration {
        Duration::from_millis(1)
    }
}
