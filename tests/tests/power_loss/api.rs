//! The embedded API, and somebody who watches it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use configurator_apiserver::{ApiBody, ApiServer, ApiServerOptions};
use configurator_store::Store;
use configurator_store::testing::{Dice, Disk};
use futures::FutureExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::history::{CallOf, Outcome, Subject, fail_each_operation, play_all};
use crate::linear::Model;

const HISTORIES: u64 = 700;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn the_api_keeps_its_word_over_faults_and_power_losses_and_watchers_miss_nothing() {
    let (count, witnesses) = play_all::<Api>(HISTORIES);
    crate::assert_all_happened(&count);
    let sum = |part: fn(&Watcher) -> usize| witnesses.iter().map(part).sum::<usize>();
    let (seen, resumed, expired) = (
        sum(|watcher| watcher.seen.len()),
        sum(|watcher| watcher.resumed),
        sum(|watcher| watcher.expired),
    );
    println!("watchers: {seen} changes seen, {resumed} resumed, {expired} expired");
    assert!(seen > 100 && resumed > 20 && expired > 5);
}

#[test]
fn the_api_keeps_its_word_whichever_operation_fails() {
    assert!(fail_each_operation::<Api>() > 8);
}

struct Api {
    store: Store,
    server: ApiServer,
}

#[derive(Debug, Clone)]
enum Operation {
    Create(u64, u64),
    Replace(u64, u64),
    Delete(u64),
    Get(u64),
    List,
}

/// The number in an object, and its revision.
type Object = (u64, u64);

#[derive(Debug, Clone)]
enum Answer {
    Written(u64),
    Deleted,
    Exists,
    NotFound,
    Got(Object),
    Listed(BTreeMap<u64, Object>, u64),
}

/// The objects; without a revision where nobody knows it yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Objects {
    objects: BTreeMap<u64, (u64, Option<u64>)>,
    revision: u64,
}

impl Objects {
    /// Writes an object whose revision may be known.
    fn write(&mut self, name: u64, number: u64, revision: Option<u64>) -> bool {
        self.objects.insert(name, (number, revision));
        match revision {
            Some(revision) => {
                let is_newer = revision > self.revision;
                self.revision = revision;
                is_newer
            }
            None => true,
        }
    }

    /// Whether this can be the object; if so, its revision is known from now on.
    fn is(&mut self, name: u64, (number, revision): Object) -> bool {
        match self.objects.get_mut(&name) {
            Some((stored, known)) if *stored == number => {
                let fits = known.is_none_or(|known| known == revision);
                *known = Some(revision);
                fits
            }
            _ => false,
        }
    }
}

impl Model for Objects {
    type Operation = Operation;
    type Answer = Answer;

    fn step(&self, operation: &Operation, answer: Option<&Answer>) -> Option<Self> {
        let mut next = self.clone();
        let exists = match operation {
            Operation::Create(name, _)
            | Operation::Replace(name, _)
            | Operation::Delete(name)
            | Operation::Get(name) => self.objects.contains_key(name),
            Operation::List => true,
        };
        let is_allowed = match (operation, answer) {
            (Operation::Create(name, number), Some(Answer::Written(revision))) => {
                !exists && next.write(*name, *number, Some(*revision))
            }
            (Operation::Create(name, number), None) => exists || next.write(*name, *number, None),
            (Operation::Create(..), Some(Answer::Exists)) => exists,
            (Operation::Replace(name, number), Some(Answer::Written(revision))) => {
                exists && next.write(*name, *number, Some(*revision))
            }
            (Operation::Replace(name, number), None) => !exists || next.write(*name, *number, None),
            (Operation::Delete(name), Some(Answer::Deleted)) => next.objects.remove(name).is_some(),
            (Operation::Delete(name), None) => {
                next.objects.remove(name);
                true
            }
            (Operation::Get(name), Some(Answer::Got(object))) => next.is(*name, *object),
            (_, Some(Answer::NotFound)) => !exists,
            (Operation::List, Some(Answer::Listed(objects, revision))) => {
                let is_newer = *revision >= next.revision;
                next.revision = *revision;
                is_newer
                    && next.objects.keys().eq(objects.keys())
                    && objects.iter().all(|(name, object)| next.is(*name, *object))
            }
            (Operation::Get(_) | Operation::List, None) => true,
            _ => false,
        };
        is_allowed.then_some(next)
    }
}

/// Lists once, then watches, and lists again only if it is told that its revision has expired.
#[derive(Debug, Default)]
pub struct Watcher {
    stream: Option<Lines>,
    /// What it has been shown is in here, up to this revision.
    view: BTreeMap<u64, Object>,
    cursor: u64,
    /// Between these revisions it should have seen everything.
    spans: Vec<(u64, u64)>,
    seen: BTreeSet<u64>,
    has_list: bool,
    resumed: usize,
    expired: usize,
}

#[derive(Debug)]
struct Lines {
    body: ApiBody,
    rest: Vec<u8>,
}

impl Lines {
    /// The next line, if it is there. `None` when the stream has ended.
    fn next(&mut self) -> Option<Option<Value>> {
        loop {
            if let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(Some(serde_json::from_slice(&line).unwrap()));
            }
            match self.body.frame().now_or_never() {
                None => return Some(None),
                Some(None) => return None,
                Some(Some(frame)) => {
                    self.rest
                        .extend_from_slice(&frame.unwrap().into_data().unwrap());
                }
            }
        }
    }
}

