//! Commands that wait for their object, and finished ones that are kept for a while.
//!
//! Nothing is asked of the API here: what is to be asked or said is returned.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use configurator_core::request::ObjectRef;
use configurator_core::time::Timestamp;

use super::commands::PendingCommand;

/// Finished Commands of a Configurator whose end is remembered. Further ones are found by another listing.
const MAX_FINISHED: usize = 10_000;

/// Limits of the Commands of one Configurator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLimits {
    /// Commands that may wait for their object.
    pub max_pending: usize,
    /// How long a finished Command is kept, and how long one may wait; zero: for ever.
    pub ttl: Duration,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self {
            max_pending: 1000,
            ttl: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

/// What became of a Command that should wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It waits from now on.
    New,
    /// It waits already.
    Known,
    /// Too many wait.
    Full,
}

/// The Commands of one Configurator that wait or have finished.
#[derive(Debug, Default)]
pub(crate) struct PendingCommands {
    limits: CommandLimits,
    /// Those that wait, by their uid, each with the time when it expires.
    commands: HashMap<String, (PendingCommand, Option<Timestamp>)>,
    /// The uids of those that are for an object.
    by_target: BTreeMap<ObjectRef, Vec<String>>,
    /// When Commands expire, with the uid of each.
    expiries: BTreeMap<(Timestamp, String), ObjectRef>,
    /// Whether the end of a finished Command was not remembered.
    has_more: bool,
    /// What each listing under way has shown, by namespace; empty for all.
    listing: BTreeMap<String, BTreeSet<String>>,
}

/// A Command whose time is over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expired {
    /// It has waited for too long.
    Pending(PendingCommand),
    /// It was finished long ago: its name and uid.
    Finished(ObjectRef, String),
}

impl PendingCommands {
    pub(crate) fn new(limits: CommandLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    pub(crate) fn limits(&self) -> CommandLimits {
        self.limits
    }

    /// Has a Command wait for its object.
    pub(crate) fn keep(&mut self, command: PendingCommand, now: Timestamp) -> Kept {
        let uid = command.own.uid.clone();
        if let Some((known, _)) = self.commands.get_mut(&uid) {
            known.is_told |= command.is_told;
            return Kept::Known;
        }
        if self.commands.len() >= self.limits.max_pending {
            return Kept::Full;
        }
        let expires = (!self.limits.ttl.is_zero()).then(|| now.after(self.limits.ttl));
        if let Some(at) = expires {
            self.expiries
                .insert((at, uid.clone()), command.own.key.clone());
        }
        let target = self.by_target.entry(command.target.clone());
        target.or_default().push(uid.clone());
        self.commands.insert(uid, (command, expires));
        Kept::New
    }

    /// The Command of this uid, if it waits.
    pub(crate) fn get_mut(&mut self, uid: &str) -> Option<&mut PendingCommand> {
        self.commands.get_mut(uid).map(|(command, _)| command)
    }

    /// The Commands that wait, by uid.
    pub(crate) fn uids(&self) -> Vec<String> {
        self.commands.keys().cloned().collect()
    }

    /// Takes out a Command.
    pub(crate) fn remove(&mut self, uid: &str) -> Option<PendingCommand> {
        let (command, expires) = self.commands.remove(uid)?;
        if let Some(at) = expires {
            self.expiries.remove(&(at, uid.to_owned()));
        }
        if let Some(uids) = self.by_target.get_mut(&command.target) {
            uids.retain(|known| known != uid);
            if uids.is_empty() {
                self.by_target.remove(&command.target);
            }
        }
        Some(command)
    }

    /// Takes out the Commands that wait for an object of this name, in the order in which they came.
    pub(crate) fn take(&mut self, target: &ObjectRef) -> Vec<PendingCommand> {
        let uids = self.by_target.get(target).cloned().unwrap_or_default();
        uids.iter().filter_map(|uid| self.remove(uid)).collect()
    }

    /// A listing of the Commands of a namespace begins, or of all when it is empty.
    pub(crate) fn list(&mut self, namespace: &str) {
        self.listing.insert(namespace.to_owned(), BTreeSet::new());
    }

    /// A Command exists.
    pub(crate) fn see(&mut self, namespace: &str, uid: &str) {
        if let Some(seen) = self.listing.get_mut(namespace) {
            seen.insert(uid.to_owned());
        }
    }

    /// The listing of a namespace is complete: Commands that it does not name are gone.
    pub(crate) fn listed(&mut self, namespace: &str) {
        let Some(seen) = self.listing.remove(namespace) else {
            return;
        };
        for uid in self.uids() {
            let is_in_scope = self.commands.get(&uid).is_some_and(|(command, _)| {
                namespace.is_empty() || command.own.key.namespace == namespace
            });
            if is_in_scope && !seen.contains(&uid) {
                self.remove(&uid);
            }
        }
    }

    /// Keeps only Commands for objects whose uids are some.
    pub(crate) fn retain(&mut self, is_one: impl Fn(&str) -> bool) {
        for uid in self.uids() {
            let command = self.commands.get(&uid);
            if !command.is_some_and(|(command, _)| is_one(&command.target_uid)) {
                self.remove(&uid);
            }
        }
    }

    /// A Command was finished at this time. It is deleted after its own time to live, but no later than after that of the host.
    pub(crate) fn finished(
        &mut self,
        own: ObjectRef,
        uid: String,
        at: Timestamp,
        ttl: Option<Duration>,
    ) {
        self.remove(&uid);
        let most = (!self.limits.ttl.is_zero()).then_some(self.limits.ttl);
        let Some(ttl) = ttl.into_iter().chain(most).min() else {
            return;
        };
        self.expiries.insert((at.after(ttl), uid), own);
        if self.expiries.len() > MAX_FINISHED.saturating_add(self.limits.max_pending) {
            self.expiries.pop_last();
            self.has_more = true;
        }
    }

    /// When [`expire`](Self::expire) has something to say.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.expiries.keys().next().map(|(at, _)| *at)
    }

