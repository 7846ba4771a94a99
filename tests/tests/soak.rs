//! A month of a host on embedded servers, on a clock of its own: objects come and go, modules are swapped, watches expire. Nothing grows
//! but what is stored.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]
#![allow(
    unsafe_code,
    reason = "an allocator is unsafe by its trait; this one passes everything on"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use bytes::Bytes;
use configurator_apiserver::{ApiServer, ApiServerOptions};
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::fault::Fault;
use configurator_core::result::{Answer, HttpResponse};
use configurator_core::run::{Finish, Run};
use configurator_core::time::Timestamp;
use configurator_host::clock::Clock;
use configurator_host::observer::{RunEnd, RunObserver};
use configurator_host::sinks::configstore::{ConfigStore as _, EmbeddedConfigStore};
use configurator_host::sinks::secretstore::{EmbeddedSecretStore, SealingKey};
use configurator_host::sinks::{Scope, Sink};
use configurator_store::testing::Disk;
use configurator_store::{Store, StoreOptions};
use configurator_tests::shelf::Shelf;
use configurator_tests::world::{Servers, World};
use configurator_tests::{configurator, guests};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject};
use kube::client::Body;
use serde_json::json;
use tokio::sync::watch;
use tower::ServiceExt as _;

const DAYS: usize = 30;
/// Days until everything that is bounded has reached its bound.
const FIRST_DAYS: usize = 15;
const OBJECTS: usize = 1_000;
/// Objects that go each day; as many come, under names of their own.
const REPLACED: usize = 100;
/// More than the resync interval.
const HALF_A_DAY: Duration = Duration::from_hours(12);
/// Moments at which memory is measured each day, and the time between two of them. On a slow machine, work between runs can take a few of them.
const MOMENTS: usize = 12;
const MOMENT: Duration = Duration::from_secs(5);
/// Requests of the test at a time.
const AT_ONCE: usize = 50;
/// How much memory, and how many bytes of files, may be in use of what was in the first days, in percent: tables grow in steps, and a
/// file has room for what is written at the same time.
const MEMORY_PERCENT: i64 = 105;
const FILES_PERCENT: i64 = 120;

/// Counts what is allocated and not freed.
struct Counting;

static ALLOCATED: AtomicI64 = AtomicI64::new(0);

// SAFETY: everything is passed on as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A clock that is fast, and that the test sets forward.
#[derive(Clone)]
struct SetClock(watch::Sender<Timestamp>);

impl SetClock {
    /// Lets time pass a hundred times as fast as it does.
    fn run(&self) {
        let clock = self.clone();
        tokio::spawn(async move {
            let mut steps = tokio::time::interval(Duration::from_millis(2));
            loop {
                steps.tick().await;
                clock.advance(Duration::from_millis(200));
            }
        });
    }

    fn advance(&self, span: Duration) {
        self.0.send_modify(|now| *now = now.after(span));
    }
}

#[async_trait]
impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        *self.0.borrow()
    }

    async fn sleep(&self, span: Duration) {
        let until = self.now().after(span);
        // The sender is held here.
        let _ = self.0.subscribe().wait_for(|now| *now >= until).await;
    }
}

/// Counts the runs that ended well, by the digest of their module.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<BTreeMap<String, usize>>>);

impl Runs {
    fn by_module(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap()
    }

    fn count(&self) -> usize {
        self.by_module().values().sum()
    }
}

impl RunObserver for Runs {
    fn ended(&self, run: &Run, end: &RunEnd) {
        if matches!(end, RunEnd::Finished(Finish::Succeeded)) {
            let module = run.module().digest().to_owned();
            *self.by_module().entry(module).or_default() += 1;
        }
    }
}

/// Answers every HTTP request at once.
struct Endpoint;

#[async_trait]
impl Sink for Endpoint {
    async fn execute(&self, _: &AuthorizedOperation, _: &Scope) -> Result<Answer, Fault> {
        let answer = HttpResponse {
            status: 200,
            headers: Vec::new(),
            body: Vec::new(),
        };
        Ok(Answer {
            query_objects: Vec::new(),
            http_response: Some(answer),
            changed: true,
        })
    }

