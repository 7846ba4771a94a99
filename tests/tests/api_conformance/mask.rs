//! What differs between any two runs is masked: times, uids, versions, and names that a server makes up.

use std::collections::BTreeMap;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use crate::play::Entry;

/// Masks the answers of one case: the same value gets the same mask, so that who changed what can still be seen.
pub struct Mask {
    uid: Regex,
    time: Regex,
    version: Regex,
    uids: BTreeMap<String, usize>,
    versions: BTreeMap<String, usize>,
    names: BTreeMap<String, String>,
    year: String,
}

impl Mask {
    pub fn new() -> Self {
        let today = jiff::Timestamp::now().to_string();
        Self {
            uid: Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
                .unwrap(),
            time: Regex::new(r"(\d{4})-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap(),
            version: Regex::new(r"\d+").unwrap(),
            uids: BTreeMap::new(),
            versions: BTreeMap::new(),
            names: BTreeMap::new(),
            year: today.chars().take(4).collect(),
        }
    }

    /// The answers as JSON texts that can be compared.
    pub fn transcript(mut self, entries: &[Entry]) -> String {
        let mut text = String::new();
        for entry in entries {
            let mut body = entry.answer.body.clone();
            self.learn(&body);
            self.value(&mut body);
            let warnings = json!(entry.answer.warnings);
            let label = self.text(&entry.label);
            text.push_str(&format!("{label}\n{}\n", entry.answer.code));
            if !entry.answer.warnings.is_empty() {
                text.push_str(&format!("warnings: {warnings:#}\n"));
            }
            text.push_str(&match &body {
                Value::String(text) => text.clone(),
                other => format!("{other:#}"),
            });
            text.push_str("\n\n");
        }
        text
    }

    /// Names that the server has made up from a prefix.
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let text = |key| fields.get(key).and_then(Value::as_str);
                if let (Some(prefix), Some(name)) = (text("generateName"), text("name"))
                    && let Some(suffix) = name.strip_prefix(prefix)
                    && suffix.len() == 5
                {
                    let mask = format!("{prefix}<{} random>", suffix.len());
                    self.names.insert(name.to_owned(), mask);
                }
                fields.values().for_each(|value| self.learn(value));
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            _ => {}
        }
    }

    fn value(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => self.object(fields),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::String(text) => *text = self.text(text),
            _ => {}
        }
    }

    fn object(&mut self, fields: &mut Map<String, Value>) {
        // The version of a list or bookmark is that of the whole store, which others change.
        let is_list = fields.contains_key("items") || fields.contains_key("rows");
        let is_bookmark = fields.get("type") == Some(&json!("BOOKMARK"));
        if is_list && let Some(version) = fields.get_mut("metadata").and_then(version_of) {
            *version = json!("<of the list>");
        }
        if is_bookmark
            && let Some(object) = fields.get_mut("object")
            && let Some(version) = object.get_mut("metadata").and_then(version_of)
        {
            *version = json!("<of the bookmark>");
        }
        if let Some(Value::Array(managers)) = fields.get_mut("managedFields") {
            // Their order is that of their times, which have only seconds.
            managers.sort_by_cached_key(|entry| {
                ["manager", "operation", "apiVersion", "subresource"]
                    .map(|key| entry.get(key).unwrap_or(&Value::Null).to_string())
            });
        }
        sort_causes(fields);
        let keys: Vec<String> = fields
            .keys()
            .filter(|key| self.uid.is_match(key))
            .cloned()
            .collect();
        for key in keys {
            if let Some(value) = fields.remove(&key) {
                fields.insert(self.text(&key), value);
            }
        }
        for (key, value) in fields.iter_mut() {
            match (key.as_str(), &value) {
                ("resourceVersion", Value::String(version))
                    if version.len() < 20 && version.parse::<u64>().is_ok_and(|v| v > 0) =>
                {
                    let next = self.versions.len() + 1;
                    let number = *self.versions.entry(version.clone()).or_insert(next);
                    *value = json!(format!("<version {number}>"));
                }
                (key, Value::String(token)) if key.ends_with("continue") && !token.is_empty() => {
                    *value = json!("<continue>");
                }
                _ => self.value(value),
            }
        }
    }

    fn text(&mut self, text: &str) -> String {
        let uids = &mut self.uids;
        let mut text = self
            .uid
            .replace_all(text, |found: &Captures<'_>| {
                let next = uids.len() + 1;
                let number = *uids.entry(found[0].to_owned()).or_insert(next);
                // What a case itself made up stays.
                if found[0].starts_with("00000000-") {
                    format!("<own uid {}>", found[0].trim_start_matches(['0', '-']))
                } else {
                    format!("<uid {number}>")
                }
            })
            .into_owned();
        let year = &self.year;
        text = self
            .time
            .replace_all(&text, |found: &Captures<'_>| {
                let fraction = found.get(2).map_or(0, |digits| digits.len() - 1);
                match fraction {
                    _ if found[1] != **year => found[0].to_owned(),
                    0 => "<time>".to_owned(),
                    digits => format!("<time with {digits} digits>"),
                }
            })
            .into_owned();
        for (name, mask) in &self.names {
            text = text.replace(name, mask);
        }
        // An age, as tables have it.
        let digits = text.trim_end_matches('s');
        if digits.len() + 1 == text.len() && digits.parse::<u8>().is_ok() {
            return "<age>".to_owned();
        }
        let lower = text.to_lowercase();
        if lower.contains("resourceversion") || lower.contains("resource version") {
            let versions = &self.versions;
            text = self
                .version
                .replace_all(&text, |found: &Captures<'_>| {
                    match versions.get(&found[0]) {
                        Some(number) => format!("<version {number}>"),
                        None if found[0].len() > 2 => "<version>".to_owned(),
                        None => found[0].to_owned(),
                    }
                })
                .into_owned();
        }
        if text.contains("resourceVersion=") {
            let version = Regex::new(r"resourceVersion=\d{2,}").unwrap();
            text = version
                .replace_all(&text, "resourceVersion=<version>")
                .into_owned();
        }
        if text.contains("continue=") {
            let token = Regex::new("continue=[^&]*").unwrap();
            text = token.replace_all(&text, "continue=<continue>").into_owned();
        }
        text
    }
}

/// The order of causes is chance: a real server goes through maps to find them.
fn sort_causes(status: &mut Map<String, Value>) {
    let key = |cause: &Value| format!("{}: {}", text_of(cause, "field"), text_of(cause, "message"));
    let Some(Value::Array(causes)) = status
        .get_mut("details")
        .and_then(|details| details.get_mut("causes"))
    else {
        return;
    };
    let mut told: Vec<String> = Vec::new();
    for cause in causes.iter().map(key) {
        if !told.contains(&cause) {
            told.push(cause);
        }
    }
    causes.sort_by_cached_key(key);
    let list = format!("[{}]", told.join(", "));
    told.sort();
    if let Some(Value::String(message)) = status.get_mut("message") {
        *message = message.replace(&list, &format!("[{}]", told.join(", ")));
    }
}

fn text_of<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn version_of(metadata: &mut Value) -> Option<&mut Value> {
    metadata
        .get_mut("resourceVersion")
        .filter(|version| version.as_str().is_some_and(|text| !text.is_empty()))
}
