//! Objects that cost their host much delay no others, in virtual time, where a call takes a declared time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::fault::Fault;
use configurator_core::handler::ResourceObject;
use configurator_core::request::{ConfigOperation, Operation};
use configurator_core::result::Answer;
use configurator_core::run::Call;
use configurator_core::time::Timestamp;
use configurator_host::clock::VirtualClock;
use configurator_host::controller::call_mode::{CallMode, ChargedCalls};
use configurator_host::host::HostBuilder;
use configurator_host::sinks::{Scope, Sink, Sinks};
use configurator_tests::configurator;
use configurator_tests::poison::{self, Poison};
use configurator_tests::world::{Place, World};
use serde_json::json;
use tokio::time::Instant;

/// Healthy objects of each of the two Configurators.
const HEALTHY: usize = 100;
const POISONED: usize = 50;
/// Calls at a time. More than Configurators, since these share the calls evenly and a hot loop takes two of them.
const PARALLEL_CALLS: u32 = 4;
/// How long poisoned objects are there before healthy ones.
const BEFORE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(10);
/// How long a healthy call takes.
const CALL: Duration = Duration::from_millis(2);
/// The number of times longer that a healthy object may wait than without poison, at the 99th percentile.
const RATIO: f64 = 2.0;

/// Returns how long a call takes. A poisoned object that computes or allocates goes on until its deadline.
fn duration(kind: Poison, call: &Call) -> Duration {
    let objects = match &call.input.resource_object {
        ResourceObject::One(object) => std::slice::from_ref(object),
        ResourceObject::Batch(objects) => objects.as_slice(),
    };
    let is_poisoned = objects
        .iter()
        .any(|object| object.object.as_str().contains("\"name\":\"poison"));
    match kind {
        _ if !is_poisoned => CALL,
        Poison::Loop | Poison::Allocation => Duration::from_secs(1),
        Poison::LogFlood | Poison::ManyRequests | Poison::LargeStatus => Duration::from_millis(50),
        _ => CALL,
    }
}

/// Has a host live in virtual time, with calls that take as long as this says.
fn in_virtual_time(
    builder: HostBuilder,
    duration: impl Fn(&Call) -> Duration + Send + Sync + 'static,
) -> HostBuilder {
    let clock = VirtualClock::starting_at(Timestamp::from_millis(1_700_000_000_000));
    let calls = ChargedCalls::new(PARALLEL_CALLS, TICK, duration);
    builder.clock(clock).call_mode(CallMode::Charged(calls))
}

/// Measures how long healthy objects of each Configurator wait, in milliseconds at the 99th percentile.
async fn waits(kind: Poison, poisoned: usize) -> Result<[f64; 2]> {
    let build = |builder: HostBuilder| in_virtual_time(builder, move |call| duration(kind, call));
    let place = Place::default();
    let latencies = poison::latencies(&place, kind, poisoned, HEALTHY, BEFORE, build).await?;
    Ok(latencies.map(|of| poison::percentile(&of, 99)))
}

/// Fails if healthy objects wait much longer beside poisoned ones than without them.
async fn check(kind: Poison) -> Result<()> {
    let without = waits(kind, 0).await?;
    let with = waits(kind, POISONED).await?;
    let row =
        format!("{kind:?}: {without:?} ms without, {with:?} ms beside {POISONED} poisoned objects");
    println!("{row}");
    let is_fair = |(without, with): (&f64, &f64)| *with <= without * RATIO;
    assert!(without.iter().zip(&with).all(is_fair), "{row}");
    Ok(())
}

/// A test for each kind, so that they run side by side; and one that no kind is left out.
macro_rules! kinds {
    ($($test:ident: $kind:ident,)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $test() -> Result<()> {
                check(Poison::$kind).await
            }
        )*

        #[test]
        fn each_kind_of_poison_has_a_test() {
            assert_eq!(Poison::ALL, [$(Poison::$kind),*]);
        }
    };
}

kinds! {
    traps_delay_no_others: Trap,
    loops_delay_no_others: Loop,
    allocations_delay_no_others: Allocation,
    floods_of_the_log_delay_no_others: LogFlood,
    a_thousand_requests_delay_no_others: ManyRequests,
    large_answers_delay_no_others: LargeAnswer,
    throttled_requests_delay_no_others: Throttled,
    timeouts_delay_no_others: TimedOut,
    large_statuses_delay_no_others: LargeStatus,
    hot_loops_delay_no_others: HotLoop,
    failing_members_delay_no_others: FailingMember,
    floods_of_commands_delay_no_others: CommandFlood,
}

