//! Plans of large sets of objects.

use std::hint::black_box;
use std::time::Instant;

use configurator_core::graph::Graph;
use configurator_core::graph::deletion::TerminationPolicy;
use configurator_core::graph::entry::{Entry, OnDelete, OnExisting, OnImmutable, Orders};
use configurator_core::graph::member::{Inventory, Member, MemberKey};
use configurator_core::graph::members::Members;
use configurator_core::graph::observation::{
    Found, Health, MemberOwner, Observation, Observations, Present,
};
use configurator_core::graph::plan::{PlanInput, Pruning, SetState, plan};
use configurator_core::time::Timestamp;

use crate::measure::median;
use crate::row;

const FEW: usize = 1_000;
const MANY: usize = 10_000;
/// Entries that depend on entries of the layer before.
const LAYER: usize = 100;
const DEPENDENCIES: usize = 3;
const ROUNDS: usize = 21;

/// Times the check and the plan of a set whose members are all ready.
pub fn measure(figures: &mut Vec<(String, f64)>) {
    let few = plan_ms(FEW);
    let many = plan_ms(MANY);
    row(
        &format!("check and plan of a set of {MANY} objects that are ready"),
        &format!("{many:.1} ms at the median"),
    );
    row(&format!("the same of {FEW}"), &format!("{few:.2} ms"));
    figures.push((format!("plan of {MANY} objects, ms"), many));
    figures.push((format!("plan of {MANY} objects to {FEW}"), many / few));
}

/// The time of a plan. Sets of this size are planned in turn, as many as have [`MANY`] entries together, so that no size has the advantage
/// that its set is still in a cache of the CPU.
fn plan_ms(size: usize) -> f64 {
    let mut sets: Vec<(Vec<Entry>, Members)> = (0..MANY / size).map(|_| set(size)).collect();
    let mut took = Vec::with_capacity(ROUNDS * sets.len());
    for _ in 0..ROUNDS {
        let entries: Vec<Vec<Entry>> = sets.iter().map(|(entries, _)| entries.clone()).collect();
        for (entries, (_, members)) in entries.into_iter().zip(&mut sets) {
            let since = Instant::now();
            let graph = Graph::new(entries, &Orders::default()).unwrap();
            let input = PlanInput {
                graph: &graph,
                version: 1,
                policy: TerminationPolicy::Delete,
                parallel: 16,
                pruning: Pruning::Confirmed,
                now: Timestamp::default(),
            };
            let plan = plan(&input, members);
            took.push(since.elapsed().as_secs_f64() * 1e3);
            assert_eq!(plan.state, SetState::Ready);
            black_box(plan);
        }
    }
    median(took)
}

/// The entries of a set, and its members, which are all ready.
fn set(size: usize) -> (Vec<Entry>, Members) {
    let entries: Vec<Entry> = (0..size).map(entry).collect();
    let graph = Graph::new(entries.clone(), &Orders::default()).unwrap();
    let mut inventory = Inventory::new();
    let mut observations = Observations::new();
    for (index, entry) in entries.iter().enumerate() {
        let (nonce, uid) = (format!("nonce {index}"), format!("uid {index}"));
        let present = Present {
            uid: uid.clone(),
            owner: MemberOwner::ThisSet {
                nonce: nonce.clone(),
            },
            is_terminating: false,
            is_marked: false,
            differs: false,
            health: Health::Ready,
            unready_since: Timestamp::default(),
        };
        let observation = Observation {
            found: Found::Present(Box::new(present)),
            ..Observation::default()
        };
        observations.insert(entry.key.clone(), observation);
        let member = Member {
            facts: graph.facts(index).unwrap(),
            removed_in: None,
            nonce,
            uid: Some(uid),
        };
        inventory.insert(entry.key.clone(), member);
    }
    (entries, Members::new(inventory, observations))
}

fn entry(index: usize) -> Entry {
    let name = |index: usize| format!("entry-{index}");
    let before = (index / LAYER).checked_sub(1).map(|layer| layer * LAYER);
    let depends_on = before.map_or_else(Vec::new, |start| {
        let steps = 0..DEPENDENCIES;
        let others = steps.map(|step| start + (index * 7 + step * 31) % LAYER);
        others.map(name).collect()
    });
    Entry {
        name: name(index),
        key: MemberKey::Kubernetes {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: name(index),
        },
        depends_on,
        on_existing: OnExisting::Refuse,
        on_immutable: OnImmutable::Fail,
        on_delete: OnDelete::WithOwner,
        timeout: None,
        provides: None,
    }
}
