use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::configurator::{BatchOptions, DeletionBy, SetOptions};
use crate::content::ContentDigest;
use crate::document::Document;
use crate::fault::FaultKind;
use crate::fixtures::{at, configurator, content, failure, key};
use crate::run::{Departed, Finish, LONGEST_WAIT, Pause, RunEnd, RunOutcome};

mod pace;
mod renewal;

/// A queue, its clock, and the runs that it has under way.
struct Bench {
    queue: Queue<()>,
    now: Timestamp,
    under_way: BTreeMap<Ticket, Vec<Member>>,
    text: String,
}

impl Bench {
    fn new(configurator: Configurator) -> Self {
        let queue = Queue::new(Arc::new(configurator), 7);
        Self {
            queue,
            now: at(0),
            under_way: BTreeMap::new(),
            text: String::new(),
        }
    }

    fn listed(configurator: Configurator) -> Self {
        let mut bench = Self::new(configurator);
        bench.queue.list("");
        let actions = bench.queue.listed("", Vec::new(), true, bench.now);
        bench.note(actions);
        bench.text.clear();
        bench
    }

    fn see(&mut self, name: &str, number: u64) -> &mut Self {
        self.see_as(name, &format!("{name}-uid"), number)
    }

    fn see_as(&mut self, name: &str, uid: &str, number: u64) -> &mut Self {
        let observed = Observed {
            key: key(name),
            uid: uid.into(),
            version: Some(number),
            content: content(number),
            object: Document::empty_object(),
            deleting_since: None,
            appeared: None,
        };
        let actions = self.queue.observe(observed, self.now);
        self.note(actions)
    }

    fn gone(&mut self, name: &str) -> &mut Self {
        let actions = self
            .queue
            .gone(&key(name), &format!("{name}-uid"), self.now);
        self.note(actions)
    }

    fn end(&mut self, name: &str, finish: Finish) -> &mut Self {
        let ticket = self.ticket_of(name);
        let outcome = self.finished(ticket, finish);
        let actions = self.queue.end(ticket, outcome, self.now);
        self.note(actions)
    }

    fn succeed(&mut self, name: &str) -> &mut Self {
        self.end(name, Finish::Succeeded)
    }

    /// Lets the first run of each object fail. From then on they are suspects.
    fn make_suspects(&mut self, names: &[&str]) -> &mut Self {
        for name in names {
            let failed = Finish::Failed {
                failure: failure(FaultKind::ResourceGeneric),
                failures: 1,
            };
            self.see(name, 1).end(name, failed);
        }
        self.text.clear();
        self
    }

    fn finished(&mut self, ticket: Ticket, finish: Finish) -> RunOutcome<()> {
        let members = self.under_way.remove(&ticket).unwrap();
        RunOutcome::new(RunEnd::Finished(finish), (), members)
    }

    fn ticket_of(&self, name: &str) -> Ticket {
        let has = |members: &Vec<Member>| members.iter().any(|member| member.key == key(name));
        *self
            .under_way
            .iter()
            .find(|(_, members)| has(members))
            .expect("a run of this object")
            .0
    }

    fn wait(&mut self, millis: u64) -> &mut Self {
        self.now = self.now.after(Duration::from_millis(millis));
        let actions = self.queue.tick(self.now);
        self.note(actions)
    }

    fn note(&mut self, actions: Vec<Action<()>>) -> &mut Self {
        for action in actions {
            let line = match action {
                Action::Start {
                    ticket,
                    members,
                    chain,
                    tries,
                    is_suspect: _,
                } => {
                    let names: Vec<String> = members
                        .iter()
                        .map(|member| format!("{}:{}", member.key.name, member.event.name()))
                        .collect();
                    self.under_way.insert(ticket, members);
                    format!(
                        "start {chain:?} {} after {} failures",
                        names.join(" "),
                        tries.failures
                    )
                }
                Action::Resume {
                    ticket, members, ..
                } => {
                    self.under_way.insert(ticket, members);
                    "resume".into()
                }
                Action::Continue { ticket } => {
                    let members = &self.under_way[&ticket];
                    format!("continue {}", members[0].key.name)
                }
                Action::Forget { uid, .. } => format!("forget {uid}"),
                Action::Release { uid, .. } => format!("release {uid}"),
                Action::GiveUp {
                    uid,
                    failures,
                    failure,
                    ..
                } => {
                    format!("give up {uid} after {failures}: {}", failure.fault.kind)
                }
                Action::Recover { key } => format!("recover {key}"),
                Action::Loop { key, is_looping } => format!("loop {key}: {is_looping}"),
                Action::Bootstrapped { given_up } => format!("bootstrapped, {given_up} given up"),
            };
            self.text += &line;
            self.text.push('\n');
        }
        self
    }

    #[track_caller]
    fn check(&mut self, expected: Expect) -> &mut Self {
        expected.assert_eq(&std::mem::take(&mut self.text));
        self
    }
}

