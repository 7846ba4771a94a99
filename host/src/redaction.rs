//! Keeps the secrets that a run has seen out of what is logged and shown.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use configurator_core::document::Document;
use configurator_core::plan::Plan;
use configurator_core::request::{Operation, SinkName};
use configurator_core::result::RequestResult;
use serde_json::Value;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";
/// Shorter values are not redacted: they would be found everywhere.
pub const MIN_LENGTH: usize = 6;

/// Replaces the secrets of one run by [`REDACTED`]: every string of at least [`MIN_LENGTH`] bytes in the value of a
/// secret, as it is, as JSON writes it, and in base64. Without secrets it costs nothing.
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

    /// Learns the secrets that a handler writes. Their answers may leave them out.
    pub fn learn_written(&mut self, plan: &Plan) {
        let written = plan
            .steps
            .iter()
            .filter_map(|step| match &step.request.operation {
                Operation::Secret(secret) => secret.value.as_ref(),
                _ => None,
            });
        self.learn_values(written);
    }

    /// Learns the secrets in what the secret store answered.
    pub fn learn<'a>(&mut self, answers: impl IntoIterator<Item = &'a Document>) {
        let answers = answers.into_iter().map(Document::to_value);
        self.add(answers.filter_map(|mut answer| Some(answer.get_mut("value")?.take())));
    }

    /// Learns the values of secrets.
    pub fn learn_values<'a>(&mut self, values: impl IntoIterator<Item = &'a Document>) {
        self.add(values.into_iter().map(Document::to_value));
    }

    fn add(&mut self, values: impl Iterator<Item = Value>) {
        let before = self.needles.len();
        for value in values {
            collect(&value, &mut self.needles);
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

    /// The value without secrets: strings and names of fields as [`redact`](Self::redact) returns them, and a number that
    /// shows a secret as such a string. Where a secret is spread over several parts, nothing of the value is left.
    #[must_use]
    pub fn redact_value(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        let clean = self.clean(value);
        let shows_secret = self
            .finder()
            .is_none_or(|finder| finder.is_match(&clean.to_string()));
        match shows_secret {
            true => REDACTED.into(),
            false => clean,
        }
    }

    fn clean(&self, value: Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value,
            Value::String(text) => self.redact(&text).into(),
            Value::Number(number) => {
                let text = number.to_string();
                match self.redact(&text) {
                    clean if clean == text => Value::Number(number),
                    clean => clean.into(),
                }
            }
            Value::Array(items) => items.into_iter().map(|item| self.clean(item)).collect(),
            Value::Object(fields) => fields
                .into_iter()
                .map(|(name, field)| (self.redact(&name), self.clean(field)))
                .collect(),
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
        Value::String(text) if text.len() >= MIN_LENGTH => needles.extend(forms(text)),
        Value::Number(number) if number.to_string().len() >= MIN_LENGTH => {
            needles.insert(number.to_string());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, needles)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, needles)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// How a text of at least [`MIN_LENGTH`] bytes may be written elsewhere: as it is, in JSON as languages differ in writing it, and in
/// base64. Of every text the same number, in the same order.
pub(crate) fn forms(text: &str) -> Vec<String> {
    let quoted = Value::from(text).to_string();
    let inside = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let plain = inside.unwrap_or(text);
    // Python escapes everything that is not ASCII; Go what has a meaning in HTML.
    let ascii = escaped(plain, |one| !one.is_ascii());
    let html = escaped(plain, |one| {
        matches!(one, '<' | '>' | '&' | '\u{2028}' | '\u{2029}')
    });
    let mut forms = vec![text.to_owned(), plain.to_owned(), ascii, html];
    forms.extend(forms_of_bytes(text.as_bytes()));
    forms
}

/// In base64: as a whole, and what can be known of it in the middle of something longer.
pub(crate) fn forms_of_bytes(bytes: &[u8]) -> Vec<String> {
    if bytes.len() < MIN_LENGTH {
        return Vec::new();
    }
    let mut forms = Vec::new();
    for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        forms.push(alphabet.encode(bytes));
        for before in 0..3 {
            let all = [&vec![0; before], bytes].concat();
            let encoded = alphabet.encode(&all);
            // Three bytes are four characters; those that begin or end outside are of others too.
            let inside = encoded.get((before * 8).div_ceil(6)..all.len() * 8 / 6);
            forms.push(inside.unwrap_or_default().to_owned());
        }
    }
    forms
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for one in text.chars() {
        if is_escaped(one) {
            for unit in one.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(one);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use configurator_core::fault::{Fault, FaultKind};
    use configurator_core::plan::{PlannedAction, PlannedStep};
    use configurator_core::request::{OnError, Request, SecretRequest, SecretVerb};
    use configurator_core::time::Timestamp;
    use expect_test::expect;
    use serde_json::json;

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
        assert_eq!(
            redactor.redact("Basic YWRtaW46aHVudGVyMjI= aHVudGVyMjI="),
            "Basic YWRtaW46[redacted]= [redacted]="
        );
        redactor.learn_results(&[secret(r#""<a&b> né""#)]);
        assert_eq!(
            redactor.redact(r"Go \u003ca\u0026b\u003e né, Python <a&b> n\u00e9"),
            "Go [redacted], Python [redacted]"
        );
        redactor.learn_results(&[secret(r#""later1""#)]);
        assert_eq!(redactor.redact("later1 hunter22"), "[redacted] [redacted]");
    }

    #[test]
    fn what_a_handler_writes_is_secret_though_its_answer_shows_nothing() {
        let request = SecretRequest {
            name: "s".into(),
            verb: SecretVerb::Create,
            value: Some(Document::of(&json!({"password": "hunter22"})).unwrap()),
            version: None,
            partition: None,
        };
        let plan = Plan {
            order: None,
            is_serial: false,
            steps: vec![PlannedStep {
                request: Request::new("r", Operation::Secret(request)),
                on_error: OnError::Fail,
                action: PlannedAction::Refuse(Fault::new(FaultKind::NotSent, "")),
            }],
        };
        let mut redactor = Redactor::default();
        redactor.learn_written(&plan);
        assert_eq!(redactor.redact("it is hunter22"), "it is [redacted]");
    }

    #[test]
    fn a_value_without_secrets_is_still_a_value() {
        let mut redactor = Redactor::default();
        let value = json!({"pin": 123456, "level": 3});
        assert_eq!(redactor.redact_value(value.clone()), value);
        redactor.learn_results(&[secret(
            r#"{"password":"hunter22","pin":123456,"code":-12345.5,"parts":"1,234567"}"#,
        )]);
        let value = json!({
            "pin": 123456, "code": -12345.5, "longer": 91234567, "level": 3, "ready": true, "none": null,
            "login": ["admin", "hunter22"], "hunter22": {"of": "x hunter22"},
        });
        expect![[r#"{"[redacted]":{"of":"x [redacted]"},"code":"[redacted]","level":3,"login":["admin","[redacted]"],"longer":"9[redacted]7","none":null,"pin":"[redacted]","ready":true}"#]]
            .assert_eq(&redactor.redact_value(value).to_string());
        // Spread over two numbers.
        assert_eq!(redactor.redact_value(json!([1, 234567])), REDACTED);
    }
}
