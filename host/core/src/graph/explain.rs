//! The reason that an entry is not ready, for people.

use super::Graph;
use super::plan::{EntryState, Plan};

/// The most names of entries in a reason. Of a longer path, those in the middle are left out.
const MAX_NAMES: usize = 6;

impl Plan {
    /// Returns why an entry is not ready. `None`: it is ready, or has no such index.
    ///
    /// An entry that waits for others names them up to the one that holds up the rest: `waits for web → db: 1 of 3 replicas are ready`.
    #[must_use]
    pub fn reason(&self, graph: &Graph, index: usize) -> Option<String> {
        let mut names = Vec::new();
        let mut index = index;
        // No path is longer.
        for _ in 0..=self.entries.len() {
            let reason = match self.entries.get(index)? {
                EntryState::Blocked { by } => {
                    let name = graph.entries().get(*by)?.name.as_str();
                    if names.len() == MAX_NAMES {
                        names.pop();
                        if let Some(last) = names.last_mut() {
                            *last = "…";
                        }
                    }
                    names.push(name);
                    index = *by;
                    continue;
                }
                EntryState::Ready if names.is_empty() => return None,
                EntryState::Ready => "it is ready",
                EntryState::Unknown => "the host has not read it yet",
                EntryState::Writing => "it is being written",
                EntryState::Waiting(reason) | EntryState::Failed(reason) => reason,
            };
            return Some(match names.as_slice() {
                [] => reason.to_owned(),
                names => format!("waits for {}: {reason}", names.join(" → ")),
            });
        }
        None
    }
}
