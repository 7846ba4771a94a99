//! A new module, for all objects or as a canary for a fraction of them.

use super::*;

/// Of the objects `a` to `h`, it has `c`, `d`, `e` and `h`.
const PERCENT: u8 = 40;

impl Bench {
    fn renew(&mut self) -> &mut Self {
        let actions = self.queue.renew(|_| true, self.now);
        self.note(actions)
    }

    fn start_canary(&mut self, percent: u8) -> &mut Self {
        let canary = Fraction::new(percent);
        self.queue.set_canary(Some(canary), self.now);
        let actions = self.queue.renew(|uid| canary.contains(uid), self.now);
        self.note(actions)
    }

    fn awaited(&self) -> (u32, u32) {
        let counts = self.queue.canary_objects().unwrap();
        (counts.total, counts.awaited)
    }
}

fn only_added() -> Configurator {
    let mut only_added = configurator();
    only_added.watch.events = vec![WatchEvent::Added];
    only_added
}

fn batched(max_size: usize) -> Configurator {
    let mut batched = configurator();
    batched.concurrency = 1;
    batched.batch = Some(BatchOptions {
        max_size,
        max_delay: Duration::from_millis(200),
    });
    batched
}

#[test]
fn each_object_has_one_more_run_and_no_more() {
    Bench::listed(configurator())
        .see("a", 1)
        .succeed("a")
        .see("b", 1)
        .see("c", 1)
        .see("d", 1)
        .check(expect![[r#"
            start Phases a:Added after 0 failures
            start Phases b:Added after 0 failures
            start Phases c:Added after 0 failures
        "#]])
        .renew()
        .check(expect![""])
        // That which was queued begins after it: its run is the one more.
        .succeed("b")
        .succeed("c")
        .succeed("d")
        .succeed("a")
        .succeed("b")
        .succeed("c")
        .check(expect![[r#"
            start Phases d:Added after 0 failures
            start Phases a:Resync after 0 failures
            start Phases b:Resync after 0 failures
            start Phases c:Resync after 0 failures
        "#]]);
}

#[test]
fn one_more_run_is_not_lost_by_a_change_that_starts_none() {
    let fail = || Finish::Failed {
        failure: failure(FaultKind::ResourcePermission),
        failures: 1,
    };
    for end in [Finish::Succeeded, fail()] {
        let mut bench = Bench::listed(only_added());
        bench.see("a", 1).see("a", 2).renew();
        bench.text.clear();
        bench.end("a", end);
        assert!(bench.text.contains("start Phases a:Resync"));
    }
}

#[test]
fn another_attempt_is_not_lost_by_a_change_that_starts_none() {
    Bench::listed(only_added())
        .see("a", 1)
        .see("a", 2)
        .end("a", restart(1))
        .wait(1000)
        .check(expect![[r#"
            start Phases a:Added after 0 failures
            start Phases a:Added after 1 failures
        "#]]);
}

#[test]
fn what_an_object_goes_back_to_during_a_run_is_run_again() {
    Bench::listed(configurator())
        .see("a", 1)
        .succeed("a")
        .see("a", 2)
        .see("a", 1)
        .succeed("a")
        .check(expect![[r#"
            start Phases a:Added after 0 failures
            start Phases a:Modified after 0 failures
            start Phases a:Modified after 0 failures
        "#]]);
}

#[test]
fn batches_that_wait_are_split_when_a_canary_starts() {
    let mut bench = Bench::listed(batched(2));
    // One runs, two are full, and one is open.
    for name in ["a", "b", "c", "f", "d", "g", "e"] {
        bench.see(name, 1);
    }
    bench.check(expect![[r#"
        start Phases a:Added b:Added after 0 failures
    "#]]);
    bench
        .start_canary(PERCENT)
        .succeed("a")
        .succeed("c")
        .succeed("f")
        .succeed("d")
        .succeed("g")
        .wait(200)
        .check(expect![[r#"
            start Phases c:Added after 0 failures
            start Phases f:Added after 0 failures
            start Phases d:Added after 0 failures
            start Phases g:Added after 0 failures
            start Phases e:Added after 0 failures
        "#]]);
}

#[test]
fn a_batch_that_is_halved_is_split_when_a_canary_starts() {
    let mut bench = Bench::listed(batched(4));
    // The canary handles one object of each half.
    bench.see("a", 1).see("c", 1).see("d", 1).see("f", 1);
    bench.start_canary(PERCENT);
    bench.text.clear();
    let split = Finish::Split {
        failure: failure(FaultKind::ResourceGeneric),
    };
    bench.end("a", split);
    for name in ["a", "c", "f"] {
        bench.succeed(name);
    }
    bench.check(expect![[r#"
        start Phases a:Added after 0 failures
        start Phases c:Added after 0 failures
        start Phases f:Added after 0 failures
        start Phases d:Added after 0 failures
    "#]]);
}

#[test]
fn each_canary_object_is_awaited_until_it_has_finished_a_run() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1).succeed("a").see("c", 1).see("d", 1);
    assert_eq!(bench.queue.canary_objects(), None);
    bench.start_canary(PERCENT);
    assert_eq!(bench.awaited(), (2, 2));
    // The runs under way are of the previous module.
    bench.succeed("c").succeed("d");
    assert_eq!(bench.awaited(), (2, 2));
    bench.succeed("c").end("d", restart(1));
    assert_eq!(bench.awaited(), (2, 1));
    bench.wait(1000).succeed("d");
    assert_eq!(bench.awaited(), (2, 0));
    // A second run is not awaited, but a new object is.
    bench.see("c", 2).see("e", 1);
    assert_eq!(bench.awaited(), (3, 1));
    bench.gone("e");
    assert_eq!(bench.awaited(), (2, 0));
    bench.queue.set_canary(None, bench.now);
    assert_eq!(bench.queue.canary_objects(), None);
}

#[test]
fn an_object_that_has_no_run_is_not_awaited() {
    let mut only_modified = configurator();
    only_modified.watch.events = vec![WatchEvent::Modified];
    let mut bench = Bench::listed(only_modified);
    bench.start_canary(PERCENT).see("c", 1);
    assert_eq!(bench.awaited(), (1, 0));
}

/// The set of the module before, or the objects that it asked for, may never become ready.
#[test]
fn a_run_that_waits_for_objects_is_made_again_with_the_new_module() {
    let unready = || Pause::Unready {
        after: Duration::from_secs(1),
        reason: "a is not ready".to_owned(),
    };
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1).see("b", 1).see("c", 1).see("d", 1);
    await_members(&mut bench, "a", None);
    pause(&mut bench, "b", unready());
    bench.renew();
    // It came during this run.
    await_members(&mut bench, "c", None);
    bench.succeed("d");
    await_members(&mut bench, "a", None);
    let actions = bench.queue.renew_waiting(|_| true, bench.now);
    bench.note(actions).succeed("b").check(expect![[r#"
        start Phases a:Added after 0 failures
        start Phases b:Added after 0 failures
        start Phases c:Added after 0 failures
        start Phases d:Added after 0 failures
        start Phases a:Resync after 0 failures
        start Phases b:Resync after 0 failures
        start Phases c:Resync after 0 failures
        start Phases a:Resync after 0 failures
    "#]]);
}
