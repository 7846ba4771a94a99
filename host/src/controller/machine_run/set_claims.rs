//! The nodes of a phase that have returned a set.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use configurator_core::fault::{Fault, FaultKind};

/// The nodes of the current phase that have returned a set. An object has one set, and a later node replaces it; of nodes side by side,
/// neither is later.
#[derive(Debug, Default)]
pub(crate) struct SetClaims(Mutex<BTreeSet<String>>);

/// The right of one node to return the object's set.
#[derive(Debug)]
pub(crate) struct SetClaim {
    pub(super) claims: Arc<SetClaims>,
    /// The path of the node.
    pub(super) path: String,
    /// The paths of the nodes that may have their turns at the same time.
    pub(super) beside: Vec<String>,
}

impl SetClaim {
    /// Takes note that the node has returned a set.
    ///
    /// # Errors
    /// When a node beside it has.
    pub(crate) fn take(&self) -> Result<(), Fault> {
        let claims = self.claims.0.lock();
        let mut claims = claims.unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = self.beside.iter().find(|path| claims.contains(*path)) {
            return Err(Fault::new(
                FaultKind::UnsupportedResourceOperation,
                format!(
                    "the output asks for too much: the node {other:?} has returned the set of the object, and the node {:?} runs beside it; return the whole set in one of them, or have them run one after another",
                    self.path
                ),
            ));
        }
        claims.insert(self.path.clone());
        Ok(())
    }
}

impl SetClaims {
    /// Whether no node has returned a set.
    pub(super) fn is_empty(&self) -> bool {
        let claims = self.0.lock();
        claims.unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Another phase begins.
    pub(super) fn clear(&self) {
        let claims = self.0.lock();
        claims.unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_side_by_side_do_not_both_return_a_set() {
        let claims = Arc::<SetClaims>::default();
        let claim = |path: &str, beside: &[&str]| {
            let claim = SetClaim {
                claims: claims.clone(),
                path: path.to_owned(),
                beside: beside.iter().copied().map(str::to_owned).collect(),
            };
            claim.take().is_ok()
        };
        assert!(claim("Work/a", &["Work/b"]));
        assert!(claim("Work/a", &["Work/b"]), "it is entered again");
        assert!(!claim("Work/b", &["Work/a"]));
        assert!(claim("Work/c", &[]), "it comes after both");
        claims.clear();
        assert!(claim("Work/b", &["Work/a"]));
    }
}
