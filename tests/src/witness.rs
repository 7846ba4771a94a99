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
use configurator_core::request::ObjectRef;
use configurator_core::run::{Call, Run};
use configurator_guest::module::Module;
use configurator_host::observer::{Notice, RunEnd, RunObserver};
use serde_json::Value;
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
    /// By object: the module that is being called.
    calling: HashMap<String, String>,
    ended: Vec<Pass>,
}

/// A run from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Which object it was of, as `namespace/name`.
    pub object: String,
    /// What `data.value` of the object was.
    pub content: String,
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
    /// `changes` says what was written to `data.value` of each object of the namespace `shop`, one after another, and `phases` what a run is made of.
    /// What was written last has been run on the module `running`, nothing is run after what was written later, and no two runs, one after
    /// the other, are of the same content on the same module.
    pub fn check_whole(
        &self,
        changes: &BTreeMap<String, Vec<String>>,
        phases: &[&str],
        running: &str,
    ) {
        for (object, contents) in changes {
            let passes = self.passes_of(&format!("shop/{object}"));
            let mut before = None;
            for pass in &passes {
                let called: Vec<&str> = pass.calls.iter().map(|(phase, _)| &**phase).collect();
                assert_eq!(called, phases, "{object}");
                let number = contents.iter().position(|content| *content == pass.content);
                let number = number.expect("content that was written");
                let run = (number, pass.module());
                if let Some(before) = before.replace(run) {
                    assert!(run.0 >= before.0, "older than the run before: {pass:?}");
                    assert_ne!(run, before, "a run is doubled: {pass:?}");
                }
            }
            let last = Some((contents.len() - 1, running));
            assert_eq!(before, last, "{object}");
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
    fn calling(&self, run: &Run, _: &Call, module: &Module) {
        let mut seen = self.seen.lock().unwrap();
        for member in run.members() {
            let object = member.key.to_string();
            seen.calling.insert(object, module.digest().to_string());
        }
    }

    fn called(&self, run: &Run, call: &Call, _: &Result<HandlerOutput, CallFault>) {
        let mut seen = self.seen.lock().unwrap();
        for member in run.members() {
            let object = member.key.to_string();
            let module = seen.calling[&object].clone();
            let value = member.object.to_value();
            let value = value.pointer("/data/value").and_then(Value::as_str);
            let pass = seen.under_way.entry(object.clone()).or_insert(Pass {
                object,
                content: value.unwrap_or_default().to_owned(),
                calls: Vec::new(),
            });
            let phase = call.input.context.phase.clone();
            pass.calls.push((phase, module));
        }
    }

    fn ended(&self, run: &Run, end: &RunEnd) {
        if let RunEnd::Finished(_) = end {
            let mut seen = self.seen.lock().unwrap();
            for member in run.members() {
                let pass = seen.under_way.remove(&member.key.to_string());
                seen.ended.extend(pass);
            }
        }
    }

    fn noticed(&self, _: &ObjectRef, notice: &Notice) {
        self.notices
            .send_modify(|notices| notices.push(notice.clone()));
    }
}
