//! A server with members, and a host that executes actions on it at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::graph::Graph;
use crate::graph::deletion::{
    DeletionInput, DeletionState, RemovalState, TerminationPolicy, delete,
};
use crate::graph::entry::{Entry, OnDelete, OnExisting, OnImmutable, Orders};
use crate::graph::member::{Inventory, Member, MemberKey};
use crate::graph::members::Members;
use crate::graph::observation::{
    Found, Health, MemberOwner, Observation, Observations, Present, Rejection, RejectionKind,
};
use crate::graph::plan::{Action, EntryState, Plan, PlanInput, Pruning, SetState, plan};
use crate::time::Timestamp;

pub(super) fn key(name: &str) -> MemberKey {
    MemberKey::Kubernetes {
        group: String::new(),
        kind: "ConfigMap".to_owned(),
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    }
}

pub(super) fn name_of(key: &MemberKey) -> &str {
    match key {
        MemberKey::Kubernetes { name, .. } | MemberKey::Secret { name, .. } => name,
        MemberKey::Config { key, .. } => key,
    }
}

/// Describes an entry. `a: b c` has the name `a` and depends on `b` and `c`.
pub(super) fn entry(text: &str) -> Entry {
    let (name, depends_on) = text.split_once(':').unwrap_or((text, ""));
    Entry {
        name: name.to_owned(),
        key: key(name),
        depends_on: depends_on.split_whitespace().map(str::to_owned).collect(),
        on_existing: OnExisting::Refuse,
        on_immutable: OnImmutable::Fail,
        on_delete: OnDelete::WithOwner,
        timeout: None,
        provides: None,
    }
}

pub(super) fn graph(entries: &[&str]) -> Graph {
    let entries = entries.iter().map(|text| entry(text)).collect();
    Graph::new(entries, &Orders::default()).unwrap()
}

#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) uid: String,
    pub(super) owner: MemberOwner,
    pub(super) is_marked: bool,
    pub(super) is_terminating: bool,
    /// The version of the entry that was written last.
    pub(super) content: u64,
    pub(super) health: Health,
    pub(super) unready_since: Timestamp,
}

/// A server, an inventory, and what a host has observed.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) objects: BTreeMap<MemberKey, Object>,
    /// The health of members after a write. Others are ready.
    pub(super) healths: BTreeMap<MemberKey, Health>,
    /// The answers to writes and deletions. Others succeed.
    pub(super) rejections: BTreeMap<MemberKey, Rejection>,
    /// Members that reject every change.
    pub(super) immutable: BTreeSet<MemberKey>,
    pub(super) inventory: Inventory,
    pub(super) observations: Observations,
    pub(super) now: Timestamp,
    pub(super) version: u64,
    pub(super) pruning: Pruning,
    pub(super) policy: TerminationPolicy,
    pub(super) parallel: usize,
    /// The content of entries. Others have 1.
    pub(super) contents: BTreeMap<MemberKey, u64>,
    pub(super) numbers: u64,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            healths: BTreeMap::new(),
            rejections: BTreeMap::new(),
            immutable: BTreeSet::new(),
            inventory: Inventory::new(),
            observations: Observations::new(),
            now: Timestamp::from_millis(0),
            version: 1,
            pruning: Pruning::UpTo {
                percent: 50,
                from: 5,
            },
            policy: TerminationPolicy::Delete,
            parallel: 100,
            contents: BTreeMap::new(),
            numbers: 0,
        }
    }
}

impl Server {
    fn number(&mut self) -> String {
        self.numbers += 1;
        self.numbers.to_string()
    }

    pub(super) fn content_of(&self, key: &MemberKey) -> u64 {
        self.contents.get(key).copied().unwrap_or(1)
    }

    /// Adds an object that somebody else created.
    pub(super) fn add(&mut self, name: &str, owner: MemberOwner) {
        let uid = self.number();
        let object = Object {
            uid,
            owner,
            is_marked: false,
            is_terminating: false,
            content: 0,
            health: Health::Ready,
            unready_since: self.now,
        };
        self.objects.insert(key(name), object);
        self.observe(&key(name));
    }

    pub(super) fn get(&mut self, name: &str) -> &mut Object {
        self.objects.get_mut(&key(name)).unwrap()
    }

    /// Reads a member, if the host watches it.
    pub(super) fn observe(&mut self, key: &MemberKey) {
        if self.observations.contains_key(key) {
            self.read(key);
        }
    }

