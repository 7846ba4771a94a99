//! The module whose handlers a run calls.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The module that a run began on. It is chosen once, and kept to the run's end whatever is swapped meanwhile, so that no run mixes two.
///
/// What it is to the host is not looked at here; it lives as long as some run holds it.
#[derive(Clone)]
pub struct RunModule {
    digest: Arc<str>,
    held: Arc<dyn Any + Send + Sync>,
}

impl RunModule {
    /// A module of the host's, by its digest.
    #[must_use]
    pub fn new<M: Any + Send + Sync>(digest: &str, module: Arc<M>) -> Self {
        Self {
            digest: digest.into(),
            held: module,
        }
    }

    /// `sha256:` and 64 hexadecimal digits; empty where no module is behind it.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What the host gave, where it is of this type.
    #[must_use]
    pub fn get<M: Any + Send + Sync>(&self) -> Option<Arc<M>> {
        Arc::clone(&self.held).downcast().ok()
    }
}

/// No module: for what decides without one.
impl Default for RunModule {
    fn default() -> Self {
        Self::new("", Arc::new(()))
    }
}

impl fmt::Debug for RunModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.digest)
    }
}
