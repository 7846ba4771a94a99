//! What a module is made of, before it is compiled.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::digest::Digest;

/// The bytes of a component, with their digest: it is computed once, and is always that of these bytes. A clone shares them.
#[derive(Clone, PartialEq, Eq)]
pub struct ModuleBytes {
    digest: Digest,
    bytes: Arc<Vec<u8>>,
}

impl ModuleBytes {
    /// SHA-256 of the bytes.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }
}

impl Deref for ModuleBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Vec<u8>> for ModuleBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            digest: Digest::of(&bytes),
            bytes: Arc::new(bytes),
        }
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for ModuleBytes {
    /// Of a copy of these bytes.
    fn from(bytes: &T) -> Self {
        bytes.as_ref().to_vec().into()
    }
}

impl fmt::Debug for ModuleBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, {}", self.bytes.len(), self.digest)
    }
}
