//! Reads members in the stores periodically, because no watch reports their changes.

use std::sync::Arc;
use std::time::Duration;

use configurator_core::request::ObjectRef;
use futures::{Stream, StreamExt as _, stream};

use crate::clock::SharedClock;
use crate::sets::registry::{PolledMember, Sets, Shown};

/// The longest time between two reads of a member that is not ready.
const UNREADY: Duration = Duration::from_secs(5);
/// The most members that are read at one time.
const PARALLEL: usize = 8;

/// Reads the members of sets at rest, each after `interval`, and those that are not ready more often. Returns the owners that need a run.
pub(crate) fn poll(
    sets: Arc<Sets>,
    clock: SharedClock,
    interval: Duration,
) -> impl Stream<Item = ObjectRef> {
    let round = interval.min(UNREADY);
    let due = clock.now().after(interval);
    let rounds = stream::unfold(due, move |due| {
        let (sets, clock) = (sets.clone(), clock.clone());
        async move {
            clock.sleep(round).await;
            let is_due = clock.now() >= due;
            let members = sets.polled(is_due);
            let next = if is_due {
                clock.now().after(interval)
            } else {
                due
            };
            let owners = owners(&sets, &clock, members).await;
            Some((stream::iter(owners), next))
        }
    });
    rounds.flatten()
}

/// Reads members. Returns the owners of those that others have changed.
async fn owners(sets: &Sets, clock: &SharedClock, members: Vec<PolledMember>) -> Vec<ObjectRef> {
    let looks = members.into_iter().map(|member| look(sets, clock, member));
    let looks = stream::iter(looks).buffer_unordered(PARALLEL);
    looks.filter_map(std::future::ready).collect().await
}

async fn look(sets: &Sets, clock: &SharedClock, member: PolledMember) -> Option<ObjectRef> {
    let PolledMember { set, key } = member;
    let shown = match sets.stores.poll(&key).await {
        Ok(Some(object)) => Shown::Object(Box::new(object)),
        Ok(None) => Shown::Unselected,
        Err(fault) => {
            let error = fault.message;
            tracing::warn!(member = %key, error, "a member of a set cannot be read; the host retries");
            return None;
        }
    };
    sets.show(&set, key, shown, clock.now())
}
