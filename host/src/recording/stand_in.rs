//! What stands in the place of secrets in a recording: something as long, of the same kinds of characters.

use aho_corasick::{AhoCorasick, MatchKind};
use configurator_core::document::Document;
use configurator_core::request::SinkName;
use configurator_core::result::{RequestResult, ResultEntry};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use crate::redaction::MIN_LENGTH;

/// The stand-ins of one run: the same for the same secret.
#[derive(Default)]
pub struct StandIns {
    key: [u8; 32],
    pairs: Vec<(String, String)>,
    finder: Option<AhoCorasick>,
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

    /// Whether there are any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Learns the secrets in what the secret store has answered.
    pub fn learn<'a>(&mut self, answers: impl IntoIterator<Item = &'a Document>) {
        let before = self.pairs.len();
        for answer in answers {
            if let Some(value) = answer.to_value().get("value") {
                self.collect(value);
            }
        }
        if self.pairs.len() > before {
            let needles = self.pairs.iter().map(|(secret, _)| secret);
            self.finder = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(needles)
                .ok();
        }
    }

    fn collect(&mut self, value: &Value) {
        match value {
            Value::String(text) if text.len() >= MIN_LENGTH => {
                let other = self.of(text);
                let quoted =
                    |text: &str| Value::from(text).to_string().trim_matches('"').to_owned();
                self.pair(quoted(text), quoted(&other));
                self.pair(text.clone(), other);
            }
            Value::Number(number) if number.to_string().len() >= MIN_LENGTH => {
                let text = number.to_string();
                let other = self.of(&text);
                self.pair(text, other);
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.collect(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn pair(&mut self, secret: String, other: String) {
        if !self.pairs.iter().any(|(known, _)| *known == secret) {
            self.pairs.push((secret, other));
        }
    }

    /// As long, and each character of the same kind.
    fn of(&self, secret: &str) -> String {
        let mut place = 0_u32;
        let mut draw = |kinds: u32| {
            let mut mac = Hmac::<Sha256>::new_from_slice(&self.key)
                .unwrap_or_else(|_| unreachable!("a key of HMAC has any length"));
            mac.update(secret.as_bytes());
            mac.update(&place.to_be_bytes());
            place += 1;
            let drawn = mac.finalize().into_bytes();
            let number = drawn
                .iter()
                .take(4)
                .fold(0_u32, |n, byte| (n << 8) | u32::from(*byte));
            number % kinds
        };
        let mut one = |first: char, kinds: u32| {
            char::from_u32(u32::from(first) + draw(kinds)).unwrap_or(first)
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

    /// The text with stand-ins.
    #[must_use]
    pub fn replace(&self, text: &str) -> String {
        match &self.finder {
            None => text.to_owned(),
            Some(finder) => {
                let others: Vec<&str> = self.pairs.iter().map(|(_, other)| &**other).collect();
                finder.replace_all(text, &others)
            }
        }
    }

    /// Every text in a value with stand-ins.
    pub fn replace_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.replace(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace_in(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.replace_in(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// What the secret store has answered, with stand-ins for all that is secret in it, however short.
    pub fn replace_answers<'a>(&self, entries: impl IntoIterator<Item = &'a mut ResultEntry>) {
        for entry in entries {
            match entry {
                ResultEntry::One(result) => self.replace_answer(result),
                ResultEntry::Group(results) => {
                    results
                        .iter_mut()
                        .for_each(|result| self.replace_answer(result));
                }
            }
        }
    }

    /// As [`replace_answers`](Self::replace_answers), of one.
    pub fn replace_answer(&self, result: &mut RequestResult) {
        if result.sink != SinkName::Secretstore {
            return;
        }
        for answer in &mut result.query_objects {
            let mut value = answer.to_value();
            if let Some(secret) = value.get_mut("value") {
                self.replace_all(secret);
            }
            if let Ok(document) = Document::of(&value) {
                *answer = document;
            }
        }
    }

    fn replace_all(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.of(text),
            Value::Number(number) => {
                let other = self.of(&number.to_string());
                *value = serde_json::from_str(&other).unwrap_or(Value::from(0));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace_all(item)),
            Value::Object(fields) => fields
                .values_mut()
                .for_each(|field| self.replace_all(field)),
            Value::Null | Value::Bool(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(value: &str) -> StandIns {
        let mut stand_ins = StandIns::new([7; 32]);
        let answer = format!(r#"{{"name":"n","version":1,"value":{value}}}"#);
        stand_ins.learn([&Document::parse(answer).unwrap()]);
        stand_ins
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
        let stand_ins = learnt(r#"{"password":"hunter22","lines":["one\ntwo!"],"pin":123456}"#);
        let text = r#"a hunter22, b "one\ntwo!" and 123456"#;
        let other = stand_ins.replace(text);
        assert_eq!(other.len(), text.len());
        for secret in ["hunter22", "two!", "123456"] {
            assert!(!other.contains(secret), "{other}");
        }
        assert!(other.contains("\\n"), "{other}");
        assert_eq!(stand_ins.replace("nothing"), "nothing");
    }
}
