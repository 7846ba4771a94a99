//! A source of modules that a test changes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use configurator_guest::digest::Digest;
use configurator_host::module_source::{Fetched, ModuleSource, SourceError};
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
    pub fn with(module: Vec<u8>) -> Self {
        Self {
            held: Arc::new(Mutex::new(Held {
                changes: 0,
                module: Ok(module),
            })),
        }
    }

    /// Puts something else there, or has whoever asks told this.
    pub fn put(&self, module: Result<Vec<u8>, String>) {
        let mut held = self.held.lock().unwrap();
        held.changes += 1;
        held.module = module;
    }
}

#[async_trait]
impl ModuleSource for Shelf {
    async fn fetch(&self, _: &ModuleSpec) -> Result<Fetched, SourceError> {
        let held = self.held.lock().unwrap();
        let module = held.module.clone().map_err(SourceError::Unavailable)?;
        Ok(module.into())
    }

    async fn version(&self, _: &ModuleSpec) -> Result<Option<String>, SourceError> {
        Ok(Some(self.held.lock().unwrap().changes.to_string()))
    }

    fn interval(&self, _: &ModuleSpec) -> Duration {
        Duration::from_millis(1)
    }
}

/// A module that does the same and has another digest: with a section that nobody reads.
pub fn variant(module: &[u8], number: u8) -> Vec<u8> {
    let name = b"variant";
    let length = u8::try_from(name.len() + 2).unwrap();
    let mut bytes = module.to_vec();
    bytes.extend([0, length, length - 2]);
    bytes.extend(name);
    bytes.push(number);
    bytes
}

/// As the host writes it.
pub fn digest(module: &[u8]) -> String {
    Digest::of(module).to_string()
}
