//! What stands in the place of secrets in a recording: something as long, of the same kinds of characters.

use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use configurator_core::document::Document;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Map, Number, Value};
use sha2::Sha256;

use super::parts::Part;
use crate::redaction::{MIN_LENGTH, forms, forms_of_bytes};

/// Where `kubectl apply` leaves a copy of the object.
const LAST_APPLIED: &str =
    "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// Something secret could not be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret in it cannot be replaced")]
pub struct Unreplaced;

/// The secrets of one run and what stands for them: the same for the same secret.
#[derive(Default)]
pub struct StandIns {
    key: [u8; 32],
    pairs: BTreeMap<String, String>,
}

impl StandIns {
    /// None yet. Who does not know the key cannot find a secret by its stand-in.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }

    /// Learns the secrets in what the secret store has answered.
    pub fn learn_answers<'a>(&mut self, answers: impl IntoIterator<Item = &'a Document>) {
        for answer in answers {
            if let Some(value) = answer.to_value().get("value") {
                self.collect(value);
            }
        }
    }

    /// Learns the secrets that are known as such by where they stand.
    pub fn learn(&mut self, part: &Part<'_>) {
        match part {
            Part::Answer(answer) => self.learn_answers([&**answer]),
            Part::Secret(value) => self.collect(&value.to_value()),
            Part::KubernetesSecret(document) => {
                if let Value::Object(fields) = document.to_value() {
                    self.collect_data(&fields);
                }
            }
            Part::Document(document) if may_be_secret(document) => {
                self.find(&document.to_value());
            }
            Part::Document(_) | Part::Text(_) | Part::Body(_) | Part::Name(_) => {}
        }
    }

    /// Learns what Kubernetes Secrets in it hold.
    fn find(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                if is_secret(fields) {
                    self.collect_data(fields);
                }
                fields.values().for_each(|field| self.find(field));
            }
            Value::Array(items) => items.iter().for_each(|item| self.find(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn collect_data(&mut self, secret: &Map<String, Value>) {
        for value in data(secret, "stringData") {
            self.collect(value);
        }
        for value in data(secret, "data") {
            let decoded = value.as_str().and_then(|text| STANDARD.decode(text).ok());
            match decoded.map(String::from_utf8) {
                Some(Ok(text)) => self.collect(&text.into()),
                Some(Err(binary)) => {
                    let bytes = binary.as_bytes();
                    self.pair(forms_of_bytes(bytes), forms_of_bytes(&self.of_bytes(bytes)));
                }
                None => self.collect(value),
            }
        }
    }

    fn collect(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                if text.len() >= MIN_LENGTH {
                    self.pair(forms(text), forms(&self.of(text)));
                }
                if let Some(inner) = inner(text) {
                    self.collect(&inner);
                }
            }
            Value::Number(number) if number.to_string().len() >= MIN_LENGTH => {
                self.pair([number.to_string()], [self.of_number(number)]);
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.collect(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn pair(
        &mut self,
        secret: impl IntoIterator<Item = String>,
        other: impl IntoIterator<Item = String>,
    ) {
        for (secret, other) in secret.into_iter().zip(other) {
            self.pairs.entry(secret).or_insert(other);
        }
    }

    /// As long, and each character of the same kind. What is JSON stays JSON.
    fn of(&self, secret: &str) -> String {
        if let Some(mut inner) = inner(secret) {
            self.replace_all(&mut inner);
            return inner.to_string();
        }
        let mut place = 0;
        let mut one = |first: char, kinds: u32| {
            place += 1;
            let drawn = self.drawn(secret.as_bytes(), place) % u64::from(kinds);
            let drawn = u32::try_from(drawn).unwrap_or_default();
            char::from_u32(u32::from(first) + drawn).unwrap_or(first)
        };
        secret
            .chars()
            .map(|character| match character {
                'a'..='z' => one('a', 26),
                'A'..='Z' => one('A', 26),
                // A number stays one, and does not begin with a zero.
                '0'..='9' => one('1', 9),
                other if other.is_ascii() => other,
                other => match other.len_utf8() {
                    2 => one('à', 20),
                    3 => one('一', 1_000),
                    _ => one('😀', 50),
                },
            })
            .collect()
    }

    fn of_bytes(&self, secret: &[u8]) -> Vec<u8> {
        let places = 0_u32..;
        let drawn = places.map(|place| self.drawn(secret, place).to_le_bytes()[0]);
        drawn.take(secret.len()).collect()
    }

    /// Of the same order of magnitude.
    fn of_number(&self, number: &Number) -> String {
        let text = number.to_string();
        let mut is_exponent = false;
        let digits = text.chars().zip(self.of(&text).chars().collect::<Vec<_>>());
        digits
            .map(|(own, other)| {
                is_exponent |= own == 'e';
                let stays = is_exponent || !own.is_ascii_digit();
                if stays { own } else { other }
            })
            .collect()
    }

    /// Chance that nobody repeats who does not know the key.
    fn drawn(&self, secret: &[u8], place: u32) -> u64 {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key)
            .unwrap_or_else(|_| unreachable!("a key of HMAC has any length"));
        mac.update(secret);
        mac.update(&place.to_be_bytes());
        let drawn = mac.finalize().into_bytes();
        let first = drawn.iter().take(8);
        first.fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }

    /// Another value everywhere, however short it is.
    fn replace_all(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.of(text),
            Value::Number(number) => {
                *value = serde_json::from_str(&self.of_number(number)).unwrap_or(Value::from(0));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace_all(item)),
            Value::Object(fields) => fields
                .values_mut()
                .for_each(|field| self.replace_all(field)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn replace_data(&self, secret: &mut Map<String, Value>) {
        if let Some(texts) = secret.get_mut("stringData") {
            self.replace_all(texts);
        }
        let data = secret.get_mut("data").and_then(Value::as_object_mut);
        for value in data.into_iter().flat_map(Map::values_mut) {
            let decoded = value.as_str().and_then(|text| STANDARD.decode(text).ok());
            match decoded.map(String::from_utf8) {
                Some(Ok(text)) => *value = STANDARD.encode(self.of(&text)).into(),
                Some(Err(binary)) => {
                    *value = STANDARD.encode(self.of_bytes(binary.as_bytes())).into();
                }
                None => self.replace_all(value),
            }
        }
    }

    /// What replaces them.
    ///
    /// # Errors
    /// When they cannot be looked for.
    pub fn ready(self) -> Result<Replacer, Unreplaced> {
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(self.pairs.keys())
            .map_err(|_| Unreplaced)?;
        Ok(Replacer {
            finder,
            stand_ins: self,
        })
    }
}

/// Puts stand-ins in the places of secrets, once all secrets are known.
pub struct Replacer {
    stand_ins: StandIns,
    finder: AhoCorasick,
}

impl Replacer {
    /// Puts stand-ins into a place of a call.
    ///
    /// # Errors
    /// When one does not fit there.
    pub fn replace(&self, part: Part<'_>) -> Result<(), Unreplaced> {
        let own = &self.stand_ins;
        match part {
            Part::Document(document) => {
                if own.pairs.is_empty() && !may_be_secret(document) {
                    return Ok(());
                }
                self.rewrite(document, |_| {})
            }
            Part::Answer(answer) => self.rewrite(answer, |value| {
                if let Some(secret) = value.get_mut("value") {
                    own.replace_all(secret);
                }
            }),
            Part::Secret(value) => self.rewrite(value, |value| own.replace_all(value)),
            Part::KubernetesSecret(document) => self.rewrite(document, |value| {
                if let Value::Object(fields) = value {
                    own.replace_data(fields);
                }
            }),
            Part::Text(text) => {
                *text = self.text(text);
                Ok(())
            }
            Part::Body(body) => {
                if self.is_in(&*body) {
                    *body = self.finder.replace_all_bytes(body, &self.others());
                }
                Ok(())
            }
            Part::Name(_) => Ok(()),
        }
    }

    /// Another chance in the place of this one, as hosts choose them: what a handler has made of it is not made of the other.
    #[must_use]
    pub fn seed(&self, seed: u64) -> u64 {
        self.stand_ins.drawn(&seed.to_be_bytes(), 0) >> 11
    }

    /// Whether there is a secret in it.
    #[must_use]
    pub fn is_in(&self, text: impl AsRef<[u8]>) -> bool {
        self.finder.is_match(text.as_ref())
    }

    /// Whether there is a secret anywhere in it.
    #[must_use]
    pub fn is_in_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.is_in(text),
            Value::Number(number) => self.is_in(number.to_string()),
            Value::Array(items) => items.iter().any(|item| self.is_in_value(item)),
            Value::Object(fields) => fields
                .iter()
                .any(|(name, field)| self.is_in(name) || self.is_in_value(field)),
            Value::Null | Value::Bool(_) => false,
        }
    }

    fn rewrite(
        &self,
        document: &mut Document,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), Unreplaced> {
        let value: Value = document.read().map_err(|_| Unreplaced)?;
        let mut other = value.clone();
        change(&mut other);
        self.replace_in(&mut other)?;
        if other != value {
            *document = Document::of(&other).map_err(|_| Unreplaced)?;
        }
        Ok(())
    }

    fn replace_in(&self, value: &mut Value) -> Result<(), Unreplaced> {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Number(number) => {
                let text = number.to_string();
                if self.is_in(&text) {
                    *value = serde_json::from_str(&self.text(&text)).map_err(|_| Unreplaced)?;
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.replace_in(item)?;
                }
            }
            Value::Object(fields) => {
                let is_secret = is_secret(fields);
                if is_secret {
                    self.stand_ins.replace_data(fields);
                }
                if fields.keys().any(|name| self.is_in(name)) {
                    let named = std::mem::take(fields).into_iter();
                    *fields = named
                        .map(|(name, field)| (self.text(&name), field))
                        .collect();
                }
                for field in fields.values_mut() {
                    self.replace_in(field)?;
                }
                if is_secret && let Some(Value::String(copy)) = value.pointer_mut(LAST_APPLIED) {
                    let mut copied = inner(copy).ok_or(Unreplaced)?;
                    self.replace_in(&mut copied)?;
                    *copy = copied.to_string();
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
        Ok(())
    }

    fn text(&self, text: &str) -> String {
        match self.is_in(text) {
            true => self.finder.replace_all(text, &self.others()),
            false => text.to_owned(),
        }
    }

    fn others(&self) -> Vec<&str> {
        self.stand_ins.pairs.values().map(String::as_str).collect()
    }
}

/// Whether there may be a Kubernetes Secret in it.
fn may_be_secret(document: &Document) -> bool {
    let text = document.as_str();
    text.contains("\"data\"") || text.contains("\"stringData\"")
}

/// Whether it is a Kubernetes Secret. One from a list may not say so.
fn is_secret(fields: &Map<String, Value>) -> bool {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    match text("kind") {
        Some(kind) => kind == "Secret" && text("apiVersion") == Some("v1"),
        None => ["metadata", "type", "data"]
            .iter()
            .all(|name| fields.contains_key(*name)),
    }
}

fn data<'s>(secret: &'s Map<String, Value>, field: &str) -> impl Iterator<Item = &'s Value> {
    let found = secret.get(field).and_then(Value::as_object);
    found.into_iter().flat_map(Map::values)
}

/// The JSON that a text is.
fn inner(text: &str) -> Option<Value> {
    let is_json = text.trim_start().starts_with(['{', '[']);
    is_json.then(|| serde_json::from_str(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn learnt(value: &str) -> Replacer {
        let mut stand_ins = StandIns::new([7; 32]);
        let answer = format!(r#"{{"name":"n","version":1,"value":{value}}}"#);
        stand_ins.learn_answers([&Document::parse(answer).unwrap()]);
        stand_ins.ready().unwrap()
    }

    fn replaced(replacer: &Replacer, value: &Value) -> Value {
        let mut document = Document::of(value).unwrap();
        replacer.replace(Part::Document(&mut document)).unwrap();
        document.to_value()
    }

    #[test]
    fn a_stand_in_is_as_long_and_of_the_same_kinds() {
        let secret = "Hunter-22 né 日本🦀";
        let other = StandIns::new([7; 32]).of(secret);
        assert_ne!(other, secret);
        assert_eq!(other.len(), secret.len());
        for (one, two) in secret.chars().zip(other.chars()) {
            assert_eq!(one.is_ascii_digit(), two.is_ascii_digit(), "{one} {two}");
            assert_eq!(
                one.is_ascii_uppercase(),
                two.is_ascii_uppercase(),
                "{one} {two}"
            );
            assert_eq!(one.len_utf8(), two.len_utf8(), "{one} {two}");
        }
        assert_eq!(StandIns::new([7; 32]).of(secret), other);
        assert_ne!(StandIns::new([8; 32]).of(secret), other);
    }

    #[test]
    fn secrets_are_replaced_wherever_they_stand() {
        let replacer = learnt(r#"{"password":"hunter22","lines":["one\ntwo!"],"pin":123456}"#);
        let text = r#"a hunter22, b "one\ntwo!" and 123456"#;
        let other = replacer.text(text);
        assert_eq!(other.len(), text.len());
        for secret in ["hunter22", "two!", "123456"] {
            assert!(!other.contains(secret), "{other}");
        }
        assert!(other.contains("\\n"), "{other}");
        assert_eq!(replacer.text("nothing"), "nothing");
    }

    #[test]
    fn names_of_fields_numbers_and_bodies_are_replaced() {
        let replacer = learnt(r#"["hunter22", 1234567, 12.345678]"#);
        let other = replaced(
            &replacer,
            &json!({"hunter22": {"pin": 1_234_567, "share": 12.345_678}, "other": 7}),
        );
        let text = other.to_string();
        for secret in ["hunter22", "1234567", "12.345678"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert_eq!(other.pointer("/other"), Some(&json!(7)));
        let mut values = other.as_object().unwrap().values();
        let inside = values.find(|value| value.is_object()).unwrap();
        assert!(inside.pointer("/pin").unwrap().is_u64(), "{text}");

        let mut body = [b"\xff hunter22 \xfe".as_slice(), b"1234567"].concat();
        replacer.replace(Part::Body(&mut body)).unwrap();
        assert!(!body.windows(8).any(|window| window == b"hunter22"));
        assert!(!body.windows(7).any(|window| window == b"1234567"));
        assert_eq!(body.first(), Some(&0xff));
    }

    #[test]
    fn base64_is_replaced_by_that_of_the_stand_in() {
        let replacer = learnt(r#""hunter22-and""#);
        let other = replaced(&replacer, &json!(STANDARD.encode("hunter22-and")));
        let decoded = STANDARD.decode(other.as_str().unwrap()).unwrap();
        assert_eq!(decoded, replacer.text("hunter22-and").into_bytes());
        // Also where it is a part of what was encoded, as in a header of HTTP.
        for before in ["", "u", "me", "you"] {
            let text = STANDARD.encode(format!("{before}:hunter22-and"));
            let other = replaced(&replacer, &json!(text));
            let decoded = STANDARD.decode(other.as_str().unwrap()).unwrap();
            let decoded = String::from_utf8_lossy(&decoded).into_owned();
            assert!(!decoded.contains("unter22-an"), "{decoded}");
            assert!(decoded.starts_with(before), "{decoded}");
        }
    }

    #[test]
    fn kubernetes_secrets_hold_secrets() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "login", "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration":
                    r#"{"apiVersion":"v1","kind":"Secret","data":{"pin":"MTIzNA=="}}"#,
            }},
            "data": {"password": STANDARD.encode("hunter22"), "pin": STANDARD.encode("1234"), "key": STANDARD.encode([255, 0, 254, 1, 253, 2])},
            "stringData": {"user": "administrator"},
        });
        let mut stand_ins = StandIns::new([7; 32]);
        stand_ins.learn(&Part::Document(&mut Document::of(&secret).unwrap()));
        let replacer = stand_ins.ready().unwrap();
        let other = replaced(&replacer, &secret);
        let text = other.to_string();
        assert!(!text.contains("MTIzNA"), "{text}");
        let decoded = |name: &str| {
            let text = other.pointer(&format!("/data/{name}")).unwrap();
            STANDARD.decode(text.as_str().unwrap()).unwrap()
        };
        assert_eq!(decoded("password"), replacer.text("hunter22").into_bytes());
        assert_eq!(decoded("key").len(), 6);
        assert_ne!(decoded("key"), [255, 0, 254, 1, 253, 2]);
        assert_ne!(
            other.pointer("/stringData/user"),
            secret.pointer("/stringData/user")
        );
        let elsewhere = replaced(&replacer, &json!(["hunter22", "administrator", "login"]));
        assert!(!elsewhere.to_string().contains("hunter22"));
        assert!(!elsewhere.to_string().contains("administrator"));
        assert_eq!(elsewhere.pointer("/2"), Some(&json!("login")));
    }

    #[test]
    fn a_secret_that_is_json_is_known_by_its_parts_and_stays_json() {
        let replacer = learnt(r#""{\"auth\":{\"password\":\"hunter22\",\"on\":true}}""#);
        let other = replacer.text(r#"{"auth":{"password":"hunter22","on":true}}"#);
        let other: Value = serde_json::from_str(&other).unwrap();
        assert_eq!(other.pointer("/auth/on"), Some(&json!(true)));
        assert!(!replacer.text("hunter22").contains("hunter22"));
    }
}
