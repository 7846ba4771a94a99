//! Random sets, answers, strangers and crashes, against a specification that is plain and slow: it follows dependencies one by one and looks
//! at the server itself, where the engine has orders, waves and observations.

use std::collections::BTreeMap;

use super::server::{Object, Server, entry, key, name_of};
use crate::backoff::mix;
use crate::graph::Graph;
use crate::graph::deletion::{DeletionInput, DeletionState, TerminationPolicy, delete};
use crate::graph::entry::{Entry, OnDelete, OnExisting, OnImmutable, Orders};
use crate::graph::member::MemberKey;
use crate::graph::observation::{Health, MemberOwner, Rejection, RejectionKind};
use crate::graph::plan::{Action, Pruning, SetState};

/// Histories of each run.
const HISTORIES: u64 = 50_000;
const SEED: u64 = 0x0b7e_c75e_75a2_d0a5;
const MOST_ENTRIES: u64 = 60;

struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0) % limit.max(1)
    }

    /// True once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }
}

struct History {
    chance: Chance,
    server: Server,
    /// The sets so far, the newest last.
    versions: Vec<Version>,
    graph: Graph,
    under_way: Vec<Action>,
    is_deleting: bool,
    /// Whether others change objects too.
    has_strangers: bool,
    /// The members whose health fails after a write.
    failing: Vec<MemberKey>,
}

/// A set that a handler returned.
#[derive(Clone, Default)]
struct Version {
    entries: Vec<Entry>,
    orders: Orders,
}

impl Version {
    /// Whether one entry comes right before another: in an order if it names both, otherwise because of what entries depend on.
    fn is_before(
        &self,
        order: &[Vec<String>],
        one: &Entry,
        other: &Entry,
        by_default: bool,
    ) -> bool {
        let place = |entry: &Entry| order.iter().position(|group| group.contains(&entry.name));
        match (place(one), place(other)) {
            (Some(one), Some(other)) => one + 1 == other,
            _ => by_default,
        }
    }

    fn is_created_before(&self, one: &Entry, other: &Entry) -> bool {
        let by_default = other.depends_on.contains(&one.name);
        self.is_before(&self.orders.provision, one, other, by_default)
    }

    fn is_updated_before(&self, one: &Entry, other: &Entry) -> bool {
        let by_default = other.depends_on.contains(&one.name);
        self.is_before(&self.orders.update, one, other, by_default)
    }

    /// Whether one entry is deleted before another, directly or because of entries between them.
    fn is_deleted_before(&self, one: &Entry, other: &Entry) -> bool {
        self.entries.iter().any(|next| {
            let by_default = one.depends_on.contains(&next.name);
            self.is_before(&self.orders.terminate, one, next, by_default)
                && (next.name == other.name || self.is_deleted_before(next, other))
        })
    }
}

/// The entry that described a member last, and the version that did.
fn last<'a>(versions: &'a [Version], key: &MemberKey) -> Option<(usize, &'a Entry)> {
    let mut versions = versions.iter().enumerate().rev();
    versions.find_map(|(number, version)| {
        let entry = version.entries.iter().find(|entry| entry.key == *key)?;
        Some((number, entry))
    })
}

