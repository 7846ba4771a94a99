//! Keeps the secrets that a run has seen out of what is logged and shown.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};
use configurator_core::document::Document;
use configurator_core::request::SinkName;
use configurator_core::result::RequestResult;
use serde_json::Value;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";
/// Shorter values are not redacted: they would be found everywhere.
pub const MIN_LENGTH: usize = 6;

/// Replaces the secrets of one run by [`REDACTED`]: every string of at least [`MIN_LENGTH`] bytes in the value of a
/// secret, as it is and as JSON writes it. Without secrets it costs nothing.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    needles: BTreeSet<String>,
    /// Made when the first text is looked at: most runs have secrets and nothing to log.
    finder: OnceLock<Option<AhoCorasick>>,
}

impl Redactor {
    /// Learns the secrets among the results.
    pub fn learn_results(&mut self, results: &[RequestResult]) {
        let secrets = results
            .iter()
            .filter(|result| result.sink == SinkName::Secretstore);
        self.learn(secrets.flat_map(|result| &result.query_objects));
    }

    /// Learns the secrets in what the secret store answered.
    pub fn learn<'a>(&mut self, answers: impl IntoIterator<Item = &'a Document>) {
        let before = self.needles.len();
        for answer in answers {
            if let Some(value) = answer.to_value().get("value") {
                collect(value, &mut self.needles);
            }
        }
        if self.needles.len() > before {
            self.finder.take();
        }
    }

    /// Whether there is anything to redact.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// The text without secrets. Where they cannot be looked for, nothing of the text is left.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        if self.is_empty() {
            return text.to_owned();
        }
        match self.finder() {
            None => REDACTED.to_owned(),
            Some(finder) => {
                let replacements = vec![REDACTED; finder.patterns_len()];
                finder.replace_all(text, &replacements)
            }
        }
    }

    fn finder(&self) -> Option<&AhoCorasick> {
        let build = || {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(&self.needles)
                .ok()
        };
        self.finder.get_or_init(build).as_ref()
    }
}

fn collect(value: &Value, needles: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.len() >= MIN_LENGTH => {
            let quoted = Value::from(text.as_str()).to_string();
            let escaped = quoted.trim_matches('"');
            if escaped != text {
                needles.insert(escaped.to_owned());
            }
            needles.insert(text.clone());
        }
        Value::Number(number) if number.to_string().len() >= MIN_LENGTH => {
            needles.insert(number.to_string());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, needles)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, needles)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use configurator_core::time::Timestamp;

    use super::*;

    fn secret(value: &str) -> RequestResult {
        RequestResult {
            request_name: "s".into(),
            sink: SinkName::Secretstore,
            is_declarative: false,
            query_objects: vec![
                Document::parse(format!(r#"{{"name":"n","version":1,"value":{value}}}"#)).unwrap(),
            ],
            created: Timestamp::default(),
            finished: None,
            error: None,
            http_response: None,
        }
    }

    #[test]
    fn secrets_are_found_wherever_they_stand() {
        let mut redactor = Redactor::default();
        assert_eq!(redactor.redact("hunter22"), "hunter22");
        redactor.learn_results(&[secret(
            r#"{"user":"admin","password":"hunter22","lines":["one\ntwo!"],"pin":123456}"#,
        )]);
        assert_eq!(
            redactor.redact(r#"login hunter22hunter22 {"l":"one\ntwo!"} pin=123456 admin"#),
            r#"login [redacted][redacted] {"l":"[redacted]"} pin=[redacted] admin"#
        );
        redactor.learn_results(&[secret(r#""later1""#)]);
        assert_eq!(redactor.redact("later1 hunter22"), "[redacted] [redacted]");
    }
}
