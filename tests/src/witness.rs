//! Sees which module each run is of.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "it panics where a test is to fail"
)]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use configurator_core::handler::{CallFault, HandlerOutput};
use configurator_core::run::{Call, Run};
use configurator_host::observer::{Notice, RunEnd, RunObserver};
use tokio::sync::watch;

/// What was seen. Cloning shares it.
#[derive(Clone, Default)]
pub struct Witness {
    seen: Arc<Mutex<Seen>>,
    notices: watch::Sender<Vec<Notice>>,
}

#[derive(Default)]
struct Seen {
    /// By object: the run under way.
    under_way: HashMap<String, Pass>,
    ended: Vec<Pass>,
}

/// A run from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Which object it was of, as `namespace/name`.
    pub object: String,
    /// Of each call: phase and module.
    pub calls: Vec<(String, String)>,
}

impl Witness {
    /// One that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The runs that have ended, in order.
    pub fn passes(&self) -> Vec<Pass> {
        self.seen.lock().unwrap().ended.clone()
    }

    /// The runs of this object that have ended.
    pub fn passes_of(&self, object: &str) -> Vec<Pass> {
        let mut passes = self.passes();
        passes.retain(|pass| pass.object == object);
        passes
    }

    /// Whether the run under way of this object has come to this phase.
    pub fn has_called(&self, object: &str, phase: &str) -> bool {
        let seen = self.seen.lock().unwrap();
        let pass = seen.under_way.get(object);
        pass.is_some_and(|pass| pass.calls.iter().any(|(called, _)| called == phase))
    }

    /// How many calls the run under way of this object has made.
    pub fn calls_under_way(&self, object: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.under_way
            .get(object)
            .map_or(0, |pass| pass.calls.len())
    }

    /// Panics when a run was dropped, doubled, of two modules, or stopped in between.
    ///
    /// `changes` says how often each object of the namespace `shop` was changed, `swaps` how often another module was swapped in, `phases` what
    /// a run is made of; the last run of each object must be of the module `running`.
    pub fn check_whole(
        &self,
        changes: &BTreeMap<String, usize>,
        swaps: usize,
        phases: &[&str],
        running: &str,
    ) {
        for (object, changes) in changes {
            let passes = self.passes_of(&format!("shop/{object}"));
            for pass in &passes {
                pass.module();
                let called: Vec<&str> = pass.calls.iter().map(|(phase, _)| &**phase).collect();
                assert_eq!(called, phases, "{object}");
            }
            let last = passes.last().map(Pass::module);
            assert_eq!(last, Some(running), "{object}");
            let runs = passes.len();
            assert!(runs <= changes + swaps, "{object}: {runs} runs");
        }
    }

    /// Every notice so far.
    pub fn notices(&self) -> Vec<Notice> {
        self.notices.borrow().clone()
    }

    /// Returns the first notice after the first `after` that is one of these.
    pub async fn next(&self, after: usize, is_it: impl Fn(&Notice) -> bool) -> Notice {
        let found = |notices: &[Notice]| notices.iter().skip(after).find(|one| is_it(one)).cloned();
        let mut notices = self.notices.subscribe();
        let waiting = notices.wait_for(|notices| found(notices).is_some());
        let waited = tokio::time::timeout(crate::world::PATIENCE, waiting).await;
        let notices = waited.expect("no such notice").unwrap();
        found(&notices).unwrap()
    }
}

impl Pass {
    /// The module of all its calls; panics where they were of several.
    pub fn module(&self) -> &str {
        let (_, first) = &self.calls[0];
        assert!(
            self.calls.iter().all(|(_, module)| module == first),
            "a run mixes modules: {self:?}"
        );
        first
    }
}

impl RunObserver for Witness {
    fn called(&self, run: &Run, call: &Call, _: &Result<HandlerOutput, CallFault>) {
        let mut seen = self.seen.lock().unwrap();
        for member in run.members() {
            let object = member.key.to_string();
            let pass = seen.under_way.entry(object.clone()).or_insert(Pass {
                object,
                calls: Vec::new(),
            });
            let phase = call.input.context.phase.clone();
            pass.calls.push((phase, run.module().digest().to_owned()));
        }
    }

    fn ended(&self, run: &Run, end: &RunEnd<'_>) {
        if let RunEnd::Finished(_) = end {
            let mut seen = self.seen.lock().unwrap();
            for member in run.members() {
                let pass = seen.under_way.remove(&member.key.to_string());
                seen.ended.extend(pass);
            }
        }
    }

    fn noticed(&self, _: &str, notice: &Notice) {
        self.notices
            .send_modify(|notices| notices.push(notice.clone()));
    }
}
