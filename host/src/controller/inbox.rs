//! What an object's machine is told while it works, or before it does.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use configurator_core::machine::command::Command;
use configurator_core::machine::state::Seen;
use tokio::sync::Notify;

use super::commands::CommandRef;

/// Something that an object's machine is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wake {
    /// The object has changed.
    Observed {
        /// Whether it is marked as cancelled.
        is_cancelled: bool,
    },
    /// The object goes.
    Deleted,
    /// An object that is waited for has changed.
    Changed(Seen),
    /// What a Command orders, and the Command itself.
    Command(CommandRef, Command),
}

/// What has not been told yet, in order.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    wakes: Mutex<VecDeque<Wake>>,
    notify: Notify,
}

impl Inbox {
    /// Adds something. What is there already is not added again; of the versions of an object that is waited for, the last counts.
    pub(crate) fn put(&self, wake: Wake) {
        let mut wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Wake::Changed(seen) = &wake {
            wakes.retain(
                |other| !matches!(other, Wake::Changed(other) if other.object == seen.object),
            );
        }
        if !wakes.contains(&wake) {
            wakes.push_back(wake);
        }
        self.notify.notify_one();
    }

    /// Takes the first.
    pub(crate) fn take(&self) -> Option<Wake> {
        let mut wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        wakes.pop_front()
    }

    /// Takes the first that is meant, and drops what comes before it.
    pub(crate) fn take_from(&self, is_meant: impl Fn(&Wake) -> bool) -> Option<Wake> {
        let mut wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        let at = wakes.iter().position(is_meant)?;
        wakes.drain(..=at).next_back()
    }

    pub(crate) fn is_empty(&self) -> bool {
        let wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        wakes.is_empty()
    }

    /// Returns when something may be there.
    pub(crate) async fn filled(&self) {
        self.notify.notified().await;
    }
}
