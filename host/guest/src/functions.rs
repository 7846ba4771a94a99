//! Machine code of single functions, for modules that have most of theirs in common.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use wasmtime::CacheStore;

/// The most bytes that are kept. The runtimes of JavaScript and Python have 5 and 35 MB.
const MAX_BYTES: usize = 256 << 20;

/// Functions that were compiled, in memory: of a module that is built anew, only what has changed is compiled. That is for who works on a
/// module; modules of a language with a runtime gain most, because the runtime never changes. A clone is the same.
#[derive(Debug, Clone, Default)]
pub struct CompiledFunctions {
    store: Arc<Store>,
}

/// What the compiler asks and tells.
#[derive(Default)]
struct Store(RwLock<Functions>);

#[derive(Default)]
struct Functions {
    /// By a hash of all that they are made of; so none is ever taken for another.
    compiled: HashMap<Vec<u8>, Vec<u8>>,
    bytes: usize,
}

impl CompiledFunctions {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.read().compiled.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn store(&self) -> Arc<dyn CacheStore> {
        Arc::clone(&self.store) as Arc<dyn CacheStore>
    }
}

impl Store {
    fn read(&self) -> RwLockReadGuard<'_, Functions> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheStore for Store {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        self.read().compiled.get(key).cloned().map(Cow::Owned)
    }

    fn insert(&self, key: &[u8], function: Vec<u8>) -> bool {
        let mut functions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let size = key.len().saturating_add(function.len());
        if functions.bytes.saturating_add(size) > MAX_BYTES {
            // What is in use comes again with the next module; to know it would cost more than it saves.
            *functions = Functions::default();
        }
        functions.bytes = functions.bytes.saturating_add(size);
        functions.compiled.insert(key.to_vec(), function);
        true
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} functions", self.read().compiled.len())
    }
}
