//! Which objects exist, as the watch shows them.

use std::collections::BTreeSet;

use super::slot::{Gone, Live, Slot, Vain, Work};
use super::timers::Timer;
use super::{Action, Queue};
use crate::content::ContentDigest;
use crate::document::Document;
use crate::handler::WatchEvent;
use crate::loop_guard::LoopGuard;
use crate::request::{ObjectRef, api_version};
use crate::time::Timestamp;

/// An object as the watch shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// Names the object.
    pub key: ObjectRef,
    /// Its identity.
    pub uid: String,
    /// Its version, where the server's versions are numbers.
    pub version: Option<u64>,
    /// Of its content, without what the Configurator's own managers wrote.
    pub content: ContentDigest,
    /// Its parts that are kept.
    pub object: Document,
    /// Its deletionTimestamp, when it waits for this Configurator's finalizer.
    pub deleting_since: Option<Timestamp>,
    /// When it appeared. `None`: it may have existed and been selected before.
    pub appeared: Option<Timestamp>,
}

impl<R> Queue<R> {
    /// A listing of a namespace begins, or of all when it is empty: what it does not name is gone.
    pub fn list(&mut self, namespace: &str) {
        self.listing.insert(namespace.to_owned(), BTreeSet::new());
    }

    /// The listing of a namespace is complete. `recorded` are objects in it that were handled once and may have gone
    /// meanwhile. `is_last`: every namespace has been listed.
    pub fn listed(
        &mut self,
        namespace: &str,
        recorded: Vec<(ObjectRef, String)>,
        is_last: bool,
        now: Timestamp,
    ) -> Vec<Action<R>> {
        let seen = self.listing.remove(namespace).unwrap_or_default();
        let in_scope = |key: &ObjectRef| namespace.is_empty() || key.namespace == namespace;
        let missing: Vec<(ObjectRef, String)> = self
            .slots
            .iter()
            .filter(|(key, _)| in_scope(key) && !seen.contains(*key))
            .filter_map(|(key, slot)| Some((key.clone(), slot.live.as_ref()?.uid.clone())))
            .collect();
        for (key, uid) in missing {
            self.remove(&key, &uid, now);
        }
        for (key, uid) in recorded {
            let slot = self.slots.entry(key.clone()).or_insert_with(Slot::empty);
            let is_known = slot.live.as_ref().is_some_and(|live| live.uid == uid)
                || slot.gone.iter().any(|gone| gone.uid == uid);
            if !is_known {
                self.mourn(&key, uid, None, now);
            }
        }
        if is_last && !self.is_listed {
            self.is_listed = true;
            self.unsettled = self
                .slots
                .iter()
                .filter(|(_, slot)| slot.work != Work::Idle)
                .map(|(key, _)| key.clone())
                .collect();
        }
        self.finish_call(now)
    }

    /// The object exists, so.
    pub fn observe(&mut self, observed: Observed, now: Timestamp) -> Vec<Action<R>> {
        for scope in ["", observed.key.namespace.as_str()] {
            if let Some(seen) = self.listing.get_mut(scope) {
                seen.insert(observed.key.clone());
            }
        }
        let key = observed.key.clone();
        let known = self
            .slots
            .get(&key)
            .and_then(|slot| slot.live.as_ref())
            .map(|live| live.uid.clone());
        if let Some(uid) = known
            && uid != observed.uid
        {
            self.remove(&key, &uid, now);
        }
        let deleting_since = observed.deleting_since;
        let event = self.update(observed);
        if let Some(since) = deleting_since
            && self
                .live_mut(&key)
                .is_some_and(|live| !std::mem::replace(&mut live.is_deleting, true))
        {
            // The members of a set are not abandoned, however long their deletion takes.
            if self.configurator.sets.is_none() {
                let at = since.after(self.configurator.deletion.timeout);
                self.timer(at, Timer::Overdue(key.clone()));
            }
        }
        let starts = self.configurator.watch.starts_run(event);
        if let Some(live) = self.live_mut(&key) {
            if live.is_deleting {
                live.pending = (!live.deletion_done).then_some(WatchEvent::Deleted);
            } else if !starts {
                live.completed.get_or_insert(live.content);
            } else if live.completed != Some(live.content) {
                let first = live.completed.is_none() && live.pending == Some(WatchEvent::Added);
                live.pending = Some(if first { WatchEvent::Added } else { event });
            }
        }
        self.wake(&key, now);
        self.finish_call(now)
    }

    /// The object is gone.
    pub fn gone(&mut self, key: &ObjectRef, uid: &str, now: Timestamp) -> Vec<Action<R>> {
        self.remove(key, uid, now);
        self.finish_call(now)
    }

    /// Another object has this name, which is not this queue's business: the one that had it is gone.
    pub fn displaced(&mut self, key: &ObjectRef, uid: &str, now: Timestamp) -> Vec<Action<R>> {
        let known = self.slots.get(key).and_then(|slot| slot.live.as_ref());
        match known.map(|live| live.uid.clone()) {
            Some(known) if known != uid => self.gone(key, &known, now),
            _ => Vec::new(),
        }
    }