    async fn probe(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// A client whose watches all expire when `days` changes: then everything is listed anew.
fn client(server: ApiServer, days: watch::Receiver<usize>, lists: Arc<AtomicU64>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (server, mut days, lists) = (server.clone(), days.clone(), lists.clone());
        async move {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let is_watch = query.contains("watch=");
            if !is_watch && query.contains("limit=") || query.contains("sendInitialEvents=true") {
                lists.fetch_add(1, Ordering::Relaxed);
            }
            days.mark_unchanged();
            let response = server.oneshot(request).await?;
            let (parts, body) = response.into_parts();
            let body = body.map_err(tower::BoxError::from);
            if !is_watch {
                return Ok(Response::from_parts(parts, body.boxed_unsync()));
            }
            const EXPIRED: &str = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"expired","reason":"Expired","code":410}}"#;
            let changed = async move { drop(days.changed().await) };
            let expired =
                stream::once(async { Ok(Frame::data(Bytes::from(format!("{EXPIRED}\n")))) });
            let frames = BodyStream::new(body)
                .take_until(Box::pin(changed))
                .chain(expired);
            Ok::<_, tower::BoxError>(Response::from_parts(
                parts,
                StreamBody::new(frames).boxed_unsync(),
            ))
        }
    });
    Client::new(service, "default")
}

/// What could grow.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Keys of the API's store, the config store and the secret store.
    keys: [usize; 3],
    /// Bytes of their files.
    files: [usize; 3],
    /// Bytes that are allocated, without the files.
    memory: i64,
}

struct Month {
    disks: [Disk; 3],
    stores: [Store; 3],
    config: EmbeddedConfigStore,
    clock: SetClock,
    days: watch::Sender<usize>,
    lists: Arc<AtomicU64>,
    runs: Runs,
    shelf: Shelf,
    module: Vec<u8>,
    world: World,
    objects: Api<DynamicObject>,
}

impl Month {
    async fn begin() -> Result<Self> {
        let disks = [Disk::default(), Disk::default(), Disk::default()];
        let open = |at: usize| disks[at].store_with(StoreOptions::default());
        let stores = [open(0)?, open(1)?, open(2)?];
        let clock = SetClock(watch::Sender::new(Timestamp::from_millis(
            1_700_000_000_000,
        )));
        clock.run();
        let of_server = clock.clone();
        let mut options = ApiServerOptions::new(move || {
            jiff::Timestamp::from_millisecond(of_server.now().as_millis()).unwrap()
        });
        // Less than what comes in the first days, for the Configurator as well, whose status changes some ten times a day.
        options.history_events = 10 * FIRST_DAYS;
        // Each swap publishes one.
        options.events = FIRST_DAYS / 2;
        let server = ApiServer::open(stores[0].clone(), options).await?;
        let key = SealingKey::random()?;
        let config = EmbeddedConfigStore::on(stores[1].clone());
        let days = watch::Sender::new(0);
        let lists = Arc::<AtomicU64>::default();
        let servers = Servers {
            cluster: client(server.clone(), days.subscribe(), lists.clone()).into(),
            server: Some(server),
            config: Arc::new(config.clone()),
            secrets: Arc::new(EmbeddedSecretStore::on(stores[2].clone(), &key).await?),
        };
        let runs = Runs::default();
        let module = std::fs::read(guests::folder()?.join("scripted.wasm"))?;
        let shelf = Shelf::with(module.clone());
        let (of_host, observer, modules) = (clock.clone(), runs.clone(), shelf.clone());
        let world = World::start_on(servers, |builder| {
            builder
                .clock(of_host)
                .observer(observer)
                .modules(modules)
                .http_sink(Endpoint)
        })
        .await?;
        let objects = world.objects("v1", "ConfigMap", "default").await?;
        Ok(Self {
            disks,
            stores,
            config,
            clock,
            days,
            lists,
            runs,
            shelf,
            module,
            world,
            objects,
        })
    }