    pub(super) fn observe_all(&mut self) {
        let keys: Vec<MemberKey> = self.observations.keys().cloned().collect();
        for key in &keys {
            self.read(key);
        }
    }

    pub(super) fn read(&mut self, key: &MemberKey) {
        let differs = |object: &Object| object.content != self.content_of(key);
        let found = self.objects.get(key).map_or(Found::Absent, |object| {
            Found::Present(Box::new(Present {
                uid: object.uid.clone(),
                owner: object.owner.clone(),
                is_terminating: object.is_terminating,
                is_marked: object.is_marked,
                differs: differs(object),
                health: object.health.clone(),
                unready_since: object.unready_since,
            }))
        });
        let before = self.observations.entry(key.clone()).or_default();
        if before.found != found {
            before.rejection = None;
        }
        before.found = found;
    }

    fn answer(&mut self, key: &MemberKey, rejection: Option<Rejection>) {
        self.read(key);
        let observation = self.observations.entry(key.clone()).or_default();
        observation.rejection = rejection;
        observation.is_busy = false;
    }

    pub(super) fn plan(&self, graph: &Graph) -> Plan {
        let input = PlanInput {
            graph,
            version: self.version,
            policy: self.policy,
            parallel: self.parallel,
            pruning: self.pruning,
            now: self.now,
        };
        plan(&input, &mut self.members())
    }

    pub(super) fn members(&self) -> Members {
        Members::new(self.inventory.clone(), self.observations.clone())
    }

    /// Executes an action. A rejected one changes nothing.
    pub(super) fn execute(&mut self, action: &Action, entries: &[Entry]) {
        match action {
            Action::Observe(key) => self.answer(key, None),
            Action::Record(key, facts) => {
                let nonce = format!("nonce {}", self.number());
                let member = self.inventory.entry(key.clone()).or_insert_with(|| Member {
                    facts: facts.clone(),
                    removed_in: None,
                    nonce,
                    uid: None,
                });
                member.facts = facts.clone();
                member.removed_in = None;
            }
            Action::Confirm(key, uid) => {
                if let Some(member) = self.inventory.get_mut(key) {
                    member.uid = Some(uid.clone());
                }
            }
            Action::Remove(key, version) => {
                if let Some(member) = self.inventory.get_mut(key) {
                    member.removed_in = Some(*version);
                }
            }
            Action::Forget(key) => {
                self.inventory.remove(key);
            }
            Action::Apply { entry, uid } => {
                let key = entries[*entry].key.clone();
                let mut rejection = self.rejections.get(&key).cloned();
                if uid.is_some() && self.immutable.contains(&key) {
                    rejection.get_or_insert_with(|| Rejection {
                        kind: RejectionKind::Immutable,
                        message: "the field is immutable".to_owned(),
                    });
                }
                if rejection.is_none() {
                    self.apply(&key, uid.as_ref());
                }
                self.answer(&key, rejection);
            }
            Action::Mark(key, uid) => {
                if let Some(object) = self.with_uid(key, uid) {
                    object.is_marked = true;
                }
                self.answer(key, None);
            }
            Action::Delete(key, uid) => {
                let rejection = self.rejections.get(key).cloned();
                // The host names the resource version too, so an object whose labels have changed stays.
                let is_ours =
                    |object: &mut Object| matches!(object.owner, MemberOwner::ThisSet { .. });
                if rejection.is_none() && self.with_uid(key, uid).is_some_and(is_ours) {
                    self.objects.remove(key);
                }
                self.answer(key, rejection);
            }
            Action::Release(key, uid) => {
                if let Some(object) = self.with_uid(key, uid) {
                    object.owner = MemberOwner::Unowned;
                }
                self.answer(key, None);
            }
        }
    }

    fn with_uid(&mut self, key: &MemberKey, uid: &str) -> Option<&mut Object> {
        self.objects
            .get_mut(key)
            .filter(|object| object.uid == *uid)
    }

    fn apply(&mut self, key: &MemberKey, uid: Option<&String>) {
        let found = self.objects.get(key).map(|object| &object.uid);
        if found != uid {
            return;
        }
        let uid = found.cloned().unwrap_or_else(|| self.number());
        let nonce = self.inventory[key].nonce.clone();
        let health = self.healths.get(key).cloned();
        let object = Object {
            uid,
            owner: MemberOwner::ThisSet { nonce },
            is_marked: false,
            is_terminating: false,
            content: self.content_of(key),
            health: health.unwrap_or(Health::Ready),
            unready_since: self.now,
        };
        self.objects.insert(key.clone(), object);
    }

