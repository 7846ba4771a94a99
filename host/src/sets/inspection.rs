//! A look at a set that no handler keeps at the moment: the members are read, and what others have done to them is told.

use std::collections::BTreeSet;

use configurator_core::desired::check::CheckedSet;
use configurator_core::fault::Fault;
use configurator_core::graph::member::MemberKey;
use configurator_core::graph::observation::Found;
use configurator_core::graph::plan::{Action, Pruning};
use configurator_core::plan::Failure;

use super::live::LiveSet;
use super::policy::policy_of;
use super::reconcile::{Goal, Hold, SetRun, change_of};
use super::registry::Taken;
use crate::events::HostEvent;

impl SetRun<'_> {
    /// Looks at the set of an owner whose phase has no upkeep. Does nothing if the host does not have the set in memory.
    ///
    /// # Errors
    /// When members cannot be read, or the status of the set cannot be written.
    pub(crate) async fn inspect(self) -> Result<(), Failure> {
        let looked = self.try_inspect().await;
        looked.map_err(|fault| self.failure(fault))
    }

    async fn try_inspect(self) -> Result<(), Fault> {
        let Some(owner) = self.run.members().first() else {
            return Ok(());
        };
        let object = owner.object.to_value();
        while self.sets.is_at_rest(&owner.uid) {
            let Taken { live, inbox, .. } = self.sets.take(&owner.key, &owner.uid);
            let Some(mut set) = live else { break };
            let wanted = set.wanted.as_ref();
            if let Some((checked, change)) =
                wanted.map(|wanted| (wanted.checked.clone(), change_of(wanted)))
            {
                let policy = policy_of(&set.stored.termination_policy, &object);
                let goal = Goal::Wanted(policy, Pruning::Suspended, &checked, &change);
                let hold = Hold::of(&object).unwrap_or(Hold::Unattended);
                self.turn(&mut set, &inbox, goal, Some(hold)).await?;
            }
            if !self.sets.put(set, &inbox, self.clock.now()) {
                break;
            }
        }
        Ok(())
    }

    /// Tells of members that others have changed or deleted, each once as long as it stays so. Returns whether there are any.
    pub(super) fn tell_of_drift(
        self,
        set: &mut LiveSet,
        checked: &CheckedSet,
        held: &[Action],
    ) -> bool {
        let entries = checked.graph.entries();
        let drifted = held.iter().filter_map(|action| match action {
            Action::Apply { entry, .. } => entries.get(*entry).map(|entry| entry.key.clone()),
            _ => None,
        });
        let drifted: BTreeSet<MemberKey> = drifted.collect();
        for key in drifted.difference(&set.drifted) {
            let found = set.members.get(key).map(|known| &known.observation.found);
            let what = match found {
                Some(Found::Absent) => "deleted",
                _ => "changed",
            };
            if let Some(owner) = self.run.members().first() {
                self.publisher.publish(HostEvent {
                    action: key.to_string(),
                    ..HostEvent::warning(
                        self.subject(owner),
                        "Drifted",
                        format!("{key} was {what} by others, and is left so, because the phase of the object has no upkeep"),
                    )
                });
            }
        }
        set.drifted = drifted;
        !set.drifted.is_empty()
    }
}