    async fn declare(&self) -> Result<()> {
        let copy = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "copy-of-{name}", "namespace": "default"},
            "data": {"run": "{now}"},
        });
        let phases = json!({"requests": [
            {"name": "put", "put": {"key": "of-{name}", "value": "{now}"}},
            {"name": "copy", "apply": copy},
            {"name": "post", "http": {"method": "POST", "url": "http://example.org/", "body": "{name}"}},
        ]});
        let deletion = json!({"requests": [
            {"name": "remove", "remove": "of-{name}"},
            {"name": "delete", "deleteConfigMap": "copy-of-{name}"},
        ]});
        let mut object = configurator::scripted(
            "month",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"handled": "yes"}}, "resyncPeriod": "10h"}),
            phases,
            json!({
                "kubernetes": [{"apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "verbs": ["get", "apply", "delete"]}],
                "configstore": [{"prefixes": [""], "verbs": ["get", "create", "update", "delete"]}],
                "http": [{"hosts": ["example.org"], "methods": ["POST"]}],
            }),
        );
        object["spec"]["concurrency"] = 32.into();
        object["spec"]["deletion"] = json!({"phases": [{"name": "gone", "handler": "root"}]});
        object["spec"]["parameters"]["gone"] = deletion;
        self.world.apply(&object).await
    }

    async fn make(&self, name: &str) -> Result<()> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default", "labels": {"handled": "yes"}},
            "data": {"padding": "x".repeat(1_000)},
        });
        self.world.apply(&object).await
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.objects.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The day's objects replace those of an earlier one.
    async fn replace(&self, gone: &[String], come: &[String]) -> Result<()> {
        let made = stream::iter(come).map(|name| self.make(name));
        made.buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        let deleted = stream::iter(gone).map(|name| self.delete(name));
        deleted
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        self.world
            .until("a key for each object", || async {
                Ok(self.config.scan("basic/").await?.len() == OBJECTS)
            })
            .await?;
        self.world.settled(&["month"]).await
    }

    /// Replaces the module. Returns when every object has had a run of the new one: a resync alone may be over before it is compiled.
    async fn swap(&self, day: usize) -> Result<()> {
        // A custom section with the day as its name: the same program, and another module.
        let section = [0, 2, 1, b'A' + u8::try_from(day)?];
        let known = self.runs.by_module().clone();
        self.shelf.put(Ok([&self.module[..], &section].concat()));
        self.clock.advance(HALF_A_DAY);
        self.world
            .until("a run of each object with the new module", || async {
                let runs = self.runs.by_module();
                let mut of_new = runs
                    .iter()
                    .filter(|(module, _)| !known.contains_key(*module));
                Ok(of_new.any(|(_, runs)| *runs >= OBJECTS))
            })
            .await?;
        self.world.settled(&["month"]).await
    }

    /// Half a day passes, so that every object has a run.
    async fn resync(&self) -> Result<()> {
        let runs = self.runs.count() + OBJECTS;
        self.clock.advance(HALF_A_DAY);
        self.world
            .until("a run of each object", || async {
                Ok(self.runs.count() >= runs)
            })
            .await
            .with_context(|| format!("runs are missing: {}", runs - self.runs.count()))?;
        self.world.settled(&["month"]).await
    }

    /// Every watch expires, and the objects are listed anew.
    async fn list_anew(&self, day: usize) -> Result<()> {
        let before = self.lists.load(Ordering::Relaxed);
        self.days.send_replace(day + 1);
        self.world
            .until("the objects listed anew", || async {
                // Configurators, and their objects.
                Ok(self.lists.load(Ordering::Relaxed) >= before + 2)
            })
            .await?;
        self.resync().await
    }

    /// What there is when everything has been carried out: three keys for each object, which are its own, one of the ledger, and the cause
    /// of its HTTP requests. Of the memory, the least at several moments counts, since the host also works between runs.
    async fn size(&self) -> Result<Size> {
        let size = Cell::new(None);
        self.world
            .until("three keys for each object", || async {
                let found = self.measure()?;
                size.set(Some(found));
                Ok(found.keys[1] == 3 * OBJECTS)
            })
            .await?;
        let mut size = size.get().context("no size")?;
        for _ in 1..MOMENTS {
            self.clock.sleep(MOMENT).await;
            size.memory = size.memory.min(self.measure()?.memory);
        }
        Ok(size)
    }

    fn measure(&self) -> Result<Size> {
        let mut keys = [0; 3];
        for (count, store) in keys.iter_mut().zip(&self.stores) {
            *count = store.range(b"", usize::MAX)?.len();
        }
        let files = self.disks.iter().map(|disk| disk.allocated() as i64);
        Ok(Size {
            keys,
            files: [0, 1, 2].map(|at| self.disks[at].file_length()),
            memory: ALLOCATED.load(Ordering::Relaxed) - files.sum::<i64>(),
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_month_of_churn_leaves_nothing_behind() -> Result<()> {
    let month = Month::begin().await?;
    month.declare().await?;
    let mut names: Vec<String> = (0..OBJECTS)
        .map(|number| format!("first-{number}"))
        .collect();
    month.replace(&[], &names).await?;
    let mut sizes = Vec::new();
    for day in 0..DAYS {
        let gone: Vec<String> = names.drain(..REPLACED).collect();
        let come: Vec<String> = (0..REPLACED)
            .map(|number| format!("day-{day}-{number}"))
            .collect();
        month.replace(&gone, &come).await?;
        names.extend(come);
        month.swap(day).await?;
        month.list_anew(day).await?;
        let size = month.size().await?;
        println!("day {day}: {size:?}");
        sizes.push(size);
    }
    let (first, rest) = sizes.split_at(FIRST_DAYS);
    let most = |part: fn(&Size) -> i64| first.iter().map(part).max().unwrap();
    for size in rest {
        assert_eq!(size.keys, first[FIRST_DAYS - 1].keys);
        let files = |size: &Size| size.files.iter().sum::<usize>() as i64;
        let allowed = most(files) * FILES_PERCENT / 100;
        assert!(files(size) <= allowed, "{size:?}");
        let memory = most(|size| size.memory) * MEMORY_PERCENT / 100;
        assert!(size.memory <= memory, "{size:?}");
    }
    month.world.stop().await
}
