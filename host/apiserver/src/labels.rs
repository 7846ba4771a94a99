//! Label selectors: what they demand, and their grammar with the messages of Kubernetes.

use serde_json::{Value, json};

use crate::names::{label_key_fault, label_value_fault};
use crate::object::Traits;

/// One part of a label selector.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LabelRequirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    Greater(String, i64),
    Less(String, i64),
}

impl LabelRequirement {
    pub(crate) fn matches(&self, traits: &Traits) -> bool {
        let number = |key: &str| {
            traits
                .label(key)
                .and_then(|value| value.parse::<i64>().ok())
        };
        match self {
            Self::In(key, values) => traits
                .label(key)
                .is_some_and(|value| values.iter().any(|one| one == value)),
            Self::NotIn(key, values) => traits
                .label(key)
                .is_none_or(|value| values.iter().all(|one| one != value)),
            Self::Exists(key) => traits.label(key).is_some(),
            Self::Absent(key) => traits.label(key).is_none(),
            Self::Greater(key, bound) => number(key).is_some_and(|value| value > *bound),
            Self::Less(key, bound) => number(key).is_some_and(|value| value < *bound),
        }
    }
}

/// Converts a label selector from text, as in `tier=gold,stage in (test,live),!old`, to a `LabelSelector` object of meta/v1. An empty text
/// selects everything.
///
/// # Errors
/// When the text is invalid, with the message of a Kubernetes server. When it contains `<` or `>`, which a `LabelSelector` does not support.
pub fn label_selector(text: &str) -> Result<Value, String> {
    let expression = |requirement| {
        Ok(match requirement {
            LabelRequirement::In(key, values) => {
                json!({"key": key, "operator": "In", "values": values})
            }
            LabelRequirement::NotIn(key, values) => {
                json!({"key": key, "operator": "NotIn", "values": values})
            }
            LabelRequirement::Exists(key) => json!({"key": key, "operator": "Exists"}),
            LabelRequirement::Absent(key) => json!({"key": key, "operator": "DoesNotExist"}),
            LabelRequirement::Greater(key, _) | LabelRequirement::Less(key, _) => {
                return Err(format!("{key}: < and > are not supported"));
            }
        })
    };
    let expressions = parse(text)?.into_iter().map(expression);
    let expressions: Vec<Value> = expressions.collect::<Result<_, String>>()?;
    Ok(json!({"matchExpressions": expressions}))
}

/// Reads a selector; the message of an error is that of a Kubernetes server.
pub(crate) fn parse(text: &str) -> Result<Vec<LabelRequirement>, String> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
    };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::Word(_) | Token::Symbol("!") => {
                let requirement = parser
                    .requirement()
                    .map_err(|why| format!("unable to parse requirement: {why}"))?;
                requirements.push(requirement);
                match parser.take() {
                    Token::End => return Ok(requirements),
                    Token::Symbol(",") => match parser.peek() {
                        Token::Word(_) | Token::Symbol("!") => {}
                        other => {
                            return Err(format!(
                                "found '{}', expected: identifier after ','",
                                other.text()
                            ));
                        }
                    },
                    other => {
                        return Err(format!(
                            "found '{}', expected: ',' or 'end of string'",
                            other.text()
                        ));
                    }
                }
            }
            Token::End => return Ok(requirements),
            other => {
                return Err(format!(
                    "found '{}', expected: !, identifier, or 'end of string'",
                    other.text()
                ));
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'static str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

/// The longest first, so that `==` is not two of `=`.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", "<", ">"];

fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let is_symbol = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '<' | '>');
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
        let length = match symbol {
            Some(symbol) => {
                tokens.push(Token::Symbol(symbol));
                symbol.len()
            }
            None => {
                let end = rest
                    .find(|c| is_space(c) || is_symbol(c))
                    .unwrap_or(rest.len());
                tokens.push(Token::Word(rest.get(..end).unwrap_or_default()));
                end
            }
        };
        rest = rest
            .get(length..)
            .unwrap_or_default()
            .trim_start_matches(is_space);
    }
    Ok(tokens)
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.next).copied().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let mut token = self.take();
        let absent = token == Token::Symbol("!");
        if absent {
            token = self.take();
        }
        let Token::Word(key) = token else {
            return Err(format!("found '{}', expected: identifier", token.text()));
        };
        if let Some(why) = label_key_fault(key) {
            return Err(format!("<nil>: Invalid value: {key:?}: {why}"));
        }
        let key = key.to_owned();
        if absent {
            return Ok(LabelRequirement::Absent(key));
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(LabelRequirement::Exists(key));
        }
        let values = |key: &str, values: Vec<String>| -> Result<Vec<String>, String> {
            for (at, value) in values.iter().enumerate() {
                if let Some(why) = label_value_fault(value) {
                    return Err(format!(
                        "values[{at}][{key}]: Invalid value: {value:?}: {why}"
                    ));
                }
            }
            Ok(values)
        };
        let number = |value: String| {
            value.parse::<i64>().map_err(|_| {
                format!("values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer")
            })
        };
        let operator = self.take();
        Ok(match operator {
            Token::Word("in") => LabelRequirement::In(key.clone(), values(&key, self.list()?)?),
            Token::Word("notin") => {
                LabelRequirement::NotIn(key.clone(), values(&key, self.list()?)?)
            }
            Token::Symbol("=" | "==") => {
                LabelRequirement::In(key.clone(), values(&key, vec![self.value()?])?)
            }
            Token::Symbol("!=") => {
                LabelRequirement::NotIn(key.clone(), values(&key, vec![self.value()?])?)
            }
            Token::Symbol(">") => LabelRequirement::Greater(key, number(self.value()?)?),
            Token::Symbol("<") => LabelRequirement::Less(key, number(self.value()?)?),
            other => {
                return Err(format!(
                    "found '{}', expected: in, notin, =, ==, !=, gt, lt",
                    other.text()
                ));
            }
        })
    }

    /// One value; nothing is the empty one.
    fn value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(String::new());
        }
        match self.take() {
            Token::Word(value) => Ok(value.to_owned()),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// Values in parentheses; nothing between two commas is the empty one.
    fn list(&mut self) -> Result<Vec<String>, String> {
        match self.take() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        loop {
            match self.take() {
                Token::Word(value) => {
                    values.push(value.to_owned());
                    match self.take() {
                        Token::Symbol(",") if self.peek() == Token::Symbol(")") => {
                            values.push(String::new());
                        }
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => break,
                        other => {
                            return Err(format!("found '{}', expected: ',' or ')'", other.text()));
                        }
                    }
                }
                Token::Symbol(",") => values.push(String::new()),
                Token::Symbol(")") => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    break;
                }
                other => {
                    return Err(format!(
                        "found '{}', expected: ',', ')' or identifier",
                        other.text()
                    ));
                }
            }
        }
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }
}
