use std::collections::VecDeque;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::backoff::mix;

const LEASE: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(3);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(i64::try_from(millis).unwrap())
}

#[test]
fn shards_are_spread_evenly_and_few_change_hands() {
    let of = |members: &[&'static str]| assign(&members.iter().copied().collect(), 64);
    assert!(of(&[]).is_empty());
    let three = of(&["a", "b", "c"]);
    let four = of(&["a", "b", "c", "d"]);
    let loads = |spread: &[&str]| {
        let mut loads: BTreeMap<String, usize> = BTreeMap::new();
        for member in spread {
            *loads.entry((*member).to_owned()).or_default() += 1;
        }
        loads.into_values().collect::<Vec<_>>()
    };
    assert_eq!(loads(&four), [16, 16, 16, 16]);
    let moved = three
        .iter()
        .zip(&four)
        .filter(|(before, after)| before != after);
    // 16 must move; spread anew without regard to who had what, 48 would.
    assert!(moved.count() <= 24);
}

#[test]
fn objects_fall_evenly_on_shards() {
    let mut loads = [0_u32; 16];
    for number in 0..16_000 {
        loads[usize::from(shard_of(&format!("uid-{number}"), 16))] += 1;
    }
    assert!(
        loads.iter().all(|load| (850..1150).contains(load)),
        "{loads:?}"
    );
    assert_eq!(shard_of("anything", 1), 0);
    assert_eq!(shard_of("anything", 0), 0);
}

#[test]
fn a_claim_that_is_answered_with_an_old_version_is_retried_after_a_tick() {
    let mut ring = Ring::new(RingOptions {
        host: "b".to_owned(),
        shards: 1,
        lease: LEASE,
        patience: PATIENCE,
    });
    let held_by = |host: &str, version: &str| Lease {
        holder: Some(host.to_owned()),
        version: version.to_owned(),
        duration: LEASE,
        transitions: 0,
    };
    let (own, shard) = (LeaseId::Host("b".to_owned()), LeaseId::Shard(0));
    let asked = ring.asked();
    ring.listed(vec![(shard.clone(), held_by("a", "12"))], asked, at(0));
    let expired = at(0).after(LEASE + PATIENCE);
    ring.act(expired);
    ring.wrote(&own, Some(held_by("b", "13")), expired, expired);
    let claims = |ring: &mut Ring, now: Timestamp| {
        let actions = ring.act(now).into_iter();
        let is_claim = |action: &RingAction| {
            matches!(
                action,
                RingAction::Claim {
                    lease: LeaseId::Shard(0),
                    ..
                }
            )
        };
        actions.filter(is_claim).count()
    };
    assert_eq!(claims(&mut ring, expired), 1);
    ring.wrote(&shard, Some(held_by("b", "12")), expired, expired);
    assert_eq!(claims(&mut ring, expired), 0);
    let later = expired.after(ring.tick());
    assert_eq!(claims(&mut ring, later), 1);
}

/// What the hosts know of each other, as one API has it.
#[derive(Default, Clone)]
struct Server {
    leases: BTreeMap<LeaseId, Lease>,
    version: u64,
}

struct Host {
    name: String,
    ring: Ring,
    /// Answers and events on their way.
    inbox: VecDeque<(u64, Message)>,
    /// Until then it does nothing, and keeps what it has got.
    paused_until: u64,
    /// Shards in which it believes it may act, with the end of that belief.
    begun: BTreeSet<u16>,
    /// Shards in which another may act until then, and whether they are to end meanwhile.
    unsettled: BTreeMap<u16, (u64, bool)>,
}

#[derive(Clone)]
enum Message {
    Changed(LeaseId, Option<Lease>),
    Wrote(LeaseId, Option<Lease>, u64),
    Found(LeaseId, Option<Lease>, Asked),
    Listed(Vec<(LeaseId, Lease)>, Asked),
    Failed(LeaseId),
}

struct World {
    server: Server,
    /// The host that began last in each shard, and how often the Lease had changed hands. It is never restored.
    fences: BTreeMap<u16, (String, u32)>,
    hosts: Vec<Host>,
    now: u64,
    seed: u64,
    /// Of 100 writes, so many are not carried out, and of as many the answer is lost.
    trouble: u64,
    text: String,
}

impl World {
    fn new(names: &[&str], shards: u16, trouble: u64, seed: u64) -> Self {
        let mut world = Self {
            server: Server::default(),
            fences: BTreeMap::new(),
            hosts: Vec::new(),
            now: 0,
            seed,
            trouble,
            text: String::new(),
        };
        for name in names {
            world.join(name, shards);
        }
        world
    }

    fn join(&mut self, name: &str, shards: u16) {
        let mut ring = Ring::new(RingOptions {
            host: name.to_owned(),
            shards,
            lease: LEASE,
            patience: PATIENCE,
        });
        let all = self.server.leases.iter();
        let all = all.map(|(id, lease)| (id.clone(), lease.clone())).collect();
        let asked = ring.asked();
        ring.listed(all, asked, at(self.now));
        self.hosts.push(Host {
            name: name.to_owned(),
            ring,
            inbox: VecDeque::new(),
            paused_until: 0,
            begun: BTreeSet::new(),
            unsettled: BTreeMap::new(),
        });
    }

    /// The server goes back to what it was. Nothing arrives that was on its way, and every host lists again.
    fn restore(&mut self, backup: Server) {
        self.server = backup;
        for index in 0..self.hosts.len() {
            let inbox = std::mem::take(&mut self.hosts[index].inbox);
            for (_, message) in inbox {
                if let Message::Wrote(id, ..) | Message::Failed(id) = message {
                    self.send(index, 0, Message::Failed(id));
                }
            }
            let asked = self.hosts[index].ring.asked();
            let all = self.server.leases.clone().into_iter().collect();
            let delay = self.chance(300);
            self.send(index, delay, Message::Listed(all, asked));
        }
    }

    /// Some seconds pass, and one host may hang after them.
    fn stumble(&mut self) {
        let until = self.now + 2_000 + self.chance(20_000);
        let host = usize::try_from(self.chance(3)).unwrap();
        let length = self.chance(40_000);
        if let Some(host) = self.hosts.get_mut(host) {
            host.paused_until = until + length;
        }
        self.run_until(until);
    }

    /// Two minutes pass without trouble. Returns the owners of eight shards.
    fn owners_in_the_end(&mut self) -> Vec<&str> {
        self.trouble = 0;
        self.run_until(self.now + 120_000);
        self.owners(8)
    }

    fn chance(&mut self, limit: u64) -> u64 {
        self.seed = mix(self.seed);
        self.seed % limit
    }

    fn step(&mut self, millis: u64) {
        self.now += millis;
        let now = self.now;
        for index in 0..self.hosts.len() {
            if self.hosts[index].paused_until > now {
                continue;
            }
            while let Some((due, _)) = self.hosts[index].inbox.front()
                && *due <= now
            {
                let (_, message) = self.hosts[index].inbox.pop_front().unwrap();
                let ring = &mut self.hosts[index].ring;
                match message {
                    Message::Changed(id, Some(lease)) => ring.observe(id, lease, at(now)),
                    Message::Changed(id, None) => ring.gone(&id),
                    Message::Wrote(id, lease, sent) => ring.wrote(&id, lease, at(sent), at(now)),
                    Message::Found(id, Some(lease), asked) => {
                        ring.found(id, lease, asked, at(now));
                    }
                    Message::Found(id, None, _) => ring.gone(&id),
                    Message::Listed(all, asked) => ring.listed(all, asked, at(now)),
                    Message::Failed(id) => ring.failed(&id, at(now)),
                }
            }
            for action in self.hosts[index].ring.act(at(now)) {
                self.carry_out(index, action);
            }
            let host = &mut self.hosts[index];
            let settled = host.unsettled.extract_if(.., |_, (until, _)| *until <= now);
            for (shard, (_, is_ending)) in settled {
                match is_ending {
                    true => host.ring.quiet(shard),
                    false => drop(host.begun.insert(shard)),
                }
            }
        }
        self.hosts.retain(|host| !host.ring.is_gone(at(now)));
        self.check();
    }

    fn carry_out(&mut self, index: usize, action: RingAction) {
        let now = self.now;
        let me = self.hosts[index].name.clone();
        let (id, expected, lease) = match action {
            RingAction::Begin { shard, transitions } => {
                self.text += &format!("{now} {me} begins {shard}\n");
                let fence = self.fences.insert(shard, (me.clone(), transitions));
                let is_behind =
                    fence.is_some_and(|(holder, term)| holder != me && term >= transitions);
                let host = &mut self.hosts[index];
                if is_behind {
                    let span = u64::try_from((LEASE + PATIENCE).as_millis()).unwrap();
                    host.unsettled.insert(shard, (now + span, false));
                } else {
                    host.begun.insert(shard);
                }
                return;
            }
            RingAction::Drain(shard) | RingAction::Lose(shard) => {
                self.text += &format!("{now} {me} ends {shard}\n");
                let host = &mut self.hosts[index];
                host.begun.remove(&shard);
                match host.unsettled.get_mut(&shard) {
                    Some((_, is_ending)) => *is_ending = true,
                    None => host.ring.quiet(shard),
                }
                return;
            }
            RingAction::Claim {
                lease,
                version,
                transitions,
            } => {
                let claimed = Lease {
                    holder: Some(me),
                    version: String::new(),
                    duration: LEASE,
                    transitions,
                };
                (lease, version, Some(claimed))
            }
            RingAction::Release { lease, version } => {
                let free = Lease {
                    holder: None,
                    version: String::new(),
                    duration: LEASE,
                    transitions: self
                        .server
                        .leases
                        .get(&lease)
                        .map_or(0, |lease| lease.transitions),
                };
                (lease, Some(version), Some(free))
            }
            RingAction::Remove { lease, version } => (lease, Some(version), None),
        };
        let trouble = self.chance(100);
        let is_carried_out = trouble >= self.trouble;
        let is_answered = trouble < 100 - self.trouble;
        let there = self
            .server
            .leases
            .get(&id)
            .map(|lease| lease.version.clone());
        let is_right = there == expected;
        let mut answer = Message::Failed(id.clone());
        if is_carried_out && is_right {
            self.server.version += 1;
            let lease = lease.map(|lease| Lease {
                version: self.server.version.to_string(),
                ..lease
            });
            match &lease {
                Some(lease) => drop(self.server.leases.insert(id.clone(), lease.clone())),
                None => drop(self.server.leases.remove(&id)),
            }
            for other in 0..self.hosts.len() {
                let delay = self.chance(800);
                self.send(other, delay, Message::Changed(id.clone(), lease.clone()));
            }
            if is_answered {
                answer = Message::Wrote(id, lease, now);
            }
        } else if is_carried_out {
            let found = self.server.leases.get(&id).cloned();
            let asked = self.hosts[index].ring.asked();
            let delay = self.chance(300);
            self.send(index, delay, Message::Found(id, found, asked));
        }
        let delay = self.chance(300);
        self.send(index, delay, answer);
    }

    /// What is sent to one host arrives in order.
    fn send(&mut self, host: usize, delay: u64, message: Message) {
        let inbox = &mut self.hosts[host].inbox;
        let last = inbox.back().map_or(0, |(due, _)| *due);
        inbox.push_back(((self.now + delay).max(last), message));
    }

    /// Nobody may act in a shard in which another may.
    fn check(&self) {
        let mut entitled: BTreeMap<u16, &str> = BTreeMap::new();
        for host in &self.hosts {
            for shard in &host.begun {
                let is_entitled = host
                    .ring
                    .ends(*shard)
                    .is_some_and(|ends| at(self.now) < ends);
                if is_entitled && let Some(other) = entitled.insert(*shard, &host.name) {
                    panic!(
                        "{}: {} and {other} both have shard {shard}\n{}",
                        self.now, host.name, self.text
                    );
                }
            }
        }
    }

    fn run_until(&mut self, millis: u64) -> &mut Self {
        while self.now < millis {
            self.step(100);
        }
        self
    }

    /// Who works in each shard.
    fn owners(&self, shards: u16) -> Vec<&str> {
        let owner = |shard: u16| {
            let found = self.hosts.iter().find(|host| {
                host.begun.contains(&shard)
                    && host
                        .ring
                        .ends(shard)
                        .is_some_and(|ends| at(self.now) < ends)
            });
            found.map_or("", |host| host.name.as_str())
        };
        (0..shards).map(owner).collect()
    }
}

fn check(world: &World, expected: Expect) {
    expected.assert_eq(&world.text);
}

#[test]
fn a_second_host_gets_its_share_and_gives_it_back() {
    let mut world = World::new(&["one"], 4, 0, 1);
    world.run_until(3_000).join("two", 4);
    world.run_until(8_000);
    world.hosts[1].ring.leave();
    world.run_until(12_000);
    assert_eq!(world.hosts.len(), 1);
    check(
        &world,
        expect![[r#"
        900 one begins 0
        900 one begins 1
        1100 one begins 2
        1100 one begins 3
        3200 one ends 1
        3200 one ends 2
        4800 two begins 1
        4800 two begins 2
        8100 two ends 1
        8100 two ends 2
        9700 one begins 1
        9800 one begins 2
    "#]],
    );
}

#[test]
fn a_host_that_is_paused_loses_its_shards_before_another_has_them() {
    let mut world = World::new(&["one", "two"], 2, 0, 1);
    world.run_until(5_000);
    world.text.clear();
    world.hosts[0].paused_until = 40_000;
    world.run_until(60_000);
    check(
        &world,
        expect![[r#"
        18700 two begins 0
        40000 one ends 0
        40200 two ends 0
        41500 one begins 0
    "#]],
    );
}

#[test]
fn a_lease_that_is_renewed_is_never_taken() {
    // Times of the server are not looked at: only whether anything changes.
    let mut world = World::new(&["one"], 1, 0, 1);
    world.run_until(1_000).join("two", 1);
    world.run_until(120_000);
    let begun = world.text.matches("begins").count();
    let ended = world.text.matches("ends").count();
    assert!(begun <= 2 && ended < begun, "{}", world.text);
}

proptest! {
    #[test]
    fn nobody_has_more_than_one_shard_more_than_another(
        members in prop::collection::btree_set("[a-z]-[0-9a-f]{8}", 1..9), shards in 1_u16..40,
    ) {
        let members: BTreeSet<&str> = members.iter().map(String::as_str).collect();
        let spread = assign(&members, shards);
        prop_assert_eq!(spread.len(), usize::from(shards));
        let loads = members.iter().map(|member| spread.iter().filter(|owner| *owner == member).count());
        let (least, most) = (loads.clone().min().unwrap(), loads.max().unwrap());
        prop_assert!(most - least <= 1, "{:?}", spread);
    }
}

/// Three hosts.
const NAMES: [&str; 3] = ["a", "b", "c"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_shard_is_never_in_two_hands_and_ends_up_where_it_belongs(seed: u64, trouble in 0_u64..30) {
        let mut world = World::new(&NAMES, 8, trouble, seed);
        for _ in 0..12 {
            world.stumble();
        }
        prop_assert_eq!(world.owners_in_the_end(), assign(&NAMES.into(), 8));
    }
}

/// Two hosts whose server goes back to when there was one.
fn restored(is_listed: bool) -> World {
    let mut world = World::new(&["one"], 4, 0, 1);
    world.run_until(3_000);
    let backup = world.server.clone();
    world.join("two", 4);
    world.run_until(60_000);
    world.text.clear();
    world.restore(backup);
    if !is_listed {
        // Only an answer about the Lease shows it.
        for host in &mut world.hosts {
            host.inbox
                .retain(|(_, message)| !matches!(message, Message::Listed(..)));
        }
    }
    world.run_until(150_000);
    world
}

#[test]
fn what_a_restored_server_says_counts() {
    let world = restored(true);
    let members: BTreeSet<&str> = ["one", "two"].into_iter().collect();
    assert_eq!(world.owners(4), assign(&members, 4), "{}", world.text);
}

#[test]
fn a_refused_renewal_shows_that_the_server_was_restored() {
    let mut world = restored(false);
    assert!(
        world.owners(4).iter().all(|owner| !owner.is_empty()),
        "{}",
        world.text
    );
    let rolled_back = world.hosts[0].ring.take_rolled_back();
    assert!(
        rolled_back.contains(&LeaseId::Host("one".into())),
        "{rolled_back:?}"
    );
}

#[test]
fn an_answer_on_its_way_for_long_is_not_taken_for_a_restored_server() {
    let mut world = World::new(&["one"], 1, 0, 1);
    world.run_until(3_000);
    let ring = &mut world.hosts[0].ring;
    let id = LeaseId::Shard(0);
    let asked = ring.asked();
    let before = world.server.leases[&id].clone();
    let newer = Lease {
        version: "1000".into(),
        ..before.clone()
    };
    ring.observe(id.clone(), newer, at(3_000));
    ring.found(id.clone(), before.clone(), asked, at(3_000));
    ring.listed(vec![(id.clone(), before)], asked, at(3_000));
    assert_eq!(ring.take_rolled_back(), []);
    assert!(ring.ends(0).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_shard_is_never_in_two_hands_though_the_server_is_restored(seed: u64, trouble in 0_u64..30) {
        let mut world = World::new(&NAMES, 8, trouble, seed);
        let mut backups = Vec::new();
        for _ in 0..12 {
            backups.push(world.server.clone());
            world.stumble();
            if world.chance(3) == 0 {
                // Later backups belong to a history that no longer exists.
                let kept = world.chance(u64::try_from(backups.len()).unwrap());
                backups.truncate(usize::try_from(kept).unwrap() + 1);
                let backup = backups.last().cloned().unwrap();
                world.restore(backup);
            }
        }
        prop_assert_eq!(world.owners_in_the_end(), assign(&NAMES.into(), 8));
    }
}
