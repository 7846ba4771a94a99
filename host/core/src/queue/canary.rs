//! The objects that a canary handles.

use super::Queue;
use super::batches::{Lane, Unit};
use super::slot::Work;
use crate::canary::Fraction;
use crate::request::ObjectRef;
use crate::run::Chain;
use crate::time::Timestamp;

/// The objects that a canary handles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CanaryObjects {
    /// The number of objects.
    pub total: u32,
    /// How many of them have not finished a run of the canary yet.
    pub awaited: u32,
}

impl<R> Queue<R> {
    /// Sets the objects that the canary handles; `None`: there is no canary. Their runs are of another module than those of the other objects, so
    /// the two do not share batches. Batches that wait are split. No object has finished a run of the canary yet.
    pub fn set_canary(&mut self, canary: Option<Fraction>, now: Timestamp) {
        self.canary = canary;
        for slot in self.slots.values_mut() {
            if let Some(live) = &mut slot.live {
                live.is_canary = canary.is_some_and(|canary| canary.contains(&live.uid));
                live.awaits_canary_run = live.is_canary;
            }
        }
        for Unit { keys, chain } in self.lines.take_units() {
            for unit in self.split_canary(keys, chain) {
                self.push(unit, now);
            }
        }
        for (Lane { chain, shard, .. }, open) in std::mem::take(&mut self.open) {
            self.timers.remove(&open.closes);
            let (closes, _) = open.closes;
            for key in open.keys {
                let lane = self.lane(chain, shard, &key);
                self.join(lane, key, closes, now);
            }
        }
    }

    /// Counts the objects that the canary handles. `None`: there is no canary, or not all objects are known yet.
    #[must_use]
    pub fn canary_objects(&self) -> Option<CanaryObjects> {
        self.canary.filter(|_| self.is_listed)?;
        let mut counts = CanaryObjects::default();
        for slot in self.slots.values() {
            let live = slot.live.as_ref();
            let Some(live) = live.filter(|live| live.is_canary && !live.is_deleting) else {
                continue;
            };
            counts.total = counts.total.saturating_add(1);
            let has_work = slot.work != Work::Idle || live.pending.is_some();
            if live.awaits_canary_run && has_work {
                counts.awaited = counts.awaited.saturating_add(1);
            }
        }
        Some(counts)
    }

    /// Returns whether the canary handles the object whose run is next.
    pub(super) fn is_canary(&self, key: &ObjectRef) -> bool {
        let uid = self.next_uid(key).zip(self.canary);
        uid.is_some_and(|(uid, canary)| canary.contains(uid))
    }

    /// Separates the objects that the canary handles from the others.
    pub(super) fn split_canary(
        &self,
        keys: Vec<ObjectRef>,
        chain: Chain,
    ) -> impl Iterator<Item = Unit> + use<R> {
        let (canary, others): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|key| self.is_canary(key));
        let parts = [canary, others].into_iter();
        let parts = parts.filter(|keys| !keys.is_empty());
        parts.map(move |keys| Unit { keys, chain })
    }

    /// The uid of whose turn is next: the dead come before the living.
    pub(super) fn next_uid(&self, key: &ObjectRef) -> Option<&str> {
        let slot = self.slots.get(key)?;
        let gone = slot.gone.front().map(|gone| &gone.uid);
        let live = slot.live.as_ref().map(|live| &live.uid);
        gone.or(live).map(String::as_str)
    }
}
