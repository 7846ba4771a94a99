//! The cases, as `tests/conformance/*.yaml` has them.

use std::collections::BTreeMap;
use std::fs;

use configurator_tests::guests::workspace;
use serde::Deserialize;
use serde_json::Value;

/// One file: cases of one topic.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    /// What the file is called, without its ending; cases are called after it.
    #[serde(skip)]
    pub file: String,
    pub topic: String,
    /// Whether the controllers of the real server are at work meanwhile: those that remove namespaces and garbage.
    #[serde(default)]
    pub controllers: bool,
    /// What placeholders stand for, beside those that every case has.
    #[serde(default, rename = "let")]
    pub lets: BTreeMap<String, Value>,
    /// Done once before the cases, and no part of them.
    #[serde(default)]
    pub setup: Vec<Step>,
    pub cases: Vec<Case>,
}

/// What is done to both servers, and must be answered alike.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// A sentence.
    pub name: String,
    /// The answers differ, and for this reason.
    pub left_out: Option<String>,
    pub steps: Vec<Step>,
}

/// One request. Exactly one of the verbs has a path.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    #[serde(rename = "GET")]
    pub get: Option<String>,
    #[serde(rename = "POST")]
    pub post: Option<String>,
    #[serde(rename = "PUT")]
    pub put: Option<String>,
    #[serde(rename = "DELETE")]
    pub delete: Option<String>,
    /// PATCH with a JSON merge patch.
    #[serde(rename = "MERGE")]
    pub merge: Option<String>,
    /// PATCH with a strategic merge patch.
    #[serde(rename = "STRATEGIC")]
    pub strategic: Option<String>,
    /// PATCH with a JSON Patch.
    #[serde(rename = "JSON")]
    pub json: Option<String>,
    /// PATCH with server-side apply.
    #[serde(rename = "APPLY")]
    pub apply: Option<String>,
    /// PATCH with a type of its own.
    #[serde(rename = "PATCH")]
    pub patch: Option<String>,
    /// A watch, with what happens `during` it.
    #[serde(rename = "WATCH")]
    pub watch: Option<String>,

    /// A document; a placeholder alone stands for a whole one.
    pub body: Option<Value>,
    /// A merge patch of the body.
    pub with: Option<Value>,
    /// A body that is no JSON, or not a valid one.
    pub raw: Option<String>,
    #[serde(rename = "type")]
    pub media: Option<String>,
    pub accept: Option<String>,
    /// The client's User-Agent.
    pub agent: Option<String>,
    /// A name for the answer, which later placeholders use.
    #[serde(rename = "as")]
    pub name: Option<String>,
    /// GET is repeated until the answer contains this; `gone` is a 404.
    pub until: Option<Value>,
    /// Only these parts of the answer are of interest, as JSON pointers.
    pub show: Option<Vec<String>>,
    /// How many events of a watch are awaited before the steps `during` it.
    #[serde(default)]
    pub first: usize,
    /// Steps while a watch is open.
    #[serde(default)]
    pub during: Vec<Step>,
    /// How many events of a watch are awaited, with the first ones; else all until it ends.
    pub take: Option<usize>,
}

impl Step {
    /// The verb, its media type, and the path.
    pub fn request(&self) -> (&'static str, &str, &str) {
        let json = "application/json";
        let all = [
            ("GET", json, &self.get),
            ("POST", json, &self.post),
            ("PUT", json, &self.put),
            ("DELETE", json, &self.delete),
            ("PATCH", "application/merge-patch+json", &self.merge),
            (
                "PATCH",
                "application/strategic-merge-patch+json",
                &self.strategic,
            ),
            ("PATCH", "application/json-patch+json", &self.json),
            ("PATCH", "application/apply-patch+yaml", &self.apply),
            ("PATCH", "", &self.patch),
            ("GET", json, &self.watch),
        ];
        let mut chosen = all
            .into_iter()
            .filter_map(|(verb, media, path)| Some((verb, media, path.as_deref()?)));
        let request = chosen.next().expect("a step names a verb");
        assert!(chosen.next().is_none(), "{} has two verbs", request.2);
        request
    }
}

/// All topics, in the order of their files.
pub fn read() -> Vec<Topic> {
    let folder = workspace().join("tests/conformance");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let mut topic: Topic = serde_saphyr::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            topic.file = path.file_stem().unwrap().to_string_lossy().into_owned();
            topic
        })
        .collect()
}
