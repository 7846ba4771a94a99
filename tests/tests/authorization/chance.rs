//! Drawn choices, the same for the same seed.

use configurator_core::backoff::mix;

/// A source of choices.
pub struct Chance(u64);

impl Chance {
    /// The choices of one case of a run.
    pub fn of(seed: u64, case: u64) -> Self {
        Self(mix(seed ^ mix(case)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// True in one of `among` cases.
    pub fn one_in(&mut self, among: usize) -> bool {
        self.below(among) == 0
    }

    /// One of these.
    pub fn pick<'a, T: ?Sized>(&mut self, among: &[&'a T]) -> &'a T {
        among[self.below(among.len())]
    }

    /// Up to `most` of these.
    pub fn some(&mut self, most: usize, among: &[&str]) -> Vec<String> {
        let number = self.below(most + 1);
        (0..number).map(|_| self.pick(among).to_owned()).collect()
    }
}