    /// Takes out the Commands whose time is over.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<Expired> {
        let mut expired = Vec::new();
        while let Some(entry) = self.expiries.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let ((_, uid), own) = entry.remove_entry();
            expired.push(match self.remove(&uid) {
                Some(command) => Expired::Pending(command),
                None => Expired::Finished(own, uid),
            });
        }
        expired
    }

    /// Whether the Commands are to be listed again, because not all that have finished are known.
    pub(crate) fn wants_listing(&mut self) -> bool {
        self.expiries.is_empty() && std::mem::take(&mut self.has_more)
    }
}

#[cfg(test)]
mod tests {
    use configurator_core::machine::command::{Command as Order, Requester, Verb};

    use super::*;
    use crate::controller::commands::CommandRef;

    fn key(name: &str) -> ObjectRef {
        ObjectRef {
            namespace: "shop".into(),
            name: name.into(),
        }
    }

    fn command(uid: &str, target: &str) -> PendingCommand {
        PendingCommand {
            own: CommandRef {
                key: key(uid),
                uid: uid.into(),
                is_verified: true,
            },
            target: key(target),
            target_uid: format!("{target}-uid"),
            order: Order {
                uid: uid.into(),
                requester: Requester {
                    name: "ann".into(),
                    is_verified: true,
                },
                verb: Verb::Cancel,
            },
            is_told: false,
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn limits(max_pending: usize, seconds: u64) -> CommandLimits {
        CommandLimits {
            max_pending,
            ttl: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn commands_are_kept_once_and_up_to_the_limit() {
        let mut pending = PendingCommands::new(limits(2, 60));
        let kept: Vec<Kept> = ["a", "a", "b", "c", "a"]
            .map(|uid| pending.keep(command(uid, "one"), at(0)))
            .into();
        assert_eq!(
            kept,
            [Kept::New, Kept::Known, Kept::New, Kept::Full, Kept::Known]
        );
        let uids: Vec<String> = pending.take(&key("one")).iter().map(uid_of).collect();
        assert_eq!(uids, ["a", "b"]);
        assert_eq!(pending.take(&key("one")), []);
        assert_eq!(pending.keep(command("c", "one"), at(0)), Kept::New);
    }

    fn uid_of(command: &PendingCommand) -> String {
        command.own.uid.clone()
    }

    #[test]
    fn a_command_expires_whether_it_waits_or_has_finished() {
        let mut pending = PendingCommands::new(limits(10, 60));
        pending.keep(command("waits", "one"), at(0));
        pending.keep(command("delivered", "two"), at(1));
        assert_eq!(pending.take(&key("two")).len(), 1);
        pending.finished(key("done"), "done".into(), at(-30), None);
        assert_eq!(pending.next_deadline(), Some(at(30)));
        assert_eq!(pending.expire(at(29)), []);
        let done = Expired::Finished(key("done"), "done".into());
        assert_eq!(pending.expire(at(30)), [done]);
        let waits = Expired::Pending(command("waits", "one"));
        assert_eq!(pending.expire(at(60)), [waits]);
        assert_eq!(pending.take(&key("one")), []);
        assert_eq!(pending.next_deadline(), None);
    }

    #[test]
    fn a_command_that_a_listing_does_not_show_is_gone() {
        let mut pending = PendingCommands::new(limits(10, 60));
        pending.keep(command("gone", "one"), at(0));
        pending.keep(command("there", "one"), at(0));
        pending.list("shop");
        pending.see("shop", "there");
        pending.listed("other");
        pending.listed("shop");
        assert_eq!(pending.uids(), ["there"]);
    }

    #[test]
    fn without_a_time_to_live_a_command_expires_only_if_it_has_one_itself() {
        let mut pending = PendingCommands::new(limits(10, 0));
        pending.keep(command("waits", "one"), at(0));
        pending.finished(key("done"), "done".into(), at(0), None);
        pending.finished(
            key("soon"),
            "soon".into(),
            at(0),
            Some(Duration::from_secs(5)),
        );
        let soon = Expired::Finished(key("soon"), "soon".into());
        assert_eq!(pending.expire(at(5)), [soon]);
        assert_eq!(pending.next_deadline(), None);
    }

    #[test]
    fn more_finished_commands_than_are_remembered_are_listed_again() {
        let mut pending = PendingCommands::new(limits(0, 60));
        for number in 0..=MAX_FINISHED {
            let uid = number.to_string();
            pending.finished(key(&uid), uid, at(0), None);
        }
        assert!(!pending.wants_listing());
        assert_eq!(pending.expire(at(60)).len(), MAX_FINISHED);
        assert!(pending.wants_listing());
        assert!(!pending.wants_listing());
    }
}