    /// These objects, by uid, are another host's business from now on. Runs of them that are under way end without
    /// consequence; nothing is remembered of them.
    pub fn let_go(&mut self, is_let_go: impl Fn(&str) -> bool, now: Timestamp) -> Vec<Action<R>> {
        let keys: Vec<ObjectRef> = self
            .slots
            .iter()
            .filter(|(_, slot)| {
                slot.live.as_ref().is_some_and(|live| is_let_go(&live.uid))
                    || slot.gone.iter().any(|gone| is_let_go(&gone.uid))
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            let Some(slot) = self.slots.get_mut(&key) else {
                continue;
            };
            slot.gone.retain(|gone| !is_let_go(&gone.uid));
            let live = slot.live.take_if(|live| is_let_go(&live.uid));
            if live.is_some() && std::mem::take(&mut slot.is_given_up) {
                self.actions.push(Action::Recover { key: key.clone() });
            }
            if !matches!(slot.work, Work::Running(_)) {
                self.abandon(&key, now);
            }
            if let Some(live) = live {
                if live.guard.is_looping() {
                    self.actions.push(Action::Loop {
                        key: key.clone(),
                        is_looping: false,
                    });
                }
                if let Some(resync) = live.resync {
                    self.timers.remove(&resync);
                }
            }
            self.settle(&key, false);
            self.wake(&key, now);
        }
        self.finish_call(now)
    }

    /// The identities of the objects that exist, and of those whose deletion is not dealt with.
    #[must_use]
    pub fn uids(&self) -> BTreeSet<&str> {
        let slots = self.slots.values();
        let uids = slots.flat_map(|slot| {
            let gone = slot.gone.iter().map(|gone| gone.uid.as_str());
            gone.chain(slot.live.as_ref().map(|live| live.uid.as_str()))
        });
        uids.collect()
    }

    /// The identity, and the digest of the content, of the object of this name; `None`: there is none.
    #[must_use]
    pub fn known(&self, key: &ObjectRef) -> Option<(&str, ContentDigest)> {
        let live = self.slots.get(key)?.live.as_ref()?;
        Some((&live.uid, live.content))
    }

    /// Takes over what was seen and says what kind of event it is.
    pub(super) fn update(&mut self, observed: Observed) -> WatchEvent {
        let canary = self.canary;
        let slot = self.slots.entry(observed.key).or_insert_with(Slot::empty);
        match &mut slot.live {
            Some(live) => {
                if live.content != observed.content {
                    live.vain = Vain::default();
                }
                if live
                    .awaited
                    .is_some_and(|awaited| observed.version.is_none_or(|seen| seen >= awaited))
                {
                    live.awaited = None;
                }
                live.version = observed.version;
                live.content = observed.content;
                live.object = observed.object;
                WatchEvent::Modified
            }
            none => {
                let is_canary = canary.is_some_and(|canary| canary.contains(&observed.uid));
                *none = Some(Live {
                    is_canary,
                    awaits_canary_run: is_canary,
                    uid: observed.uid,
                    version: observed.version,
                    content: observed.content,
                    object: observed.object,
                    is_deleting: false,
                    pending: Some(WatchEvent::Added),
                    completed: None,
                    vain: Vain::default(),
                    awaited: None,
                    guard: LoopGuard::default(),
                    resync: None,
                    occasion: observed.appeared,
                    deletion_done: false,
                    renews: false,
                });
                if !self.configurator.watch.starts_run(WatchEvent::Added)
                    && let Some(live) = none
                {
                    live.pending = None;
                }
                WatchEvent::Added
            }
        }
    }

    pub(super) fn remove(&mut self, key: &ObjectRef, uid: &str, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let Some(live) = slot.live.take_if(|live| live.uid == uid) else {
            return;
        };
        if std::mem::take(&mut slot.is_given_up) {
            self.actions.push(Action::Recover { key: key.clone() });
        }
        if let Some(resync) = live.resync {
            self.timers.remove(&resync);
        }
        let was_running = matches!(slot.work, Work::Running(_));
        if !was_running {
            self.abandon(key, now);
        }
        if live.deletion_done {
            self.actions.push(Action::Forget {
                key: key.clone(),
                uid: live.uid,
            });
        } else {
            self.mourn(key, live.uid, Some((live.object, live.content)), now);
        }
        self.settle(key, false);
    }

    /// Remembers that an object is gone until that has been dealt with.
    pub(super) fn mourn(
        &mut self,
        key: &ObjectRef,
        uid: String,
        last: Option<(Document, ContentDigest)>,
        now: Timestamp,
    ) {
        if self.deletion_chain().is_none() {
            self.actions.push(Action::Forget {
                key: key.clone(),
                uid,
            });
            return;
        }
        let (object, content) =
            last.unwrap_or_else(|| (self.identity_of(key, &uid), ContentDigest::default()));
        let slot = self.slots.entry(key.clone()).or_insert_with(Slot::empty);
        slot.gone.push_back(Gone {
            uid,
            object,
            content,
            vain: Vain::default(),
        });
        self.wake(key, now);
    }

    /// All that is left of an object that went while nobody watched.
    pub(super) fn identity_of(&self, key: &ObjectRef, uid: &str) -> Document {
        let watch = &self.configurator.watch;
        let api_version = api_version(&watch.group, &watch.version);
        let mut metadata = serde_json::json!({"name": key.name, "uid": uid});
        if let (false, Some(metadata)) = (key.namespace.is_empty(), metadata.as_object_mut()) {
            metadata.insert("namespace".into(), key.namespace.clone().into());
        }
        let object = serde_json::json!({"apiVersion": api_version, "kind": watch.kind, "metadata": metadata});
        Document::of(&object).unwrap_or_else(|_| Document::empty_object())
    }
}
