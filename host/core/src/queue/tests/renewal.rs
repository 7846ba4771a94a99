//! Another module: for all objects, or for a share of them.

use super::*;

/// Of the objects `a` to `h`, it has `c`, `d`, `e` and `h`.
const SHARE: u8 = 40;

impl Bench {
    fn renew(&mut self) -> &mut Self {
        let actions = self.queue.renew(|_| true, self.now);
        self.note(actions)
    }

    fn try_on(&mut self, percent: u8) -> &mut Self {
        let share = Share::new(percent);
        self.queue.set_share(Some(share), self.now);
        let actions = self.queue.renew(|uid| share.has(uid), self.now);
        self.note(actions)
    }

    fn awaited(&self) -> (u32, u32) {
        let tried = self.queue.tried().unwrap();
        (tried.objects, tried.awaited)
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
fn batches_that_wait_are_parted_when_a_module_is_tried() {
    let mut bench = Bench::listed(batched(2));
    // One runs, two are full, and one is open.
    for name in ["a", "b", "c", "f", "d", "g", "e"] {
        bench.see(name, 1);
    }
    bench.check(expect![[r#"
        start Phases a:Added b:Added after 0 failures
    "#]]);
    bench
        .try_on(SHARE)
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
fn a_batch_that_is_halved_is_parted_when_a_module_is_tried() {
    let mut bench = Bench::listed(batched(4));
    // Of each half one is in the share.
    bench.see("a", 1).see("c", 1).see("d", 1).see("f", 1);
    bench.try_on(SHARE);
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
fn a_share_is_awaited_until_each_has_had_its_run() {
    let mut bench = Bench::listed(configurator());
    bench.see("a", 1).succeed("a").see("c", 1).see("d", 1);
    assert_eq!(bench.queue.tried(), None);
    bench.try_on(SHARE);
    assert_eq!(bench.awaited(), (2, 2));
    // The runs that were under way are of the module before.
    bench.succeed("c").succeed("d");
    assert_eq!(bench.awaited(), (2, 2));
    bench.succeed("c").end("d", restart(1));
    assert_eq!(bench.awaited(), (2, 1));
    bench.wait(1000).succeed("d");
    assert_eq!(bench.awaited(), (2, 0));
    // Another run is none that is awaited, and another object is one.
    bench.see("c", 2).see("e", 1);
    assert_eq!(bench.awaited(), (3, 1));
    bench.gone("e");
    assert_eq!(bench.awaited(), (2, 0));
    bench.queue.set_share(None, bench.now);
    assert_eq!(bench.queue.tried(), None);
}

#[test]
fn an_object_that_has_no_run_is_not_awaited() {
    let mut only_modified = configurator();
    only_modified.watch.events = vec![WatchEvent::Modified];
    let mut bench = Bench::listed(only_modified);
    bench.try_on(SHARE).see("c", 1);
    assert_eq!(bench.awaited(), (1, 0));
}