/// Of the Configurator of the suspects.
const CONCURRENCY: usize = 32;
/// Objects that become suspects together.
const SUSPECTS: usize = 4;
/// Requests of each of their runs.
const REQUESTS: usize = 100;
/// Requests at the start of a run that its Configurator's suspects do not share.
const UNLIMITED: usize = 16;
/// How long a request takes.
const REQUEST: Duration = Duration::from_millis(5);

/// Counts the requests after the first of each run that are under way.
#[derive(Clone, Default)]
struct Requests {
    done: Arc<AtomicUsize>,
    under_way: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Requests {
    fn before(&self, sinks: Sinks) -> Sinks {
        let configstore = Arc::new(CountedSink {
            requests: self.clone(),
            inner: sinks.configstore,
        });
        Sinks {
            configstore,
            ..sinks
        }
    }
}

struct CountedSink {
    requests: Requests,
    inner: Arc<dyn Sink>,
}

/// Returns the number of the request among those of its run.
fn number(operation: &Operation) -> Option<usize> {
    let Operation::Config(request) = operation else {
        return None;
    };
    let [ConfigOperation::Basic(basic)] = request.operations.as_slice() else {
        return None;
    };
    basic.key.rsplit_once('-')?.1.parse().ok()
}

#[async_trait]
impl Sink for CountedSink {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let Requests {
            done,
            under_way,
            most,
        } = &self.requests;
        let counts = number(operation.operation()).is_some_and(|number| number >= UNLIMITED);
        if counts {
            let now = under_way.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
        }
        tokio::time::sleep(REQUEST).await;
        let answer = self.inner.execute(operation, scope).await;
        if counts {
            under_way.fetch_sub(1, Ordering::SeqCst);
            done.fetch_add(1, Ordering::SeqCst);
        }
        answer
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.inner.probe().await
    }
}

#[tokio::test(start_paused = true)]
async fn runs_of_suspects_share_a_few_requests_and_rest_after_each() -> Result<()> {
    let requests = Requests::default();
    let counted = requests.clone();
    let world = World::start_at(&Place::default(), |builder| {
        let builder = in_virtual_time(builder, |_| CALL);
        builder.decorate_sinks(move |sinks| counted.before(sinks))
    })
    .await?;
    let put = json!({"repeat": REQUESTS, "name": "put-{number}", "put": {"key": "{name}-{number}", "value": "{run}"}});
    let mut busy = configurator::scripted(
        "busy",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "namespaces": ["default"]}),
        json!({"requests": [put]}),
        json!({"configstore": [{"prefixes": [""], "verbs": ["create", "update"]}]}),
    );
    busy["spec"]["concurrency"] = CONCURRENCY.into();
    world.apply(&busy).await?;
    world.settled(&["busy"]).await?;
    let mut most = Vec::new();
    let mut took = Duration::ZERO;
    // The third run in a few seconds makes an object a suspect.
    for round in 1..=3 {
        let began = Instant::now();
        for object in 0..SUSPECTS {
            let name = format!("object-{object}");
            let body = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "default"},
                "data": {"round": round.to_string()},
            });
            world.apply(&body).await?;
        }
        let all = round * SUSPECTS * (REQUESTS - UNLIMITED);
        let are_done = || async { Ok(requests.done.load(Ordering::SeqCst) >= all) };
        world.until("the requests to be made", are_done).await?;
        most.push(requests.most.swap(0, Ordering::SeqCst));
        took = began.elapsed();
    }
    world.kill().await?;
    // A run has as many requests under way as the concurrency allows. All runs of suspects together have an eighth of that.
    let before = SUSPECTS * CONCURRENCY;
    let at_a_time = CONCURRENCY / 8;
    assert_eq!(most, [before, before, at_a_time]);
    let one_after_another = SUSPECTS * (REQUESTS - UNLIMITED) / at_a_time;
    assert!(
        took >= 4 * REQUEST * u32::try_from(one_after_another)?,
        "{took:?}"
    );
    Ok(())
}