impl History {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(mix(seed));
        let has_strangers = chance.once_in(3);
        let mut history = Self {
            chance,
            server: Server {
                pruning: Pruning::Confirmed,
                version: 0,
                ..Server::default()
            },
            versions: Vec::new(),
            graph: Graph::new(Vec::new(), &Orders::default()).unwrap(),
            under_way: Vec::new(),
            is_deleting: false,
            has_strangers,
            failing: Vec::new(),
        };
        history.server.parallel = 1 + history.chance.index(8);
        history
    }

    /// Replaces the set by another one of some of the same members.
    fn renew(&mut self, size: u64) {
        // The numbers of members in the order of their dependencies, another one in each version.
        let salt = self.chance.below(u64::MAX);
        let mut numbers: Vec<u64> = (0..size).collect();
        numbers.sort_by_key(|number| mix(number ^ salt));
        numbers.retain(|_| !self.chance.once_in(4));
        let mut entries: Vec<Entry> = Vec::new();
        for number in numbers {
            let mut entry = entry(&number.to_string());
            for _ in 0..self.chance.below(4) {
                if !entries.is_empty() {
                    let at = self.chance.index(entries.len());
                    entry.depends_on.push(entries[at].name.clone());
                }
            }
            entry.on_existing = match self.chance.below(6) {
                0 => OnExisting::Adopt,
                1 => OnExisting::CreateOnly,
                _ => OnExisting::Refuse,
            };
            if self.chance.once_in(2) {
                entry.on_immutable = OnImmutable::Recreate;
            }
            entry.on_delete = match self.chance.below(6) {
                0 => OnDelete::Retain,
                1 => OnDelete::OnlyUnderWipeOut,
                _ => OnDelete::WithOwner,
            };
            let content = 1 + self.chance.below(2);
            self.server.contents.insert(entry.key.clone(), content);
            entries.push(entry);
        }
        let at = self.chance.below(u64::MAX);
        entries.sort_by_key(|entry| mix(entry.name.parse::<u64>().unwrap() ^ at));
        let orders = Orders {
            provision: self.order(&entries),
            update: self.order(&entries),
            terminate: self.order(&entries),
        };
        // An order may contradict what entries outside it depend on.
        let (graph, orders) = match Graph::new(entries.clone(), &orders) {
            Ok(graph) => (graph, orders),
            Err(_) => {
                let none = Orders::default();
                (Graph::new(entries.clone(), &none).unwrap(), none)
            }
        };
        self.graph = graph;
        self.versions.push(Version { entries, orders });
        self.server.version += 1;
        self.server.observe_all();
        for observation in self.server.observations.values_mut() {
            observation.rejection = None;
        }
        // A host records the new set before it acts on it.
        self.update_inventory();
    }

    /// Puts some of the entries into groups, or none.
    fn order(&mut self, entries: &[Entry]) -> Vec<Vec<String>> {
        if !self.chance.once_in(3) {
            return Vec::new();
        }
        let mut groups = vec![Vec::new(); 1 + self.chance.index(4)];
        for entry in entries {
            if self.chance.once_in(2) {
                let group = self.chance.index(groups.len());
                groups[group].push(entry.name.clone());
            }
        }
        groups.retain(|group| !group.is_empty());
        groups
    }

    fn plan(&self) -> Vec<Action> {
        if self.is_deleting {
            self.deletion().0
        } else {
            self.server.plan(&self.graph).actions
        }
    }

    fn deletion(&self) -> (Vec<Action>, DeletionState) {
        let deletion = delete(&DeletionInput {
            members: &self.server.members(),
            policy: self.server.policy,
            is_prepared: true,
            parallel: self.server.parallel,
            now: self.server.now,
        });
        (deletion.actions, deletion.state)
    }

    fn update_inventory(&mut self) {
        let mut actions = self.plan();
        actions.retain(Action::is_inventory_write);
        for action in actions {
            self.server.execute(&action, self.graph.entries());
        }
    }

    fn key_of(&self, action: &Action) -> MemberKey {
        match action {
            Action::Apply { entry, .. } => self.graph.entries()[*entry].key.clone(),
            Action::Observe(key)
            | Action::Record(key, _)
            | Action::Confirm(key, _)
            | Action::Remove(key, _)
            | Action::Forget(key)
            | Action::Mark(key, _)
            | Action::Delete(key, _)
            | Action::Release(key, _) => key.clone(),
        }
    }

    /// Lets one thing happen.
    fn step(&mut self) {
        match self.chance.below(10) {
            0..=4 => {
                self.update_inventory();
                let mut actions = self.plan();
                actions.retain(|action| !action.is_inventory_write());
                for action in actions {
                    if self.chance.once_in(6) {
                        continue;
                    }
                    let key = self.key_of(&action);
                    let observation = self.server.observations.entry(key).or_default();
                    assert!(
                        !observation.is_busy,
                        "{action:?} while another is under way"
                    );
                    observation.is_busy = true;
                    self.under_way.push(action);
                }
                assert!(self.under_way.len() <= self.server.parallel);
            }
            5..=7 => self.complete_one(),
            8 => self.become_ready(),
            _ if self.chance.once_in(8) => self.crash(),
            _ if self.has_strangers => self.meddle(),
            _ => self.server.wait(1),
        }
    }

    fn complete_one(&mut self) {
        if self.under_way.is_empty() {
            return;
        }
        let at = self.chance.index(self.under_way.len());
        let action = self.under_way.swap_remove(at);
        self.complete(&action);
    }

    fn complete(&mut self, action: &Action) {
        let key = self.key_of(action);
        let is_rejected = self.chance.once_in(10) && !matches!(action, Action::Observe(_));
        if is_rejected && !self.server.rejections.contains_key(&key) {
            let at = self.server.now.after(std::time::Duration::from_secs(1));
            let rejection = Rejection {
                kind: RejectionKind::RetryAt(at),
                message: "try again".to_owned(),
            };
            self.server.rejections.insert(key.clone(), rejection);
            self.server.execute(action, self.graph.entries());
            self.server.rejections.remove(&key);
            return;
        }
        self.check(action, &key);
        if self.failing.contains(&key) {
            self.server
                .healths
                .insert(key.clone(), Health::Failed("crashes".to_owned()));
        } else if self.chance.once_in(2) {
            self.server
                .healths
                .insert(key.clone(), Health::Waiting("starts".to_owned()));
        } else {
            self.server.healths.remove(&key);
        }
        self.server.execute(action, self.graph.entries());
    }

    fn become_ready(&mut self) {
        let waiting = |object: &&mut Object| matches!(object.health, Health::Waiting(_));
        let mut waiting: Vec<&mut Object> =
            self.server.objects.values_mut().filter(waiting).collect();
        if !waiting.is_empty() {
            let at = self.chance.index(waiting.len());
            waiting[at].health = Health::Ready;
            self.server.observe_all();
        }
    }

    /// Stops the host and starts another one. Each action under way is carried out, or is not.
    fn crash(&mut self) {
        for action in std::mem::take(&mut self.under_way) {
            if self.chance.once_in(2) {
                self.complete(&action);
            }
        }
        self.server.restart();
    }

    /// Somebody else deletes an object, takes its labels off, or creates one. The host learns of it, or does so later.
    fn meddle(&mut self) {
        let key = key(&self.chance.below(MOST_ENTRIES).to_string());
        match (self.chance.below(3), self.server.objects.get_mut(&key)) {
            (0, Some(_)) => {
                self.server.objects.remove(&key);
            }
            (1, Some(object)) => object.owner = MemberOwner::Unowned,
            (2, None) if self.chance.once_in(4) => {
                self.server.add(name_of(&key), MemberOwner::Unowned);
            }
            _ => {}
        }
        if self.chance.once_in(2) {
            self.server.observe(&key);
        }
    }

    // ---- The specification ----

    fn is_ours(&self, key: &MemberKey) -> bool {
        let nonce = self.server.inventory.get(key).map(|member| &member.nonce);
        let owner = self.server.objects.get(key).map(|object| &object.owner);
        matches!((owner, nonce), (Some(MemberOwner::ThisSet { nonce: own }), Some(nonce)) if own == nonce)
    }

    fn is_current(&self, entry: &Entry) -> bool {
        let object = self.server.objects.get(&entry.key);
        object.is_some_and(|object| {
            let is_written = self.is_ours(&entry.key)
                && object.content == self.server.content_of(&entry.key)
                && !object.is_marked;
            is_written || entry.on_existing == OnExisting::CreateOnly
        })
    }

    fn is_ready(&self, entry: &Entry) -> bool {
        let object = self.server.objects.get(&entry.key);
        self.is_current(entry) && object.is_some_and(|object| object.health == Health::Ready)
    }

    fn is_kept(&self, key: &MemberKey) -> bool {
        match self
            .server
            .inventory
            .get(key)
            .map(|member| member.facts.on_delete)
        {
            None | Some(OnDelete::WithOwner) => false,
            Some(OnDelete::Retain) => true,
            Some(OnDelete::OnlyUnderWipeOut) => self.server.policy != TerminationPolicy::WipeOut,
        }
    }

    /// Whether a write must wait until another entry is ready.
    fn must_wait(&self, entry: &Entry, is_new: bool, other: &Entry) -> bool {
        let Some(version) = self.versions.last() else {
            return false;
        };
        if !is_new {
            return version.is_updated_before(other, entry);
        }
        // A creation goes first where orders contradict one another.
        let has_orders = version.orders != Orders::default();
        let is_outdated = self.server.objects.contains_key(&other.key) && !self.is_current(other);
        version.is_created_before(other, entry) && !(has_orders && is_outdated)
    }

    /// Checks an action as it reaches the server.
    fn check(&self, action: &Action, key: &MemberKey) {
        let none = Version::default();
        let version = self.versions.last().unwrap_or(&none);
        let entries = &version.entries;
        let object = self.server.objects.get(key);
        match action {
            Action::Observe(_) => {}
            Action::Apply { entry, uid } => {
                let entry = &self.graph.entries()[*entry];
                assert!(!self.is_deleting, "{key} is written during the deletion");
                assert!(
                    self.server.inventory.contains_key(key),
                    "{key} is written before it is recorded"
                );
                if object.map(|object| &object.uid) == uid.as_ref()
                    && object.is_some_and(|object| object.owner == MemberOwner::Unowned)
                    && !self.has_strangers
                {
                    // An object that was released can get an entry again before the inventory forgets it.
                    let is_known = self.server.inventory[key].uid == *uid;
                    let is_adopted = entry.on_existing == OnExisting::Adopt;
                    assert!(is_known || is_adopted, "{key} is overwritten");
                }
                if !self.has_strangers {
                    for other in entries {
                        assert!(
                            self.is_ready(other) || !self.must_wait(entry, uid.is_none(), other),
                            "{action:?} before {}",
                            other.key
                        );
                    }
                }
            }
            Action::Delete(_, uid) => {
                if object.is_none_or(|object| object.uid != *uid) || self.has_strangers {
                    return;
                }
                assert!(self.is_ours(key), "{key} is not ours");
                if let Some(entry) = entries.iter().find(|entry| entry.key == *key)
                    && !self.is_deleting
                {
                    assert_eq!(entry.on_immutable, OnImmutable::Recreate);
                    assert!(self.server.immutable.contains(key));
                    return;
                }
                assert!(!self.is_kept(key), "{key} is to stay");
                if !self.is_deleting {
                    assert!(object.is_some_and(|object| object.is_marked));
                    assert!(
                        entries.iter().all(|entry| self.is_ready(entry)),
                        "too early"
                    );
                }
                let (number, entry) = last(&self.versions, key).unwrap();
                for other in self.server.inventory.keys().filter(|other| *other != key) {
                    let (others, dependent) = last(&self.versions, other).unwrap();
                    if others <= number && self.versions[others].is_deleted_before(dependent, entry)
                    {
                        assert!(
                            !self.is_ours(other) || self.is_kept(other),
                            "{key} is deleted before {other}"
                        );
                    }
                }
            }
            Action::Mark(..) => {
                assert!(!self.is_deleting && !entries.iter().any(|entry| entry.key == *key));
            }
            Action::Release(..) => assert!(self.is_kept(key), "{key} is to go"),
            other => panic!("{other:?} does not reach a server"),
        }
    }

    /// Lets everything come to rest, and nothing go wrong any more.
    fn settle(&mut self) {
        self.server.restart();
        self.under_way.clear();
        // Far more plans than any set needs.
        for _ in 0..10_000 {
            let actions = self.plan();
            for action in &actions {
                if !action.is_inventory_write() {
                    let key = self.key_of(action);
                    self.check(action, &key);
                }
                self.server.execute(action, self.graph.entries());
            }
            if !actions.is_empty() {
                continue;
            }
            let mut is_waiting = false;
            for object in self.server.objects.values_mut() {
                if matches!(object.health, Health::Waiting(_)) {
                    object.health = Health::Ready;
                    is_waiting = true;
                }
            }
            self.server.observe_all();
            if !is_waiting {
                return;
            }
        }
        panic!("it never comes to rest: {:?}", self.plan());
    }

    fn check_rest(&self) {
        let none = Version::default();
        let version = self.versions.last().unwrap_or(&none);
        let entries = &version.entries;
        for entry in entries {
            let is_new = !self.server.objects.contains_key(&entry.key);
            let may_go_on = entries.iter().all(|other| {
                let is_before = match is_new {
                    true => version.is_created_before(other, entry),
                    false => version.is_updated_before(other, entry),
                };
                !is_before || self.is_ready(other)
            });
            let object = self.server.objects.get(&entry.key);
            let is_foreign = object.is_some() && !self.is_ours(&entry.key);
            let has_problem = (is_foreign && entry.on_existing == OnExisting::Refuse)
                || self.server.rejections.contains_key(&entry.key)
                || self.failing.contains(&entry.key)
                || (self.server.immutable.contains(&entry.key)
                    && object.is_some()
                    && entry.on_immutable == OnImmutable::Fail)
                // Something can have been adopted or left by an earlier version, and be immutable.
                || (is_foreign && self.server.immutable.contains(&entry.key));
            if may_go_on && !has_problem {
                assert!(self.is_ready(entry), "{} never became ready", entry.key);
            }
        }
        let plan = self.server.plan(&self.graph);
        if entries.iter().all(|entry| self.is_ready(entry)) {
            assert_eq!(plan.state, SetState::Ready, "{plan:?}");
            for key in self.server.inventory.keys() {
                assert!(
                    entries.iter().any(|entry| entry.key == *key),
                    "{key} is left"
                );
            }
        } else {
            assert_eq!(plan.state, SetState::Failed, "{plan:?}");
        }
    }

    fn check_deleted(&self, before: &BTreeMap<MemberKey, Object>) {
        assert_eq!(self.deletion().1, DeletionState::Complete);
        assert!(self.server.inventory.is_empty());
        for (key, object) in before {
            let is_foreign = object.owner == MemberOwner::Unowned;
            if is_foreign && !self.has_strangers {
                assert!(self.server.objects.contains_key(key), "{key} was not ours");
            }
        }
        for (key, object) in &self.server.objects {
            assert_eq!(object.owner, MemberOwner::Unowned, "{key} is left");
        }
    }
}

