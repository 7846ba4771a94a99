//! Decides the order of turns.

use std::collections::HashMap;
use std::time::Duration;

/// The number of owners and groups that are remembered. A forgotten one counts as new.
const REMEMBERED: usize = 1024;
/// The number of turns since the last one of another owner, up to which that owner counts as active.
const RECENT: u64 = 64;
/// The time that a turn counts for at least, and when it begins: its duration is not known yet.
const LEAST: Duration = Duration::from_micros(10);

/// Whose work it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Identifies the owner.
    pub id: u128,
    /// Identifies the group that shares its time, such as the Configurators of a namespace.
    pub group: u128,
    /// The share of the group relative to other groups that wait. At least 1.
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
/// Groups that wait get time in proportion to their weights, regardless of the number of their owners. A group without work does not save
/// time up. In a group, the owner whose last turn was longest ago is next, so an owner with much work keeps no other waiting for more than
/// one turn.
#[derive(Default)]
pub struct Owners {
    /// Counts turns.
    turns: u64,
    /// The owner of the last turn.
    latest: Option<u128>,
    /// The number of the last turn of any other owner.
    other: Option<u64>,
    last: HashMap<u128, u64>,
    /// The time that each group has used, in nanoseconds divided by its weight.
    used: HashMap<u128, u64>,
    /// What the group of the last turn had used when that began. Every group counts as having used this much.
    virtual_time: u64,
}

impl Owners {
    /// Returns the rank of an owner: the lowest is next.
    #[must_use]
    pub fn rank(&self, owner: Owner) -> (u64, u64) {
        let last = self.last.get(&owner.id).copied().unwrap_or(0);
        (self.used_by(owner), last)
    }

    /// Tells whether another owner had a turn recently.
    #[must_use]
    pub fn has_rivals(&self, owner: Owner) -> bool {
        match self.latest {
            Some(latest) if latest != owner.id => true,
            _ => self.other.is_some_and(|other| self.turns - other <= RECENT),
        }
    }

    /// Records the beginning of a turn.
    pub fn begin(&mut self, owner: Owner) {
        if self.latest.is_some_and(|latest| latest != owner.id) {
            self.other = Some(self.turns);
        }
        self.latest = Some(owner.id);
        self.turns = self.turns.saturating_add(1);
        self.virtual_time = self.used_by(owner);
        self.add(self.virtual_time, owner, LEAST);
        forget(&mut self.last, owner.id);
        self.last.insert(owner.id, self.turns);
    }

    /// Records the end of a turn, and its duration.
    pub fn end(&mut self, owner: Owner, lasted: Duration) {
        // Not `used_by`: other groups had turns meanwhile, so that would count their time for this one too.
        let used = self.used.get(&owner.group).copied();
        let used = used.unwrap_or(self.virtual_time);
        self.add(used, owner, lasted.saturating_sub(LEAST));
    }

    /// Returns the time that the owner's group has used.
    fn used_by(&self, owner: Owner) -> u64 {
        let used = self.used.get(&owner.group).copied().unwrap_or(0);
        used.max(self.virtual_time)
    }

    /// Adds the time of a turn to what the owner's group has used.
    fn add(&mut self, used: u64, owner: Owner, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let used = used.saturating_add(nanos / u64::from(owner.weight.max(1)));
        forget(&mut self.used, owner.group);
        self.used.insert(owner.group, used);
    }
}

/// Makes room for a new entry by removing the one with the lowest number.
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
            let next = next.min_by_key(|(at, (owner, _))| (order.rank(*owner), *at));
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
    fn turns_of_others_meanwhile_do_not_count() {
        let (long, short) = (owner(1, 1, 1), owner(2, 2, 1));
        let mut order = Owners::default();
        order.begin(long);
        for _ in 0..10 {
            order.begin(short);
            order.end(short, Duration::from_millis(1));
        }
        order.end(long, Duration::from_millis(5));
        // 5 ms of 10.
        assert!(order.rank(long) < order.rank(short));
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
            let is_busy = order.rank(busy) < order.rank(away);
            let next = if is_busy { busy } else { away };
            order.begin(next);
            order.end(next, Duration::from_millis(1));
            turns[usize::from(is_busy)] += 1;
        }
        assert_eq!(turns, [50, 50]);
    }

    #[test]
    fn an_owner_without_turns_for_long_is_no_rival() {
        let (one, two) = (owner(1, 1, 1), owner(2, 1, 1));
        let mut owners = Owners::default();
        assert!(!owners.has_rivals(one));
        owners.begin(one);
        assert!(!owners.has_rivals(one));
        assert!(owners.has_rivals(two));
        owners.begin(two);
        for _ in 0..RECENT {
            assert!(owners.has_rivals(one));
            owners.begin(one);
        }
        assert!(owners.has_rivals(one));
        owners.begin(one);
        assert!(!owners.has_rivals(one));
    }

    #[test]
    fn the_owner_whose_turn_was_longest_ago_is_forgotten_for_a_new_one() {
        let mut owners = Owners::default();
        let last = |owners: &Owners, id| owners.rank(owner(id, 0, 1)).1;
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
