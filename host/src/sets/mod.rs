//! Desired sets: brings the members of each owner to what its handler returned, in order, and keeps an inventory of them.
//!
//! [`configurator_core::graph`] decides which actions may run; this module carries them out. A set is reconciled within a run of its owner
//! ([`reconcile`]), which rests while members are not ready. [`registry`] keeps the sets at rest and takes in what [`watches`] show of their
//! members; it says which owner needs another run. Members in the config store and the secret store are the matter of [`stores`].

mod abandonment;
mod actions;
mod corrections;
mod idle;
mod inspection;
mod inventory;
mod kinds;
mod live;
mod policy;
mod pre_terminate;
mod reconcile;
mod registry;
mod requests;
mod rest;
mod rights;
mod seen;
mod status;
mod stores;
mod watches;

use configurator_core::desired::DesiredEntry;
use configurator_core::projection::Projection;

pub(crate) use self::idle::summarize;
pub(crate) use self::inventory::InventoryStore;
pub(crate) use self::kinds::ServedKinds;
pub(crate) use self::reconcile::SetRun;
pub(crate) use self::registry::Sets;
pub(crate) use self::status::MAX_LISTED;
pub(crate) use self::stores::{Stores, poll};
pub(crate) use self::watches::{MemberEvent, MemberWatches, WatchOptions};

/// The paths of an entry that the host does not correct. They were checked before.
fn ignored(entry: &DesiredEntry) -> Projection {
    Projection::parse(&entry.ignored_paths).unwrap_or_default()
}
