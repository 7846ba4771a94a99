//! Looks at members in the stores from time to time: no watch shows what others do to them.

use std::sync::Arc;
use std::time::Duration;

use configurator_core::graph::member::MemberKey;
use configurator_core::request::ObjectRef;
use futures::{Stream, StreamExt as _, stream};

use super::super::registry::{PolledMember, Sets, Shown};
use crate::clock::{SharedClock, until};

/// The longest wait until a member is read again that is not ready.
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
    let begun = stream::unfold(due, move |due| {
        let (sets, clock) = (sets.clone(), clock.clone());
        async move {
            let at = clock.now().after(round);
            until(clock.clone(), Some(at)).await;
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
    begun.flatten()
}

/// Reads members, and returns the owners of those that others have changed.
async fn owners(sets: &Sets, clock: &SharedClock, members: Vec<PolledMember>) -> Vec<ObjectRef> {
    let looks = members.into_iter().map(|member| look(sets, clock, member));
    let looks = stream::iter(looks).buffer_unordered(PARALLEL);
    looks.filter_map(std::future::ready).collect().await
}

async fn look(sets: &Sets, clock: &SharedClock, member: PolledMember) -> Option<ObjectRef> {
    let PolledMember { set, key } = member;
    let shown = match sets.stores.look(&key).await {
        Ok(Some(object)) => Shown::Object(Box::new(object)),
        Ok(None) => Shown::Unselected,
        Err(fault) => {
            tell(&key, &fault.message);
            return None;
        }
    };
    sets.show(&set, key, shown, clock.now())
}

fn tell(key: &MemberKey, error: &str) {
    tracing::warn!(member = %key, error, "a member of a set cannot be read; the host tries again");
}
