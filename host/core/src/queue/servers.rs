//! Servers that are unavailable.

use std::collections::BTreeMap;

use super::timers::Timer;
use super::{Action, AwaitedObjects, Queue, RELEASE_SPREAD, Ticket};
use crate::backoff::spread;
use crate::parking::{Server, Unavailable};
use crate::time::Timestamp;

impl<R> Queue<R> {
    /// These servers are unavailable, and no others. Runs that wait for one are held until it is back, and so are all new ones
    /// once the server of a sink is down that has failed one of them.
    pub fn set_unavailable(
        &mut self,
        servers: BTreeMap<Server, Unavailable>,
        now: Timestamp,
    ) -> Vec<Action<R>> {
        let before = std::mem::replace(&mut self.unavailable, servers);
        let fell = self.unavailable.iter().any(|(server, why)| {
            *why == Unavailable::Down && before.get(server) != Some(&Unavailable::Down)
        });
        if fell {
            // It refused everybody, so the objects that it refused are like any other.
            for slot in self.slots.values_mut() {
                slot.was_refused = false;
            }
        }
        for server in before.keys() {
            if server.is_shared() && !self.unavailable.contains_key(server) {
                self.relied_on.remove(&server.sink);
            }
        }
        let released: Vec<Ticket> = self
            .paused
            .iter()
            .filter(|(_, paused)| {
                paused.timer.is_none()
                    && paused.awaits != AwaitedObjects::Members
                    && !self.is_waiting(paused)
            })
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in released {
            let at = now.after(spread(RELEASE_SPREAD, self.seed ^ ticket.0));
            let timer = self.timer(at, Timer::Paused(ticket));
            if let Some(paused) = self.paused.get_mut(&ticket) {
                paused.timer = Some(timer);
            }
        }
        self.finish_call(now)
    }

    /// The servers that are unavailable, as far as is known.
    #[must_use]
    pub const fn unavailable(&self) -> &BTreeMap<Server, Unavailable> {
        &self.unavailable
    }
}
