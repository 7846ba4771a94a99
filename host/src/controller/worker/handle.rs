//! How a keeper steers its worker.

use std::sync::Arc;

use configurator_core::canary::Fraction;
use configurator_core::configurator::Configurator;
use configurator_guest::module::Module;
use kube::api::ApiResource;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::report::WorkerReport;
use crate::controller::mailbox::Mailbox;
use crate::controller::rollout::Rollout;

/// A change of the modules of a Configurator.
pub(super) enum Renewal {
    /// Makes this module the one of all objects.
    Swap(Arc<Module>),
    /// Starts a canary for these objects.
    StartCanary(Fraction, Arc<Module>),
    /// Rolls the canary back.
    RollBack,
    /// The modules of the selected objects have been changed already. A canary handles the objects of the fraction.
    Done(Selection, Option<Fraction>),
}

impl Renewal {
    /// Changes the modules. Returns the objects whose module has changed, and those that a canary handles from now on.
    pub(super) fn apply(self, rollout: &Rollout) -> (Selection, Option<Fraction>) {
        let canary = rollout.canary();
        match self {
            Self::Swap(module) => {
                let is_it = |other: &Arc<Module>| other.digest() == module.digest();
                let changed = match canary {
                    Some((fraction, canary)) if is_it(&canary) => Selection::Outside(fraction),
                    Some((fraction, _)) if is_it(&rollout.stable()) => Selection::Within(fraction),
                    _ => Selection::All,
                };
                rollout.swap(module);
                (changed, None)
            }
            Self::StartCanary(fraction, module) => {
                // The objects of an earlier, larger canary return to the stable module.
                let before = canary.map_or(fraction, |(before, _)| before);
                rollout.start_canary(fraction, module);
                let changed = Selection::Within(fraction.larger(before));
                (changed, Some(fraction))
            }
            Self::Done(changed, canary) => (changed, canary),
            Self::RollBack => {
                rollout.roll_back();
                let changed =
                    canary.map_or(Selection::None, |(fraction, _)| Selection::Within(fraction));
                (changed, None)
            }
        }
    }
}

/// A selection of objects.
#[derive(Clone, Copy)]
pub(super) enum Selection {
    None,
    All,
    Within(Fraction),
    Outside(Fraction),
}

impl Selection {
    pub(super) fn contains(self, uid: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Within(fraction) => fraction.contains(uid),
            Self::Outside(fraction) => !fraction.contains(uid),
        }
    }
}

/// A worker under way.
pub struct WorkerHandle {
    /// The declaration that it follows.
    pub configurator: Arc<Configurator>,
    /// The watched kind.
    pub resource: ApiResource,
    /// What it says of itself.
    pub report: watch::Receiver<WorkerReport>,
    pub(super) stop: CancellationToken,
    pub(super) retry: Arc<Notify>,
    /// Which modules its runs are of. What was asked for last may be yet to come.
    pub rollout: Arc<Rollout>,
    pub(super) stable: Arc<Module>,
    pub(super) has_canary: bool,
    pub(super) is_machine: bool,
    pub(super) renewals: Arc<Mailbox<Renewal>>,
    pub(super) task: JoinHandle<Option<()>>,
}

impl WorkerHandle {
    /// No new runs begin; returns when those under way have ended.
    pub async fn stop(self) {
        self.stop.cancel();
        // An error means that the task was dropped, which is as good.
        let _ = self.task.await;
    }

    /// Runs that begin from now on are of this module, and every object has one that had another; those under way go on with theirs. In mode
    /// Machine each entry that begins is of it, and only what was given up is tried again.
    ///
    /// In a chain the worker itself changes what runs are of, so that none begins on the new module before every object is known to need one.
    pub fn swap(&mut self, module: Arc<Module>) {
        self.stable = module.clone();
        self.has_canary = false;
        self.renew(Renewal::Swap(module));
    }

    /// Starts a canary: as [`swap`](Self::swap), but for these objects only.
    pub fn start_canary(&mut self, fraction: Fraction, module: Arc<Module>) {
        self.has_canary = true;
        self.renew(Renewal::StartCanary(fraction, module));
    }

    /// Rolls the canary back: its objects have one more run, of the stable module.
    pub fn roll_back(&mut self) {
        if std::mem::take(&mut self.has_canary) {
            self.renew(Renewal::RollBack);
        }
    }

    fn renew(&self, renewal: Renewal) {
        // An entry that begins asks for its module itself, and is made no second time.
        let renewal = match self.is_machine {
            true => {
                let (changed, canary) = renewal.apply(&self.rollout);
                Renewal::Done(changed, canary)
            }
            false => renewal,
        };
        self.renewals.post(renewal);
    }

    /// Returns the module of all objects that the canary does not handle.
    #[must_use]
    pub const fn stable(&self) -> &Arc<Module> {
        &self.stable
    }

    /// Returns whether there is a canary.
    #[must_use]
    pub const fn has_canary(&self) -> bool {
        self.has_canary
    }

    /// Has every object that was given up tried again at once.
    pub fn retry(&self) {
        // A worker that has not yet seen the last call will do so, and one that has ended has nothing to retry.
        self.retry.notify_one();
    }
}