    /// Plans and executes until nothing is left to do. Returns the actions of each plan, and the end.
    pub(super) fn run(&mut self, graph: &Graph) -> String {
        let mut text = String::new();
        loop {
            let plan = self.plan(graph);
            if plan.actions.is_empty() {
                return text + &self.end(graph, &plan);
            }
            text += &line(&plan.actions, graph.entries());
            for action in &plan.actions {
                self.execute(action, graph.entries());
            }
        }
    }

    fn end(&self, graph: &Graph, plan: &Plan) -> String {
        let mut text = match plan.state {
            SetState::Unconfirmed { pruned, members } => {
                format!("prunes {pruned} of {members} after a confirmation\n")
            }
            state => format!("{state:?}\n").to_lowercase(),
        };
        for (index, entry) in graph.entries().iter().enumerate() {
            let Some(reason) = plan.reason(graph, index) else {
                continue;
            };
            let state = match plan.entries[index] {
                EntryState::Failed(_) => "failed",
                EntryState::Blocked { .. } => "blocked",
                _ => "waiting",
            };
            text += &format!("  {}: {state}: {reason}\n", entry.name);
        }
        for (key, state) in &plan.removals {
            text += &removal_line(key, state);
        }
        if let Some(at) = plan.wake_at {
            let wait = at.since(self.now);
            text += &format!("  plans again after {} s\n", wait.as_secs());
        }
        text
    }

    /// Deletes the set. Returns the actions of each plan, and the end.
    pub(super) fn delete(&mut self) -> String {
        let mut text = String::new();
        loop {
            let deletion = delete(&DeletionInput {
                members: &self.members(),
                policy: self.policy,
                is_prepared: true,
                parallel: self.parallel,
                now: self.now,
            });
            if deletion.actions.is_empty() {
                text += &format!("{:?}\n", deletion.state).to_lowercase();
                for (key, state) in &deletion.members {
                    text += &removal_line(key, state);
                }
                assert_eq!(
                    deletion.state == DeletionState::Complete,
                    self.inventory.is_empty()
                );
                return text;
            }
            text += &line(&deletion.actions, &[]);
            for action in &deletion.actions {
                self.execute(action, &[]);
            }
        }
    }

    /// Stops the host and starts it again.
    pub(super) fn restart(&mut self) {
        self.observations.clear();
    }

    pub(super) fn wait(&mut self, seconds: u64) {
        self.now = self.now.after(Duration::from_secs(seconds));
    }

    pub(super) fn change(&mut self, name: &str) {
        let content = self.content_of(&key(name)) + 1;
        self.contents.insert(key(name), content);
        self.observe(&key(name));
    }

    pub(super) fn observation(&mut self, name: &str) -> &mut Observation {
        self.observations.entry(key(name)).or_default()
    }
}

fn removal_line(key: &MemberKey, state: &RemovalState) -> String {
    match state {
        RemovalState::Blocked { by } => format!("  - {}: after {}\n", name_of(key), name_of(by)),
        state => format!("  - {}: {state:?}\n", name_of(key)),
    }
}

/// `observe a b; create c`
fn line(actions: &[Action], entries: &[Entry]) -> String {
    let mut words: Vec<(&str, Vec<&str>)> = Vec::new();
    for action in actions {
        let (verb, key) = match action {
            Action::Observe(key) => ("observe", key),
            Action::Record(key, _) => ("record", key),
            Action::Confirm(key, _) => ("confirm", key),
            Action::Remove(key, _) => ("remove", key),
            Action::Forget(key) => ("forget", key),
            Action::Apply { entry, uid: None } => ("create", &entries[*entry].key),
            Action::Apply { entry, .. } => ("update", &entries[*entry].key),
            Action::Mark(key, _) => ("mark", key),
            Action::Delete(key, _) => ("delete", key),
            Action::Release(key, _) => ("release", key),
        };
        match words.last_mut() {
            Some((last, names)) if *last == verb => names.push(name_of(key)),
            _ => words.push((verb, vec![name_of(key)])),
        }
    }
    let words: Vec<String> = words
        .iter()
        .map(|(verb, names)| format!("{verb} {}", names.join(" ")))
        .collect();
    words.join("; ") + "\n"
}