fn run(seed: u64) {
    let mut history = History::new(seed);
    // Most are small, so that there are many.
    let size = 1 + match history.chance.below(10) {
        0 => history.chance.below(MOST_ENTRIES),
        _ => history.chance.below(8),
    };
    for number in 0..size {
        let key = key(&number.to_string());
        match history.chance.below(20) {
            0 => history
                .server
                .add(&number.to_string(), MemberOwner::Unowned),
            1 => history.failing.push(key),
            2 => {
                history.server.immutable.insert(key);
            }
            3 if history.chance.once_in(4) => {
                let rejection = Rejection {
                    kind: RejectionKind::Permanent,
                    message: "no".to_owned(),
                };
                history.server.rejections.insert(key, rejection);
            }
            _ => {}
        }
    }
    for _ in 0..=history.chance.below(3) {
        history.renew(size);
        for _ in 0..history.chance.below(20 + 4 * size) {
            history.step();
        }
        while !history.under_way.is_empty() {
            history.complete_one();
        }
    }
    history.settle();
    history.check_rest();
    if history.chance.once_in(2) {
        let before = history.server.objects.clone();
        history.is_deleting = true;
        history.server.rejections.clear();
        if history.chance.once_in(3) {
            history.server.policy = TerminationPolicy::WipeOut;
        }
        for _ in 0..history.chance.below(10 + 2 * size) {
            history.step();
        }
        history.settle();
        history.check_deleted(&before);
    }
}

#[test]
fn random_histories_meet_the_specification() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for number in (thread..HISTORIES).step_by(usize::try_from(threads).unwrap()) {
                    let seed = SEED ^ number;
                    if let Err(failure) = std::panic::catch_unwind(|| run(seed)) {
                        eprintln!("the history of seed {seed:#x} failed");
                        std::panic::resume_unwind(failure);
                    }
                }
            });
        }
    });
}
