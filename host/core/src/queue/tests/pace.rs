//! How often runs begin.

use std::sync::{Arc, Mutex};

use super::super::pace::Pace;
use super::*;

/// Hands out one time every 100 ms.
#[derive(Debug)]
struct Slow(Mutex<Timestamp>);

impl Pace for Slow {
    fn reserve(&self, now: Timestamp) -> Timestamp {
        let mut next = self.0.lock().unwrap();
        let reserved = (*next).max(now);
        *next = reserved.after(Duration::from_millis(100));
        reserved
    }
}

#[test]
fn runs_begin_at_the_pace() {
    let mut bench = Bench::listed(configurator());
    let pace = Arc::new(Slow(Mutex::new(at(0))));
    bench.queue = bench.queue.paced(pace.clone());
    bench.see("a", 1).see("b", 1).check(expect![[r#"
        start Phases a:Added after 0 failures
    "#]]);
    bench.wait(99).check(expect![""]);
    // It runs with the newest version. Until then it is a new object.
    bench.see("b", 2).wait(1).check(expect![[r#"
        start Phases b:Added after 0 failures
    "#]]);
    // Other queues have reserved times before the next one.
    bench.succeed("a").wait(90);
    for _ in 0..3 {
        pace.reserve(bench.now);
    }
    bench.see("a", 2).wait(10).check(expect![[r#"
        start Phases a:Modified after 0 failures
    "#]]);
    bench.succeed("a").see("a", 3).wait(300).check(expect![""]);
    bench.wait(100).check(expect![[r#"
        start Phases a:Modified after 0 failures
    "#]]);
}
