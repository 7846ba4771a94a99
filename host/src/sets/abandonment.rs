//! The end of a set whose members stay as they are, because a person wants it so.

use configurator_core::desired::marks;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::deletion::TerminationPolicy;
use configurator_core::run::Member;
use serde_json::Value;

use super::reconcile::{Goal, SetRun};
use super::registry::Taken;
use crate::events::HostEvent;
use crate::shards::Permit;

/// The most characters of the reason that an Event repeats.
const MAX_REASON: usize = 256;

/// Returns the reason that an owner gives for giving up its set. `None`: the set is kept.
pub(super) fn reason_of(owner: &Value) -> Option<String> {
    let reason = marks::annotation(owner, marks::ABANDON)?.trim();
    let reason = reason.chars().take(MAX_REASON).collect::<String>();
    Some(reason).filter(|reason| !reason.is_empty())
}

impl SetRun<'_> {
    /// Deletes the inventory of an owner, and nothing else. Members lose the marks of the set as far as that can be done in one attempt; those
    /// of a damaged inventory are not known, and keep them.
    pub(super) async fn abandon(self, member: &Member, reason: &str) -> Result<(), Fault> {
        let owner = self.owner_of(member);
        let Taken { live, inbox, .. } = self.sets.take(&member.key, &member.uid);
        let loaded = match live {
            Some(known) => Ok(known),
            None => self.load(&owner).await,
        };
        let left = match loaded {
            Ok(set) if !set.stored.exists() => {
                self.sets.forget(&member.uid);
                return Ok(());
            }
            Ok(mut set) => {
                set.members.retain_all();
                let goal = Goal::None(TerminationPolicy::Delete, None);
                self.turn(&mut set, &inbox, goal, None).await?;
                match set.members.inventory().count() {
                    0 => "its members have lost its marks".to_owned(),
                    number => format!("{number} of its members still have its marks"),
                }
            }
            Err(fault) if fault.kind == FaultKind::ResourceGeneric => {
                "its members still have its marks, because its inventory was damaged".to_owned()
            }
            Err(fault) => return Err(fault),
        };
        self.write_ready().await;
        let fences = Permit::fences_of(self.permit);
        self.sets.inventories.discard(&owner, fences).await?;
        self.sets.forget(&member.uid);
        self.publisher.publish(HostEvent::warning(
            self.subject(member),
            "SetAbandoned",
            self.redactor.redact(&format!(
                "the set is given up, and no member was deleted ({reason}): {left}"
            )),
        ));
        Ok(())
    }
}