fn restart(failures: u32) -> Finish {
    Finish::Restart {
        after: Duration::from_secs(1),
        failure: failure(FaultKind::ResourceConflict),
        tries: Tries {
            failures,
            refusals: 0,
        },
    }
}

#[test]
fn a_change_during_a_run_means_one_more_with_the_newest_version() {
    Bench::listed(configurator())
        .see("a", 1)
        .check(expect![[r#"
            start Phases a:Added after 0 failures
        "#]])
        .see("a", 2)
        .see("a", 3)
        .check(expect![""])
        .succeed("a")
        .check(expect![[r#"
            start Phases a:Modified after 0 failures
        "#]])
        .succeed("a")
        .see("a", 3)
        .check(expect![""]);
}

#[test]
fn concurrency_is_a_limit_and_turns_come_in_order() {
    Bench::listed(configurator())
        .see("a", 1)
        .see("b", 1)
        .see("c", 1)
        .see("d", 1)
        .check(expect![[r#"
            start Phases a:Added after 0 failures
            start Phases b:Added after 0 failures
        "#]])
        .succeed("b")
        .check(expect![[r#"
            start Phases c:Added after 0 failures
        "#]]);
}

#[test]
fn a_restart_waits_unless_the_object_changes() {
    Bench::listed(configurator())
        .see("a", 1)
        .end("a", restart(1))
        .wait(999)
        .wait(1)
        .check(expect![[r#"
            start Phases a:Added after 0 failures
            start Phases a:Added after 1 failures
        "#]])
        .end("a", restart(2))
        .see("a", 2)
        .check(expect![[r#"
            start Phases a:Added after 0 failures
        "#]]);
}

#[test]
fn a_given_up_object_returns_with_its_next_change() {
    let fail = || Finish::Failed {
        failure: failure(FaultKind::ResourcePermission),
        failures: 1,
    };
    Bench::listed(configurator())
        .see("a", 1)
        .end("a", fail())
        .wait(3_600_000)
        .see("a", 1)
        .check(expect![[r#"
            start Phases a:Added after 0 failures
            give up a-uid after 1: ResourcePermission
        "#]])
        .see("a", 2)
        .succeed("a")
        .check(expect![[r#"
            start Phases a:Modified after 0 failures
            recover ns/a
        "#]]);
}

#[test]
fn a_deletion_waits_for_the_run_and_has_phases_of_its_own() {
    Bench::listed(configurator())
        .see("a", 1)
        .gone("a")
        .check(expect![[r#"
            start Phases a:Added after 0 failures
        "#]])
        .succeed("a")
        .succeed("a")
        .check(expect![[r#"
            start Deletion a:Deleted after 0 failures
            forget a-uid
        "#]]);
}

#[test]
fn a_new_uid_under_an_old_name_is_a_deletion_then_an_addition() {
    Bench::listed(configurator())
        .see("a", 1)
        .succeed("a")
        .see_as("a", "other", 1)
        .succeed("a")
        .check(expect![[r#"
            start Phases a:Added after 0 failures
            start Deletion a:Deleted after 0 failures
            forget a-uid
            start Phases a:Added after 0 failures
        "#]]);
}

#[test]
fn what_was_recorded_and_is_missing_is_a_deletion() {
    let mut bench = Bench::new(configurator());
    bench.queue.list("");
    bench.see("a", 1);
    let recorded = vec![
        (key("a"), "a-uid".to_owned()),
        (key("b"), "b-uid".to_owned()),
    ];
    let actions = bench.queue.listed("", recorded, true, bench.now);
    bench.note(actions).check(expect![[r#"
        start Phases a:Added after 0 failures
        start Deletion b:Deleted after 0 failures
    "#]]);
    bench.succeed("b").succeed("a").check(expect![[r#"
        forget b-uid
        bootstrapped, 0 given up
    "#]]);
}

#[test]
fn a_new_listing_finds_what_went_meanwhile() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1).see("b", 1).succeed("a").succeed("b");
    bench.queue.list("");
    bench.see("a", 1);
    bench.text.clear();
    let actions = bench.queue.listed("", Vec::new(), true, bench.now);
    bench.note(actions).check(expect![[r#"
        start Deletion b:Deleted after 0 failures
    "#]]);
}

#[test]
fn without_deletion_phases_a_deletion_is_forgotten_at_once() {
    let mut plain = configurator();
    plain.deletion.phases.clear();
    Bench::listed(plain)
        .see("a", 1)
        .succeed("a")
        .gone("a")
        .check(expect![[r#"
        start Phases a:Added after 0 failures
        forget a-uid
    "#]]);
}

#[test]
fn deleted_among_the_events_runs_the_phases() {
    let mut plain = configurator();
    plain.deletion.phases.clear();
    plain.watch.events.push(WatchEvent::Deleted);
    Bench::listed(plain)
        .see("a", 1)
        .succeed("a")
        .gone("a")
        .succeed("a")
        .check(expect![[r#"
        start Phases a:Added after 0 failures
        start Phases a:Deleted after 0 failures
        forget a-uid
    "#]]);
}

#[test]
fn a_finalizer_holds_the_object_and_is_released_when_overdue() {
    let mut held = configurator();
    held.deletion.by = DeletionBy::Finalizer;
    held.suspend = true;
    let deleting = |bench: &mut Bench| {
        let observed = Observed {
            key: key("a"),
            uid: "a-uid".into(),
            version: Some(2),
            content: content(2),
            object: Document::empty_object(),
            deleting_since: Some(bench.now),
            appeared: None,
        };
        let actions = bench.queue.observe(observed, bench.now);
        bench.note(actions);
    };
    let mut bench = Bench::listed(held.clone());
    deleting(bench.see("a", 1));
    bench.succeed("a").gone("a").check(expect![[r#"
        start Deletion a:Deleted after 0 failures
        forget a-uid
        forget a-uid
    "#]]);
    let mut bench = Bench::listed(held.clone());
    deleting(bench.see("a", 1));
    bench.end("a", restart(1)).wait(600_000).check(expect![[r#"
        start Deletion a:Deleted after 0 failures
        release a-uid
    "#]]);
    // With sets, the object waits for its members, however long they take.
    held.sets = Some(Box::new(SetOptions {
        poll_interval: Duration::from_mins(1),
        max_watches: 500,
        ending: None,
        idle_after: Duration::from_mins(1),
        adopted_managers: Arc::default(),
        max_prune_percent: 50,
        prune_from: 5,
        max_entries: 1000,
    }));
    let mut bench = Bench::listed(held);
    deleting(bench.see("a", 1));
    bench.end("a", restart(1)).wait(600_000).check(expect![[r#"
        start Deletion a:Deleted after 0 failures
        start Deletion a:Deleted after 1 failures
    "#]]);
}

#[test]
fn events_that_are_not_named_start_no_run() {
    let mut added_only = configurator();
    added_only.watch.events = vec![WatchEvent::Added];
    Bench::listed(added_only)
        .see("a", 1)
        .succeed("a")
        .see("a", 2)
        .check(expect![[r#"
        start Phases a:Added after 0 failures
    "#]]);
    let mut modified_only = configurator();
    modified_only.watch.events = vec![WatchEvent::Modified];
    Bench::listed(modified_only)
        .see("a", 1)
        .see("a", 2)
        .check(expect![[r#"
        start Phases a:Modified after 0 failures
    "#]]);
}

#[test]
fn batches_fill_by_size_and_by_delay() {
    let mut batched = configurator();
    batched.batch = Some(BatchOptions {
        max_size: 2,
        max_delay: Duration::from_millis(200),
    });
    Bench::listed(batched)
        .see("a", 1)
        .see("b", 1)
        .see("c", 1)
        .check(expect![[r#"
            start Phases a:Added b:Added after 0 failures
        "#]])
        .wait(199)
        .check(expect![""])
        .wait(1)
        .check(expect![[r#"
            start Phases c:Added after 0 failures
        "#]]);
}

#[test]
fn a_batch_that_fails_is_halved_until_the_culprit_is_alone() {
    let mut batched = configurator();
    batched.concurrency = 1;
    batched.batch = Some(BatchOptions {
        max_size: 4,
        max_delay: Duration::from_millis(200),
    });
    let split = || Finish::Split {
        failure: failure(FaultKind::ResourceGeneric),
    };
    let mut bench = Bench::listed(batched);
    bench.see("a", 1).see("b", 1).see("c", 1).see("d", 1);
    bench
        .end("a", split())
        .end("a", split())
        .succeed("a")
        .end("b", restart(1))
        .succeed("c");
    bench.check(expect![[r#"
        start Phases a:Added b:Added c:Added d:Added after 0 failures
        start Phases a:Added b:Added after 0 failures
        start Phases a:Added after 0 failures
        start Phases b:Added after 0 failures
        start Phases c:Added d:Added after 0 failures
    "#]]);
    bench.wait(1000).check(expect![[r#"
        start Phases b:Added after 1 failures
    "#]]);
}

#[test]
fn an_object_is_not_entered_from_a_copy_older_than_the_last_own_write() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1).see("a", 2).check(expect![[r#"
        start Phases a:Added after 0 failures
    "#]]);
    let ticket = bench.ticket_of("a");
    let outcome = RunOutcome {
        own_writes: vec![(key("a"), 5)],
        ..bench.finished(ticket, Finish::Succeeded)
    };
    let actions = bench.queue.end(ticket, outcome, bench.now);
    bench
        .note(actions)
        .see("a", 4)
        .check(expect![""])
        .see("a", 5)
        .check(expect![[r#"
        start Phases a:Modified after 0 failures
    "#]]);
}

#[test]
fn an_own_write_that_the_watch_never_shows_does_not_hold_for_ever() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1).see("a", 2);
    let ticket = bench.ticket_of("a");
    let outcome = RunOutcome {
        own_writes: vec![(key("a"), 5)],
        ..bench.finished(ticket, Finish::Succeeded)
    };
    let actions = bench.queue.end(ticket, outcome, bench.now);
    bench.note(actions);
    bench.text.clear();
    bench.wait(30_000).check(expect![[r#"
        start Phases a:Modified after 0 failures
    "#]]);
}

#[test]
fn a_resync_comes_once_in_its_period() {
    let mut resyncing = configurator();
    resyncing.watch.resync_period = Some(Duration::from_secs(100));
    let mut bench = Bench::listed(resyncing);
    bench
        .see("a", 1)
        .succeed("a")
        .wait(49_000)
        .wait(51_000)
        .succeed("a")
        .check(expect![[r#"
        start Phases a:Added after 0 failures
        start Phases a:Resync after 0 failures
    "#]]);
}

#[test]
fn suspended_nothing_begins() {
    let mut suspended = configurator();
    suspended.suspend = true;
    Bench::listed(suspended)
        .see("a", 1)
        .gone("a")
        .check(expect![""]);
}

fn pause(bench: &mut Bench, name: &str, pause: Pause) {
    let ticket = bench.ticket_of(name);
    let outcome = RunOutcome {
        end: RunEnd::Paused(pause),
        ..bench.finished(ticket, Finish::Succeeded)
    };
    let actions = bench.queue.end(ticket, outcome, bench.now);
    bench.note(actions);
}

fn await_members(bench: &mut Bench, name: &str, after: Option<Duration>) {
    pause(bench, name, Pause::Members { after });
}

fn change_members(bench: &mut Bench, name: &str) {
    let actions = bench.queue.on_members(&key(name), bench.now);
    bench.note(actions);
}

#[test]
fn members_that_change_all_the_time_call_the_handler_once_a_second() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1).succeed("a").check(expect![[r#"
        start Phases a:Added after 0 failures
    "#]]);
    for _ in 0..19 {
        change_members(&mut bench, "a");
        bench.wait(100);
        if bench.queue.is_running(&key("a")) {
            bench.succeed("a");
        }
    }
    bench.check(expect![[r#"
        start Phases a:Resync after 0 failures
    "#]]);
    // A change of the object itself is not held back.
    change_members(&mut bench, "a");
    bench.see("a", 2).check(expect![[r#"
        start Phases a:Modified after 0 failures
    "#]]);
}

#[test]
fn a_run_that_waits_for_members_goes_on_when_one_changes_or_its_time_comes() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1);
    await_members(&mut bench, "a", None);
    assert!(bench.queue.is_settled());
    // A server that comes back is nothing to this run.
    set_unavailable(&mut bench, &[SinkName::Configstore]);
    set_unavailable(&mut bench, &[]);
    bench.wait(3_600_000);
    change_members(&mut bench, "a");
    assert!(!bench.queue.is_settled());
    // The run has gone on, so this changes nothing.
    change_members(&mut bench, "a");
    await_members(&mut bench, "a", Some(Duration::from_secs(60)));
    assert!(!bench.queue.is_settled());
    bench.wait(60_000);
    bench.succeed("a");
    // The set was ready, and is not any more.
    change_members(&mut bench, "a");
    bench.check(expect![[r#"
        start Phases a:Added after 0 failures
        resume
        resume
        start Phases a:Resync after 0 failures
    "#]]);
}

#[test]
fn a_change_of_the_object_ends_the_wait_for_its_members() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1);
    await_members(&mut bench, "a", None);
    bench.see("a", 2);
    bench.check(expect![[r#"
        start Phases a:Added after 0 failures
        start Phases a:Modified after 0 failures
    "#]]);
}

#[test]
fn a_run_that_reads_objects_in_vain_has_settled_and_reads_on() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1);
    let read = |bench: &mut Bench, after| {
        let reason = "it is not ready".to_owned();
        pause(bench, "a", Pause::Unready { after, reason });
    };
    read(&mut bench, LONGEST_WAIT / 2);
    assert!(!bench.queue.is_settled() && !bench.queue.reads_in_vain());
    bench.wait(15_000);
    read(&mut bench, LONGEST_WAIT);
    assert!(bench.queue.is_settled() && bench.queue.reads_in_vain());
    // Members are none of its concern.
    change_members(&mut bench, "a");
    bench.wait(30_000);
    assert!(!bench.queue.is_settled() && !bench.queue.reads_in_vain());
    read(&mut bench, LONGEST_WAIT);
    bench.see("a", 2);
    bench.check(expect![[r#"
        start Phases a:Added after 0 failures
        resume
        resume
        start Phases a:Modified after 0 failures
    "#]]);
}

fn park(bench: &mut Bench, name: &str, failure: Failure) {
    let after = Duration::from_secs(1);
    let tries = Tries {
        failures: 0,
        refusals: 1,
    };
    pause(
        bench,
        name,
        Pause::Park {
            after,
            failure,
            tries,
        },
    );
}

/// The config store is away.
fn park_at_store(bench: &mut Bench, name: &str) {
    park(bench, name, failure(FaultKind::ConfigstoreUnavailable));
}

fn set_unavailable(bench: &mut Bench, sinks: &[SinkName]) {
    let servers = sinks.iter().map(|sink| Server::behind(*sink));
    let servers = servers.map(|server| (server, Unavailable::Down)).collect();
    let actions = bench.queue.set_unavailable(servers, bench.now);
    bench.note(actions);
}

fn delayed_text(bench: &Bench) -> String {
    let delayed = bench.queue.delayed(50);
    let lines = delayed.iter().map(|delayed| {
        let Delayed {
            key,
            uid,
            failure,
            refusals,
            at,
        } = delayed;
        let at = at.as_millis();
        format!(
            "{key} {uid}: {refusals} refusals, at {at}: {}\n",
            failure.fault.kind
        )
    });
    lines.collect()
}

#[test]
fn a_refused_run_goes_on_after_its_own_wait_and_holds_no_other_back() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1);
    park_at_store(&mut bench, "a");
    expect![[r#"
        ns/a a-uid: 1 refusals, at 0: ConfigstoreUnavailable
    "#]]
    .assert_eq(&delayed_text(&bench));
    assert_eq!(bench.queue.counts().delayed, 1);
    bench.see("b", 1).wait(999).wait(1).check(expect![[r#"
        start Phases a:Added after 0 failures
        start Phases b:Added after 0 failures
        resume
    "#]]);
    assert_eq!(bench.queue.counts().delayed, 1, "it has not gone through");
    bench.succeed("a");
    expect![[""]].assert_eq(&delayed_text(&bench));
    assert_eq!(bench.queue.counts().delayed, 0);
}

#[test]
fn an_unavailable_server_holds_every_run_of_those_that_rely_on_it() {
    let mut bench = Bench::listed(configurator());
    set_unavailable(&mut bench, &[SinkName::Configstore, SinkName::Secretstore]);
    bench.see("a", 1).check(expect![[r#"
        start Phases a:Added after 0 failures
    "#]]);
    park_at_store(&mut bench, "a");
    bench.see("b", 1).wait(60_000).check(expect![[""]]);
    set_unavailable(&mut bench, &[SinkName::Secretstore]);
    bench.wait(1000).check(expect![[r#"
        start Phases b:Added after 0 failures
        resume
    "#]]);
}

#[test]
fn a_server_that_refuses_holds_only_the_runs_that_it_refused() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1);
    park_at_store(&mut bench, "a");
    bench.text.clear();
    let refusing = (Server::behind(SinkName::Configstore), Unavailable::Refusing);
    let actions = bench.queue.set_unavailable([refusing].into(), bench.now);
    bench
        .note(actions)
        .see("b", 1)
        .wait(60_000)
        .check(expect![[r#"
        start Phases b:Added after 0 failures
    "#]]);
    set_unavailable(&mut bench, &[]);
    bench.wait(1000).check(expect![[r#"
        resume
    "#]]);
}

#[test]
fn an_object_whose_run_failed_shares_no_batch_with_others_until_one_succeeds() {
    let mut declared = configurator();
    declared.batch = Some(BatchOptions {
        max_size: 2,
        max_delay: Duration::ZERO,
    });
    let mut bench = Bench::listed(declared);
    let failure = failure(FaultKind::ResourceGeneric);
    bench.see("bad", 1).wait(0).end(
        "bad",
        Finish::Failed {
            failure,
            failures: 1,
        },
    );
    bench.text.clear();
    bench
        .see("bad", 2)
        .see("good", 1)
        .wait(0)
        .check(expect![[r#"
            start Phases bad:Modified after 0 failures
            start Phases good:Added after 0 failures
        "#]]);
    bench.succeed("bad").succeed("good");
    bench.text.clear();
    bench
        .see("bad", 3)
        .see("good", 2)
        .wait(0)
        .check(expect![[r#"
            start Phases bad:Modified good:Modified after 0 failures
        "#]]);
}

#[test]
fn suspects_hold_half_of_the_places_and_take_turns_with_others() {
    let mut declared = configurator();
    declared.concurrency = 4;
    let mut bench = Bench::listed(declared);
    bench.make_suspects(&["bad-1", "bad-2", "bad-3"]);
    bench
        .see("bad-1", 2)
        .see("bad-2", 2)
        .see("bad-3", 2)
        .check(expect![[r#"
            start Phases bad-1:Modified after 0 failures
            start Phases bad-2:Modified after 0 failures
        "#]]);
    bench
        .see("good-1", 1)
        .see("good-2", 1)
        .see("good-3", 1)
        .check(expect![[r#"
            start Phases good-1:Added after 0 failures
            start Phases good-2:Added after 0 failures
        "#]]);
    // The third suspect waits for a place of the others, though one is free.
    bench.succeed("good-1").succeed("good-2").check(expect![[r#"
        start Phases good-3:Added after 0 failures
    "#]]);
    bench.succeed("bad-1").check(expect![[r#"
        recover ns/bad-1
        start Phases bad-3:Modified after 0 failures
    "#]]);
}

#[test]
fn suspects_leave_a_place_to_an_object_that_comes_next() {
    let mut declared = configurator();
    declared.concurrency = 3;
    let mut bench = Bench::listed(declared);
    bench.make_suspects(&["bad-1", "bad-2", "bad-3"]);
    // No run of another object has begun for long.
    bench
        .wait(10_000)
        .see("bad-1", 2)
        .see("bad-2", 2)
        .see("bad-3", 2)
        .check(expect![[r#"
            start Phases bad-1:Modified after 0 failures
            start Phases bad-2:Modified after 0 failures
        "#]]);
    bench.see("good", 1).check(expect![[r#"
        start Phases good:Added after 0 failures
    "#]]);
}

#[test]
fn an_object_with_many_runs_goes_behind_others() {
    let mut declared = configurator();
    declared.concurrency = 1;
    let mut bench = Bench::listed(declared);
    for number in 1..3 {
        bench.see("busy", number).succeed("busy");
    }
    bench.see("first", 1).see("busy", 3).see("second", 1);
    bench.text.clear();
    bench.succeed("first").succeed("busy").succeed("second");
    // Without others for a while, it has all places.
    bench.wait(10_000).see("busy", 4).check(expect![[r#"
        start Phases busy:Modified after 0 failures
        start Phases second:Added after 0 failures
        start Phases busy:Modified after 0 failures
    "#]]);
}

#[test]
fn objects_whose_runs_hold_their_places_for_long_hold_half_of_the_places() {
    let check = |lends: bool, expected: Expect| {
        let mut declared = configurator();
        declared.concurrency = 2;
        let mut bench = Bench::listed(declared);
        let slow = ["slow-1", "slow-2"];
        for name in slow {
            bench.see(name, 1);
            let ticket = bench.ticket_of(name);
            if lends {
                let lent = bench.queue.lend(ticket, bench.now);
                bench.note(lent);
            }
        }
        bench.wait(3_000).succeed("slow-1").succeed("slow-2");
        bench.wait(5_000).text.clear();
        for name in slow {
            bench.see(name, 2);
        }
        bench.check(expected);
    };
    check(
        false,
        expect![[r#"
            start Phases slow-1:Modified after 0 failures
        "#]],
    );
    check(
        true,
        expect![[r#"
            start Phases slow-1:Modified after 0 failures
            start Phases slow-2:Modified after 0 failures
        "#]],
    );
}

#[test]
fn with_one_place_suspects_and_others_take_turns() {
    let mut declared = configurator();
    declared.concurrency = 1;
    let mut bench = Bench::listed(declared);
    let failure = failure(FaultKind::ResourceGeneric);
    let failed = || Finish::Failed {
        failure: failure.clone(),
        failures: 1,
    };
    bench.see("bad", 1).end("bad", failed());
    bench.text.clear();
    for number in 1..4 {
        bench.see(&format!("good-{number}"), 1);
    }
    bench.see("bad", 2).succeed("good-1").end("bad", failed());
    bench.see("bad", 3).succeed("good-2").end("bad", failed());
    bench.succeed("good-3").check(expect![[r#"
        start Phases good-1:Added after 0 failures
        start Phases bad:Modified after 0 failures
        give up bad-uid after 1: ResourceGeneric
        start Phases good-2:Added after 0 failures
        start Phases bad:Modified after 0 failures
        give up bad-uid after 1: ResourceGeneric
        start Phases good-3:Added after 0 failures
    "#]]);
}

/// Returns a bench with one place, which the first of three objects has lent, and the ticket of its run.
fn bench_with_a_lent_place(first: &str) -> (Bench, Ticket) {
    let mut declared = configurator();
    declared.concurrency = 1;
    let mut bench = Bench::listed(declared);
    bench.see(first, 1).see("next", 1).see("last", 1);
    let ticket = bench.ticket_of(first);
    let lent = bench.queue.lend(ticket, bench.now);
    bench.note(lent);
    (bench, ticket)
}

#[test]
fn another_run_takes_the_place_of_one_whose_handler_computes() {
    let (mut bench, slow) = bench_with_a_lent_place("slow");
    let reclaimed = bench.queue.reclaim(slow, bench.now);
    bench.note(reclaimed);
    bench.succeed("next").succeed("slow").check(expect![[r#"
        start Phases slow:Added after 0 failures
        start Phases next:Added after 0 failures
        continue slow
        start Phases last:Added after 0 failures
    "#]]);
}

#[test]
fn a_run_that_takes_its_place_back_delays_the_next() {
    let (mut bench, reads) = bench_with_a_lent_place("reads");
    let taken_back = bench.queue.take_back(reads, bench.now);
    bench.note(taken_back);
    bench.succeed("next").check(expect![[r#"
        start Phases reads:Added after 0 failures
        start Phases next:Added after 0 failures
    "#]]);
    bench.succeed("reads").check(expect![[r#"
        start Phases last:Added after 0 failures
    "#]]);
}

#[test]
fn a_run_goes_on_at_once_whose_place_was_not_lent() {
    let mut declared = configurator();
    declared.concurrency = 1;
    let mut bench = Bench::listed(declared);
    bench.see("one", 1);
    let ticket = bench.ticket_of("one");
    let reclaimed = bench.queue.reclaim(ticket, bench.now);
    bench.note(reclaimed).check(expect![[r#"
        start Phases one:Added after 0 failures
        continue one
    "#]]);
}

#[test]
fn objects_that_a_server_refused_before_it_was_down_are_like_any_other() {
    let mut declared = configurator();
    declared.concurrency = 2;
    let mut bench = Bench::listed(declared);
    for name in ["a", "b"] {
        bench.see(name, 1);
        park_at_store(&mut bench, name);
    }
    set_unavailable(&mut bench, &[SinkName::Configstore]);
    bench.wait(120_000);
    set_unavailable(&mut bench, &[]);
    bench.text.clear();
    bench.wait(1000).check(expect![[r#"
        resume
        resume
    "#]]);
}

#[test]
fn an_outage_lets_runs_wait_for_the_rest_of_their_own_time() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1);
    park_at_store(&mut bench, "a");
    set_unavailable(&mut bench, &[SinkName::Configstore]);
    set_unavailable(&mut bench, &[]);
    bench.text.clear();
    bench.wait(999).check(expect![[""]]);
    bench.wait(1).check(expect![[r#"
        resume
    "#]]);
}

#[test]
fn a_change_ends_the_wait_of_a_refused_run() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1);
    park_at_store(&mut bench, "a");
    bench.text.clear();
    bench.see("a", 2).check(expect![[r#"
        start Phases a:Modified after 0 failures
    "#]]);
    expect![[""]].assert_eq(&delayed_text(&bench));
}

#[test]
fn a_wait_that_the_server_asked_for_outlasts_a_change_and_a_deletion() {
    let refused = |bench: &mut Bench| {
        bench.see("a", 1);
        let mut failure = failure(FaultKind::ApiServerUnavailable);
        failure.fault.retry_after = Some(Duration::from_secs(1));
        park(bench, "a", failure);
        bench.text.clear();
    };
    let mut bench = Bench::listed(configurator());
    refused(&mut bench);
    bench.see("a", 2).wait(999).check(expect![[""]]);
    bench.wait(1).check(expect![[r#"
        start Phases a:Modified after 0 failures
    "#]]);
    let mut bench = Bench::listed(configurator());
    refused(&mut bench);
    bench.gone("a").wait(999).check(expect![[""]]);
    bench.wait(1).check(expect![[r#"
        start Deletion a:Deleted after 0 failures
    "#]]);
}

#[test]
fn a_member_that_is_refused_leaves_its_batch_and_waits_without_a_charge() {
    let mut declared = configurator();
    declared.batch = Some(BatchOptions {
        max_size: 2,
        max_delay: Duration::ZERO,
    });
    let mut bench = Bench::listed(declared);
    bench.see("a", 1).see("b", 1);
    for refusals in 1..=3 {
        let ticket = bench.ticket_of("a");
        let mut outcome = bench.finished(ticket, Finish::Succeeded);
        let at = outcome
            .members
            .iter()
            .position(|member| member.key == key("a"));
        let member = outcome.members.remove(at.unwrap());
        outcome.departed.push(Departed {
            member,
            failure: failure(FaultKind::ApiServerUnavailable),
        });
        let actions = bench.queue.end(ticket, outcome, bench.now);
        bench.note(actions).wait(10_000);
        assert_eq!(bench.queue.delayed(50)[0].refusals, refusals);
    }
    bench.check(expect![[r#"
        start Phases a:Added b:Added after 0 failures
        start Phases a:Added after 0 failures
        start Phases a:Added after 0 failures
        start Phases a:Added after 0 failures
    "#]]);
}

#[test]
fn readiness_waits_for_what_existed_at_start_and_counts_what_was_given_up() {
    let mut bench = Bench::new(configurator());
    bench.queue.list("");
    bench.see("a", 1).see("b", 1);
    let actions = bench.queue.listed("", Vec::new(), true, bench.now);
    bench.note(actions);
    bench.text.clear();
    bench.succeed("a").see("c", 1);
    bench.text.clear();
    let fail = Finish::Failed {
        failure: failure(FaultKind::ResourcePermission),
        failures: 1,
    };
    bench.end("b", fail).check(expect![[r#"
        give up b-uid after 1: ResourcePermission
        bootstrapped, 1 given up
    "#]]);
}

#[derive(Debug, Clone)]
enum Happening {
    See(u8, u64),
    Gone(u8),
    End(u8, u8),
    Wait(u64),
}

fn any_happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (0..4u8, 0..3u64).prop_map(|(name, number)| Happening::See(name, number)),
        1 => (0..4u8).prop_map(Happening::Gone),
        4 => (0..8u8, 0..4u8).prop_map(|(which, how)| Happening::End(which, how)),
        1 => (0..5000u64).prop_map(Happening::Wait),
    ]
}

fn end_by(how: u8, is_batch: bool) -> Finish {
    match how {
        0 | 1 => Finish::Succeeded,
        2 if is_batch => Finish::Split {
            failure: failure(FaultKind::ResourceGeneric),
        },
        2 => restart(1),
        _ => Finish::Failed {
            failure: failure(FaultKind::ResourcePermission),
            failures: 1,
        },
    }
}

fn invariants(bench: &Bench) {
    assert!(
        bench.under_way.len() <= 2,
        "more runs than the concurrency allows"
    );
    let mut seen = BTreeSet::new();
    for member in bench.under_way.values().flatten() {
        assert!(
            seen.insert(member.key.clone()),
            "{} is in two runs at once",
            member.key
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever happens, no object is in two runs at once, and when it is quiet everything that exists has been
    /// through its phases in its newest version, and everything that went through those of deletion.
    #[test]
    fn every_object_ends_in_its_newest_version(
        happenings in prop::collection::vec(any_happening(), 0..60),
        batched: bool,
    ) {
        let mut declared = configurator();
        if batched {
            declared.batch = Some(BatchOptions { max_size: 3, max_delay: Duration::from_millis(200) });
        }
        let mut bench = Bench::listed(declared);
        let mut exists: BTreeMap<u8, (u64, u64)> = BTreeMap::new();
        let mut born = 0;
        let mut done: BTreeMap<String, ContentDigest> = BTreeMap::new();
        let mut deleted: BTreeSet<String> = BTreeSet::new();
        let mut all: BTreeSet<String> = BTreeSet::new();
        let settle = |bench: &mut Bench, ticket: Ticket, finish: Finish, done: &mut BTreeMap<String, ContentDigest>, deleted: &mut BTreeSet<String>| {
            if finish == Finish::Succeeded {
                for member in &bench.under_way[&ticket] {
                    if member.event == WatchEvent::Deleted {
                        deleted.insert(member.uid.clone());
                    } else {
                        done.insert(member.uid.clone(), member.content);
                    }
                }
            }
            let outcome = bench.finished(ticket, finish);
            let actions = bench.queue.end(ticket, outcome, bench.now);
            bench.note(actions);
        };
        for happening in happenings {
            match happening {
                Happening::See(name, number) => {
                    let (uid, _) = *exists.entry(name).or_insert_with(|| { born += 1; (born, 0) });
                    exists.insert(name, (uid, number));
                    all.insert(uid.to_string());
                    bench.see_as(&name.to_string(), &uid.to_string(), number);
                }
                Happening::Gone(name) => {
                    if let Some((uid, _)) = exists.remove(&name) {
                        let actions = bench.queue.gone(&key(&name.to_string()), &uid.to_string(), bench.now);
                        bench.note(actions);
                    }
                }
                Happening::End(which, how) => {
                    let ticket = bench.under_way.keys().nth(usize::from(which)).copied();
                    if let Some(ticket) = ticket {
                        let is_batch = bench.under_way[&ticket].len() > 1;
                        settle(&mut bench, ticket, end_by(how, is_batch), &mut done, &mut deleted);
                    }
                }
                Happening::Wait(millis) => { bench.wait(millis); }
            }
            invariants(&bench);
        }
        // From here on everything succeeds; what was given up is seen once more, changed.
        for (name, (uid, number)) in &mut exists {
            *number += 100;
            bench.see_as(&name.to_string(), &uid.to_string(), *number);
        }
        let given_up_deletions = bench.text.lines().filter(|line| line.starts_with("give up")).count();
        for _ in 0..1000 {
            while let Some(ticket) = bench.under_way.keys().next().copied() {
                settle(&mut bench, ticket, Finish::Succeeded, &mut done, &mut deleted);
                invariants(&bench);
            }
            match bench.queue.next_deadline() {
                Some(next) => {
                    let wait = next.since(bench.now);
                    bench.wait(u64::try_from(wait.as_millis()).unwrap());
                }
                None => break,
            }
        }
        prop_assert!(bench.queue.is_settled());
        for (uid, number) in exists.values() {
            prop_assert_eq!(done.get(&uid.to_string()), Some(&content(*number)));
        }
        let living: BTreeSet<String> = exists.values().map(|(uid, _)| uid.to_string()).collect();
        let missing = all.difference(&living).filter(|uid| !deleted.contains(*uid)).count();
        prop_assert!(missing <= given_up_deletions, "{missing} deletions were not dealt with");
    }
}
