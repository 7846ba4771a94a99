//! The order in which owners have their turns.

use std::collections::HashMap;

/// Owners whose last turn is remembered. One that is forgotten goes first, like a new one.
const REMEMBERED: usize = 1024;

/// Remembers when each owner had its last turn. The owner whose last turn was longest ago is next, so an owner with much to do keeps
/// none of another waiting for more than one turn.
#[derive(Default)]
pub struct OwnerTurns {
    /// Counts turns.
    turns: u64,
    last: HashMap<u128, u64>,
}

impl OwnerTurns {
    /// Returns the number of the owner's last turn; 0 if it is not remembered.
    #[must_use]
    pub fn last(&self, owner: u128) -> u64 {
        self.last.get(&owner).copied().unwrap_or(0)
    }

    /// Records a turn of this owner.
    pub fn record(&mut self, owner: u128) {
        self.turns = self.turns.saturating_add(1);
        if self.last.len() >= REMEMBERED && !self.last.contains_key(&owner) {
            let oldest = self.last.iter().min_by_key(|(_, turn)| **turn);
            if let Some(oldest) = oldest.map(|(owner, _)| *owner) {
                self.last.remove(&oldest);
            }
        }
        self.last.insert(owner, self.turns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_whose_turn_was_longest_ago_is_forgotten_for_a_new_one() {
        let mut turns = OwnerTurns::default();
        let owners = REMEMBERED as u128;
        (0..owners).for_each(|owner| turns.record(owner));
        turns.record(0);
        assert_eq!((turns.last(0), turns.last(1)), (REMEMBERED as u64 + 1, 2));
        turns.record(owners);
        assert_eq!((turns.last(1), turns.last(2)), (0, 3));
    }
}
