//! JSON as a Kubernetes server reads it: with the words of its language about what is wrong, and with what is there twice.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads a document, and the paths of fields that are there more than once. Of those the last counts; two objects are merged.
pub(crate) fn parse(body: &[u8]) -> Result<(Value, Vec<String>), String> {
    let mut repeated = Vec::new();
    let mut input = serde_json::Deserializer::from_slice(body);
    let reader = Reader {
        path: String::new(),
        repeated: &mut repeated,
        before: None,
    };
    match reader
        .deserialize(&mut input)
        .and_then(|value| input.end().map(|()| value))
    {
        Ok(value) => Ok((value, repeated)),
        Err(error) => Err(Scanner { rest: body }
            .document()
            .err()
            .unwrap_or_else(|| error.to_string())),
    }
}

struct Reader<'a> {
    path: String,
    repeated: &'a mut Vec<String>,
    /// What stood under the same name before.
    before: Option<Value>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let item = Reader {
                path: format!("{}[{}]", self.path, list.len()),
                repeated: &mut *self.repeated,
                before: None,
            };
            match items.next_element_seed(item)? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = match self.before {
            Some(Value::Object(before)) => before,
            _ => Map::new(),
        };
        let mut seen: Vec<String> = Vec::new();
        while let Some(name) = fields.next_key::<String>()? {
            let path = if self.path.is_empty() {
                name.clone()
            } else {
                format!("{}.{name}", self.path)
            };
            // An object that is repeated begins with what it had; a name is repeated if this object has had it itself.
            let before = map.remove(&name);
            if before.is_some() && seen.contains(&name) {
                self.repeated.push(path.clone());
            }
            let value = fields
                .next_value_seed(Reader {
                    path,
                    repeated: &mut *self.repeated,
                    before,
                })
                .map_err(A::Error::custom)?;
            map.insert(name.clone(), value);
            seen.push(name);
        }
        Ok(Value::Object(map))
    }
}

/// Finds the first fault, in the words of the Go language.
struct Scanner<'a> {
    rest: &'a [u8],
}

const END: &str = "unexpected end of JSON input";

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), String> {
        self.value()?;
        match self.peek() {
            None => Ok(()),
            Some(byte) => Err(unexpected(byte, "after top-level value")),
        }
    }

    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        let spaces = self
            .rest
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
            .count();
        self.skip(spaces);
        self.rest.first().copied()
    }

    fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    fn next(&mut self) -> Result<u8, String> {
        let byte = self.rest.first().copied().ok_or(END)?;
        self.skip(1);
        Ok(byte)
    }

    fn value(&mut self) -> Result<(), String> {
        match self.peek().ok_or(END)? {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' | b'0'..=b'9' => self.number(),
            other => Err(unexpected(other, "looking for beginning of value")),
        }
    }

    fn object(&mut self) -> Result<(), String> {
        const KEY: &str = "looking for beginning of object key string";
        self.skip(1);
        if self.peek() == Some(b'}') {
            self.skip(1);
            return Ok(());
        }
        loop {
            match self.peek().ok_or(END)? {
                b'"' => self.string()?,
                other => return Err(unexpected(other, KEY)),
            }
            match self.peek().ok_or(END)? {
                b':' => self.skip(1),
                other => return Err(unexpected(other, "after object key")),
            }
            self.value()?;
            match self.peek().ok_or(END)? {
                b',' => self.skip(1),
                b'}' => {
                    self.skip(1);
                    return Ok(());
                }
                other => return Err(unexpected(other, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self) -> Result<(), String> {
        self.skip(1);
        if self.peek() == Some(b']') {
            self.skip(1);
            return Ok(());
        }
        loop {
            self.value()?;
            match self.peek().ok_or(END)? {
                b',' => self.skip(1),
                b']' => {
                    self.skip(1);
                    return Ok(());
                }
                other => return Err(unexpected(other, "after array element")),
            }
        }
    }

    fn string(&mut self) -> Result<(), String> {
        self.skip(1);
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'u' => {
                        for _ in 0..4 {
                            let digit = self.next()?;
                            if !digit.is_ascii_hexdigit() {
                                return Err(unexpected(
                                    digit,
                                    "in \\u hexadecimal character escape",
                                ));
                            }
                        }
                    }
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    other => return Err(unexpected(other, "in string escape code")),
                },
                control if control < 0x20 => return Err(unexpected(control, "in string literal")),
                _ => {}
            }
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes() {
            let byte = self.next()?;
            if byte != expected {
                let place = format!("in literal {word} (expecting {})", quoted(expected));
                return Err(unexpected(byte, &place));
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.rest.first() == Some(&b'-') {
            self.skip(1);
        }
        match self.next()? {
            b'0'..=b'9' => {}
            other => return Err(unexpected(other, "in numeric literal")),
        }
        let more =
            |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
        let rest = self.rest.iter().take_while(more).count();
        self.skip(rest);
        Ok(())
    }
}

fn unexpected(byte: u8, place: &str) -> String {
    format!("invalid character {} {place}", quoted(byte))
}

fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        0x20..=0x7e => format!("'{}'", char::from(byte)),
        0x00..=0x1f | 0x7f => format!("'\\x{byte:02x}'"),
        other => format!("'{}'", char::from(other)),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(body: &str, expect: Expect) {
        let shown = match parse(body.as_bytes()) {
            Ok((value, repeated)) => format!("{value} {repeated:?}"),
            Err(why) => why,
        };
        expect.assert_eq(&shown);
    }

    #[test]
    fn what_is_wrong_is_told_as_by_a_kubernetes_server() {
        check("", expect!["unexpected end of JSON input"]);
        check(
            "{x",
            expect!["invalid character 'x' looking for beginning of object key string"],
        );
        check(
            r#"{"a" 1}"#,
            expect!["invalid character '1' after object key"],
        );
        check(
            r#"{"a":1 2}"#,
            expect!["invalid character '2' after object key:value pair"],
        );
        check(
            "[1 2]",
            expect!["invalid character '2' after array element"],
        );
        check(
            "nope",
            expect!["invalid character 'o' in literal null (expecting 'u')"],
        );
        check(
            "1 2",
            expect!["invalid character '2' after top-level value"],
        );
        check(
            "\"a\nb\"",
            expect![r"invalid character '\n' in string literal"],
        );
        check("-x", expect!["invalid character 'x' in numeric literal"]);
    }

    #[test]
    fn what_is_there_twice_is_found() {
        check(
            r#"{"a":{"b":1,"b":2},"c":[{"d":1,"d":1}]}"#,
            expect![[r#"{"a":{"b":2},"c":[{"d":1}]} ["a.b", "c[0].d"]"#]],
        );
        check(
            r#"{"a":{"b":1},"a":{"c":2}}"#,
            expect![[r#"{"a":{"b":1,"c":2}} ["a"]"#]],
        );
        check(
            r#"{"n":9007199254740993,"f":1.5}"#,
            expect![[r#"{"f":1.5,"n":9007199254740993} []"#]],
        );
    }
}
