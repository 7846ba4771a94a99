//! A machine is stored before what depends on it is done.

use configurator_core::fault::Fault;
use configurator_core::machine::action::Action;
use configurator_core::machine::apply::apply;
use configurator_core::machine::event::Event;
use configurator_core::run::Finish;
use tokio::sync::oneshot;

use super::standing::Standing;
use super::{BOOK_AFTER, MachineRun, TurnEnd, beside};
use crate::controller::state_store::Saved;
use crate::shards::Permit;

impl MachineRun {
    /// Stores the state, while what is under way goes on.
    pub(super) async fn persist(&mut self) -> Result<(), TurnEnd> {
        self.pin();
        let saved = self.save().await;
        match saved {
            Ok(Saved::Stored) => {}
            Ok(Saved::Gone) => return Err(Finish::Succeeded.into()),
            Ok(Saved::Foreign) => return Err(TurnEnd::Foreign),
            Err(fault) => return Err(self.end_by(fault)),
        }
        self.shown = None;
        self.is_fresh = self.own.store.shows_objects();
        let now = self.context.clock.now();
        if now >= self.book_due {
            self.book_due = now.after(BOOK_AFTER);
            self.try_to_book().await;
        }
        Ok(())
    }

    pub(super) async fn save(&mut self) -> Result<Saved, Fault> {
        let Self {
            own,
            standing,
            leaves,
            permit,
            ..
        } = self;
        let Standing {
            held, state, ended, ..
        } = &mut **standing;
        let saving = async {
            let fences = match permit {
                Some(permit) => {
                    permit.ready(None).await;
                    permit.fences()
                }
                None => &[],
            };
            own.store.save(held, state, fences).await
        };
        beside(leaves, ended, saving).await
    }

    /// Books the newest state.
    pub(super) async fn book(&mut self) -> Result<(), Fault> {
        let fences = Permit::fences_of(self.permit.as_deref());
        self.own.store.book(&mut self.standing.held, fences).await
    }

    /// Books the newest state; a failure is logged. Until a state is booked, an older state that is put back is not noticed.
    pub(super) async fn try_to_book(&mut self) {
        if let Err(fault) = self.book().await {
            tracing::warn!(object = %self.member.key, %fault, "which state of the object is the newest could not be noted");
        }
    }

    /// Requests that may be sent but once are sent when it is stored that they are.
    pub(super) async fn announce(
        &mut self,
        token: u64,
        go: oneshot::Sender<()>,
    ) -> Result<(), TurnEnd> {
        let before = self.standing.state.clone();
        let now = self.context.clock.now();
        let event = Event::Sending { token };
        let (state, actions) = apply(&self.machine, before.clone(), event, now);
        if !actions.contains(&Action::Persist) {
            return Ok(());
        }
        self.standing.state = state;
        let announced = match self.persist().await {
            // No state from before may be accepted once something was sent.
            Ok(()) => self.book().await.map_err(|fault| self.end_by(fault)),
            Err(end) => Err(end),
        };
        match announced {
            Ok(()) => {
                // Who has been abandoned meanwhile sends nothing.
                let _ = go.send(());
                Ok(())
            }
            Err(end) => {
                self.standing.state = before;
                Err(end)
            }
        }
    }

    /// Reads the object again, if something may have happened to it.
    pub(super) async fn refresh(&mut self) -> Result<(), TurnEnd> {
        if self.is_fresh {
            return Ok(());
        }
        match self.own.store.refresh(&mut self.standing.held).await {
            Ok(true) => {
                self.is_fresh = true;
                self.shown = None;
                Ok(())
            }
            Ok(false) => Err(Finish::Succeeded.into()),
            Err(fault) => Err(self.end_by(fault)),
        }
    }
}
