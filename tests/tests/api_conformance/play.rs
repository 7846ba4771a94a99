//! Plays the steps of a case on one server.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use regex::Regex;
use serde_json::{Value, json};

use crate::server::{Answer, Asked, PATIENCE, Watch, ask};
use crate::suite::{Step, Topic};

/// One request with its answer.
#[derive(Debug, Clone)]
pub struct Entry {
    pub label: String,
    pub answer: Answer,
}

/// The steps of one case on one server.
pub struct Player<'a> {
    client: Client,
    lets: &'a BTreeMap<String, Value>,
    /// The case's own name for things that have no namespace, and of its namespace.
    id: String,
    answers: BTreeMap<String, Value>,
    pub entries: Vec<Entry>,
}

impl<'a> Player<'a> {
    pub fn new(client: Client, topic: &'a Topic, id: String) -> Self {
        Self {
            client,
            lets: &topic.lets,
            id,
            answers: BTreeMap::new(),
            entries: Vec::new(),
        }
    }

    /// Makes the namespace of the case.
    pub async fn make_namespace(&mut self) {
        let asked = Asked {
            verb: "POST",
            path: "/api/v1/namespaces".to_owned(),
            media: "application/json".to_owned(),
            accept: "application/json".to_owned(),
            agent: "conformance".to_owned(),
            body: json!({"metadata": {"name": self.id}}).to_string().into(),
        };
        let answer = ask(&self.client, &asked).await;
        assert_eq!(answer.code, 201, "{}", answer.body);
    }

    pub fn all<'s>(&'s mut self, steps: &'s [Step]) -> BoxFuture<'s, ()> {
        async move {
            for step in steps {
                self.one(step).await;
            }
        }
        .boxed()
    }

    async fn one(&mut self, step: &Step) {
        let asked = self.asked(step);
        let label = format!("{} {}", asked.verb, asked.path);
        if step.watch.is_some() {
            let mut watch = Watch::open(&self.client, &asked).await;
            let mut events = watch.events(Some(step.first)).await;
            self.all(&step.during).await;
            let rest = step.take.map(|take| take.saturating_sub(step.first));
            events.extend(watch.events(rest).await);
            self.entries.push(Entry {
                label: format!("WATCH {}", asked.path),
                answer: Answer {
                    code: watch.code,
                    warnings: std::mem::take(&mut watch.warnings),
                    body: Value::Array(events),
                },
            });
            return;
        }
        let mut answer = match &step.until {
            None => ask(&self.client, &asked).await,
            Some(until) => self.await_state(&asked, &self.value(until)).await,
        };
        if let Some(name) = &step.name {
            self.answers.insert(name.clone(), answer.body.clone());
        }
        if let Some(pointers) = &step.show {
            let shown = pointers
                .iter()
                .map(|pointer| (pointer.clone(), answer.body.pointer(pointer).cloned()));
            answer.body = shown
                .map(|(pointer, value)| (pointer, value.unwrap_or_default()))
                .collect::<serde_json::Map<_, _>>()
                .into();
        }
        self.entries.push(Entry { label, answer });
    }

    async fn await_state(&self, asked: &Asked, until: &Value) -> Answer {
        let begun = tokio::time::Instant::now();
        let mut pause = Duration::from_millis(10);
        loop {
            let mut answer = ask(&self.client, asked).await;
            let there = match until {
                Value::String(gone) => gone == "gone" && answer.code == 404,
                wanted => answer.code == 200 && contains(&answer.body, wanted),
            };
            if there {
                return answer;
            }
            if begun.elapsed() > PATIENCE {
                answer.warnings.push(format!("this never came: {until}"));
                return answer;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }

    fn asked(&self, step: &Step) -> Asked {
        let (verb, media, path) = step.request();
        let body = match (&step.raw, &step.body) {
            (Some(raw), _) => self.text(raw).into_bytes(),
            (None, Some(body)) => {
                let mut body = self.value(body);
                if let Some(with) = &step.with {
                    json_patch::merge(&mut body, &self.value(with));
                }
                body.to_string().into_bytes()
            }
            (None, None) => Vec::new(),
        };
        Asked {
            verb,
            path: self.text(path),
            media: step.media.clone().unwrap_or_else(|| media.to_owned()),
            accept: step
                .accept
                .clone()
                .unwrap_or_else(|| "application/json".to_owned()),
            agent: step
                .agent
                .clone()
                .unwrap_or_else(|| "conformance/1 (tests)".to_owned()),
            body,
        }
    }

    fn lookup(&self, placeholder: &str) -> Option<Value> {
        let mut path = placeholder.split('.');
        let first = path.next()?;
        let mut value = match first {
            "ns" | "id" => Value::from(self.id.as_str()),
            name => match self.lets.get(name) {
                Some(value) => self.value(value),
                None => self.answers.get(name)?.clone(),
            },
        };
        for part in path {
            let next = match &value {
                Value::Array(items) => items.get(part.parse::<usize>().ok()?),
                other => other.get(part),
            };
            value = next.cloned().unwrap_or_default();
        }
        Some(value)
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let whole = text
                    .strip_prefix('{')
                    .and_then(|text| text.strip_suffix('}'))
                    .filter(|text| !text.contains(['{', '}']))
                    .and_then(|name| self.lookup(name));
                whole.unwrap_or_else(|| self.text(text).into())
            }
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (self.text(key), self.value(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }

    fn text(&self, text: &str) -> String {
        let placeholder = Regex::new(r"\{([a-zA-Z][a-zA-Z0-9]*(?:\.[A-Za-z0-9_-]+)*)\}").unwrap();
        placeholder
            .replace_all(text, |found: &regex::Captures<'_>| {
                match self.lookup(&found[1]) {
                    Some(Value::String(text)) => text,
                    Some(other) => other.to_string(),
                    None => found[0].to_owned(),
                }
            })
            .into_owned()
    }
}

/// Whether a document has what is wanted: fields of objects, items of lists. Null is what is not there.
fn contains(document: &Value, wanted: &Value) -> bool {
    match (document, wanted) {
        (Value::Object(document), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| contains(document.get(key).unwrap_or(&Value::Null), wanted)),
        (Value::Array(items), Value::Array(wanted)) if wanted.is_empty() => items.is_empty(),
        (Value::Array(items), Value::Array(wanted)) => wanted
            .iter()
            .all(|wanted| items.iter().any(|item| contains(item, wanted))),
        (document, wanted) => document == wanted,
    }
}
