//! The order in which owners have their turns.

use std::collections::HashMap;
use std::time::Duration;

/// Owners whose last turn is remembered. One that is forgotten goes first, like a new one.
const REMEMBERED: usize = 1024;
/// What a turn counts at its start, before it is known how long it lasts, and at least.
const LEAST: Duration = Duration::from_micros(10);

/// Who does a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Identifies it.
    pub id: u128,
    /// Identifies the owners that it shares a part of the time with, such as those of a namespace.
    pub group: u128,
    /// The size of that part, in relation to those of other groups that wait. At least 1.
    pub weight: u32,
}

impl Default for Owner {
    fn default() -> Self {
        0.into()
    }
}

impl From<u128> for Owner {
    /// An owner in a group of its own, with the weight 1.
    fn from(id: u128) -> Self {
        Self {
            id,
            group: id,
            weight: 1,
        }
    }
}

/// Decides whose turn is next.
///
/// Groups that wait get time in proportion to their weights, whatever the number of their owners. A group that had nothing to do does not
/// save time up. Within a group, the owner whose last turn was longest ago is next, so an owner with much to do keeps none of another
/// waiting for more than one turn.
#[derive(Default)]
pub struct Owners {
    /// Counts turns.
    turns: u64,
    last: HashMap<u128, u64>,
    /// The time that each group has had, in nanoseconds divided by its weight.
    had: HashMap<u128, u64>,
    /// The time of the group that had the last turn, when this began. What a group has less than that is no longer its due.
    now: u64,
}

impl Owners {
    /// Returns what decides who is next: the least comes first.
    #[must_use]
    pub fn order(&self, owner: Owner) -> (u64, u64) {
        let last = self.last.get(&owner.id).copied().unwrap_or(0);
        (self.had(owner), last)
    }

    /// Records that a turn of this owner begins.
    pub fn begin(&mut self, owner: Owner) {
        self.turns = self.turns.saturating_add(1);
        self.now = self.had(owner);
        self.add(owner, LEAST);
        forget(&mut self.last, owner.id);
        self.last.insert(owner.id, self.turns);
    }

    /// Records that a turn of this owner ends, after this time.
    pub fn end(&mut self, owner: Owner, lasted: Duration) {
        self.add(owner, lasted.saturating_sub(LEAST));
    }

    /// Returns the time that the owner's group has had.
    fn had(&self, owner: Owner) -> u64 {
        let had = self.had.get(&owner.group).copied().unwrap_or(0);
        had.max(self.now)
    }

    fn add(&mut self, owner: Owner, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let had = self
            .had(owner)
            .saturating_add(nanos / u64::from(owner.weight.max(1)));
        forget(&mut self.had, owner.group);
        self.had.insert(owner.group, had);
    }
}

/// Makes room for this one, which may be there already, by forgetting the one with the least number.
fn forget(known: &mut HashMap<u128, u64>, new: u128) {
    if known.len() >= REMEMBERED && !known.contains_key(&new) {
        let least = known.iter().min_by_key(|(_, number)| **number);
        if let Some(least) = least.map(|(id, _)| *id) {
            known.remove(&least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives turns of these lengths, in milliseconds, to owners that always have work, for this time in all. Returns the time of each.
    fn shared(owners: &[(Owner, u64)], millis: u64) -> Vec<u64> {
        let mut order = Owners::default();
        let mut had = vec![0; owners.len()];
        while had.iter().sum::<u64>() < millis {
            let next = owners.iter().enumerate();
            let next = next.min_by_key(|(at, (owner, _))| (order.order(*owner), *at));
            let (at, (owner, lasts)) = next.unwrap();
            order.begin(*owner);
            order.end(*owner, Duration::from_millis(*lasts));
            had[at] += lasts;
        }
        had
    }

    fn owner(id: u128, group: u128, weight: u32) -> Owner {
        Owner { id, group, weight }
    }

    #[test]
    fn groups_have_time_in_proportion_to_their_weights() {
        let one = (owner(1, 10, 1), 1);
        let three = (owner(2, 20, 3), 1);
        assert_eq!(shared(&[one, three], 400), [100, 300]);
        // Whatever the length of their turns, and the number of their owners.
        let long = (owner(2, 20, 3), 30);
        assert_eq!(shared(&[one, long], 4000), [1000, 3000]);
        let others = [one, (owner(3, 10, 1), 1), (owner(4, 10, 1), 1), three];
        assert_eq!(shared(&others, 1200), [100, 100, 100, 900]);
    }

    #[test]
    fn a_group_that_was_away_has_saved_nothing_up() {
        let (busy, away) = (owner(1, 1, 1), owner(2, 2, 1));
        let mut order = Owners::default();
        for _ in 0..100 {
            order.begin(busy);
            order.end(busy, Duration::from_millis(1));
        }
        let mut turns = [0; 2];
        for _ in 0..100 {
            let is_busy = order.order(busy) < order.order(away);
            let next = if is_busy { busy } else { away };
            order.begin(next);
            order.end(next, Duration::from_millis(1));
            turns[usize::from(is_busy)] += 1;
        }
        assert_eq!(turns, [50, 50]);
    }

    #[test]
    fn the_owner_whose_turn_was_longest_ago_is_forgotten_for_a_new_one() {
        let mut owners = Owners::default();
        let last = |owners: &Owners, id| owners.order(owner(id, 0, 1)).1;
        let known = REMEMBERED as u128;
        (0..known).for_each(|id| owners.begin(owner(id, 0, 1)));
        owners.begin(owner(0, 0, 1));
        assert_eq!(
            (last(&owners, 0), last(&owners, 1)),
            (REMEMBERED as u64 + 1, 2)
        );
        owners.begin(owner(known, 0, 1));
        assert_eq!((last(&owners, 1), last(&owners, 2)), (0, 3));
    }
}