impl Watcher {
    /// Takes in a line. Returns whether the watch goes on.
    fn take(&mut self, line: &Value) -> bool {
        let object = &line["object"];
        if line["type"] == "ERROR" {
            assert_eq!(object["code"], 410, "{line}");
            self.expired += 1;
            self.has_list = false;
            return false;
        }
        let (name, (number, revision)) = read(object);
        assert!(revision > self.cursor, "{line}: after {}", self.cursor);
        self.cursor = revision;
        self.seen.insert(revision);
        self.spans.last_mut().unwrap().1 = revision;
        if line["type"] == "DELETED" {
            self.view.remove(&name);
        } else {
            self.view.insert(name, (number, revision));
        }
        true
    }
}

fn number(value: &Value) -> u64 {
    value.as_str().unwrap().trim().parse().unwrap()
}

fn read(object: &Value) -> (u64, Object) {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap().strip_prefix("name-");
    let object = (
        number(&object["data"]["number"]),
        number(&metadata["resourceVersion"]),
    );
    (name.unwrap().parse().unwrap(), object)
}

fn read_list(list: &Value) -> (BTreeMap<u64, Object>, u64) {
    let items = list["items"].as_array().unwrap().iter().map(read);
    (
        items.collect(),
        number(&list["metadata"]["resourceVersion"]),
    )
}

impl Api {
    async fn send(&self, method: &str, path: &str, body: String) -> Response<ApiBody> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        self.server.clone().oneshot(request).await.unwrap()
    }

    async fn request(&self, method: &str, path: &str, body: String) -> (u16, Value) {
        let response = self.send(method, path, body).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap())
    }
}

impl Subject for Api {
    type Model = Objects;
    type Witness = Watcher;

    async fn open(disk: &Disk) -> Result<Self, String> {
        let store = disk.store().map_err(|error| error.to_string())?;
        let options = ApiServerOptions::new(|| Timestamp::from_second(1_700_000_000).unwrap());
        let server = ApiServer::open(store.clone(), options).await;
        Ok(Self {
            server: server.map_err(|error| error.to_string())?,
            store,
        })
    }

    fn store(&self) -> &Store {
        &self.store
    }

    fn generate(dice: &mut Dice, number: u64) -> Operation {
        let name = dice.below(3);
        match dice.below(8) {
            0..3 => Operation::Create(name, number),
            3 | 4 => Operation::Replace(name, number),
            5 => Operation::Delete(name),
            6 => Operation::Get(name),
            _ => Operation::List,
        }
    }

    fn read_all() -> Operation {
        Operation::List
    }

    async fn call(&self, operation: &Operation) -> Outcome<Answer> {
        let object = |name: &u64, number: &u64| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("name-{name}")},
                   // So long that an object has a page of its own.
                   "data": {"number": format!("{number:<2000}")}})
            .to_string()
        };
        let path = |name: &u64| format!("{CONFIG_MAPS}/name-{name}");
        let (code, body) = match operation {
            Operation::Create(name, number) => {
                self.request("POST", CONFIG_MAPS, object(name, number))
                    .await
            }
            Operation::Replace(name, number) => {
                self.request("PUT", &path(name), object(name, number)).await
            }
            Operation::Delete(name) => self.request("DELETE", &path(name), String::new()).await,
            Operation::Get(name) => self.request("GET", &path(name), String::new()).await,
            Operation::List => self.request("GET", CONFIG_MAPS, String::new()).await,
        };
        Outcome::Answer(match (code, operation) {
            (200 | 201, Operation::Create(..) | Operation::Replace(..)) => {
                Answer::Written(read(&body).1.1)
            }
            (200, Operation::Delete(_)) => Answer::Deleted,
            (200, Operation::Get(_)) => Answer::Got(read(&body).1),
            (200, Operation::List) => {
                let (objects, revision) = read_list(&body);
                Answer::Listed(objects, revision)
            }
            (404, _) => Answer::NotFound,
            (409, Operation::Create(..)) => Answer::Exists,
            (504, _) => return Outcome::Unknown,
            (503, _) => return Outcome::Nothing,
            _ => panic!("{operation:?}: {code} {body}"),
        })
    }

    async fn watch(&self, watcher: &mut Watcher) {
        loop {
            if !watcher.has_list {
                let (code, list) = self.request("GET", CONFIG_MAPS, String::new()).await;
                if code != 200 {
                    return;
                }
                (watcher.view, watcher.cursor) = read_list(&list);
                watcher.spans.push((watcher.cursor, watcher.cursor));
                watcher.has_list = true;
            }
            if watcher.stream.is_none() {
                let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", watcher.cursor);
                let response = self.send("GET", &path, String::new()).await;
                if response.status() != 200 {
                    return;
                }
                watcher.resumed += 1;
                watcher.stream = Some(Lines {
                    body: response.into_body(),
                    rest: Vec::new(),
                });
            }
            let line = watcher.stream.as_mut().and_then(Lines::next);
            match line {
                Some(Some(line)) if watcher.take(&line) => {}
                Some(None) => return,
                Some(Some(_)) | None => watcher.stream = None,
            }
        }
    }

    fn disconnect(watcher: &mut Watcher) {
        watcher.stream = None;
    }

    fn verify(watcher: &Watcher, calls: &[CallOf<Self>]) -> Result<(), String> {
        let Some(Answer::Listed(objects, newest)) =
            calls.last().and_then(|call| call.answer.as_ref())
        else {
            return Err("nothing was listed at the end".to_owned());
        };
        if watcher.view != *objects {
            return Err(format!("the watcher has missed a change: {watcher:?}"));
        }
        let mut spans = watcher.spans.clone();
        if let Some(last) = spans.last_mut() {
            last.1 = *newest;
        }
        for call in calls {
            if let Some(Answer::Written(revision)) = call.answer
                && spans
                    .iter()
                    .any(|(from, to)| (from + 1..=*to).contains(&revision))
                && !watcher.seen.contains(&revision)
            {
                return Err(format!("the watcher has not seen {revision}: {watcher:?}"));
            }
        }
        Ok(())
    }
}
