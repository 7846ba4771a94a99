//! The subset of JSONPath that printer columns and rules' field paths use.

use serde_json::Value;

/// A parsed path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Name(String),
    /// Negative counts from the end.
    Index(i64),
    All,
    Filter {
        path: Vec<String>,
        operator: Operator,
        value: Value,
    },
    Exists {
        path: Vec<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl JsonPath {
    /// Reads a path; it may stand in braces.
    pub(crate) fn parse(text: &str) -> Result<JsonPath, String> {
        let inner = text.trim();
        let inner = inner
            .strip_prefix('{')
            .and_then(|t| t.strip_suffix('}'))
            .unwrap_or(inner);
        let mut rest = inner.strip_prefix('$').unwrap_or(inner);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let (content, tail) =
                    bracket(after).ok_or_else(|| format!("unterminated [ in {text:?}"))?;
                steps.push(
                    bracket_step(content)
                        .ok_or_else(|| format!("cannot use [{content}] in {text:?}"))?,
                );
                rest = tail;
                continue;
            }
            let after = rest.strip_prefix('.').unwrap_or(rest);
            let (name, tail) = plain_name(after);
            match name.as_str() {
                "" if tail.starts_with('[') => {}
                "" => return Err(format!("a name is missing in {text:?}")),
                "*" => steps.push(Step::All),
                _ => steps.push(Step::Name(name)),
            }
            rest = tail;
        }
        Ok(JsonPath { steps })
    }

    /// The first value that it finds.
    pub(crate) fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.all(value).into_iter().next()
    }

    /// All values that it finds.
    pub(crate) fn all<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.steps {
            found = found.into_iter().flat_map(|v| step.apply(v)).collect();
        }
        found
    }
}

/// The names of a path that has nothing else.
pub(crate) fn names(path: &str) -> Result<Vec<String>, String> {
    JsonPath::parse(path)?
        .steps
        .into_iter()
        .map(|step| match step {
            Step::Name(name) => Ok(name),
            _ => Err(format!("only names can be used in {path:?}")),
        })
        .collect()
}

impl Step {
    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let children = || -> Vec<&'a Value> {
            match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(map) => map.values().collect(),
                _ => Vec::new(),
            }
        };
        match self {
            Step::Name(name) => value.get(name).into_iter().collect(),
            Step::Index(at) => {
                let Some(items) = value.as_array() else {
                    return Vec::new();
                };
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let at = if *at < 0 { length + at } else { *at };
                usize::try_from(at)
                    .ok()
                    .and_then(|at| items.get(at))
                    .into_iter()
                    .collect()
            }
            Step::All => children(),
            Step::Exists { path } => children()
                .into_iter()
                .filter(|v| reach(v, path).is_some())
                .collect(),
            Step::Filter {
                path,
                operator,
                value,
            } => children()
                .into_iter()
                .filter(|v| reach(v, path).is_some_and(|have| operator.holds(have, value)))
                .collect(),
        }
    }
}

impl Operator {
    fn holds(self, have: &Value, want: &Value) -> bool {
        let order = match (have, want) {
            (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()),
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (a, b) if a == b => Some(std::cmp::Ordering::Equal),
            _ => None,
        };
        match (self, order) {
            (Operator::NotEqual, order) => order.is_none_or(|o| o.is_ne()),
            (_, None) => false,
            (Operator::Equal, Some(o)) => o.is_eq(),
            (Operator::Less, Some(o)) => o.is_lt(),
            (Operator::LessOrEqual, Some(o)) => o.is_le(),
            (Operator::Greater, Some(o)) => o.is_gt(),
            (Operator::GreaterOrEqual, Some(o)) => o.is_ge(),
        }
    }
}

fn reach<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |at, name| at.get(name))
}

/// A name up to the next `.` or `[`; a backslash takes the next character as it is.
fn plain_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '.' | '[' => return (name, text.get(at..).unwrap_or_default()),
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            c => name.push(c),
        }
    }
    (name, "")
}

/// What stands before the bracket that closes, and what follows it.
fn bracket(text: &str) -> Option<(&str, &str)> {
    let (mut quote, mut depth) = (None, 0_u32);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth > 0 => depth -= 1,
            (None, ']') => return Some((text.get(..at)?, text.get(at + 1..)?)),
            (None, _) => {}
        }
    }
    None
}

fn bracket_step(content: &str) -> Option<Step> {
    let content = content.trim();
    if content == "*" {
        return Some(Step::All);
    }
    if let Some(name) = unquoted(content) {
        return Some(Step::Name(name));
    }
    if let Some(filter) = content.strip_prefix("?(").and_then(|c| c.strip_suffix(')')) {
        return filter_step(filter.trim());
    }
    content.parse().ok().map(Step::Index)
}

fn filter_step(text: &str) -> Option<Step> {
    let path_of = |left: &str| names(left.trim().strip_prefix('@')?).ok();
    // The operator that stands first; a longer one before a shorter one.
    let found = OPERATORS
        .iter()
        .filter_map(|(sign, operator)| Some((text.find(sign)?, sign, operator)))
        .min_by_key(|(at, sign, _)| (*at, 2 - sign.len()));
    let Some((at, sign, operator)) = found else {
        return Some(Step::Exists {
            path: path_of(text)?,
        });
    };
    let right = text.get(at + sign.len()..)?.trim();
    let value = unquoted(right)
        .map(Value::String)
        .or_else(|| serde_json::from_str(right).ok())?;
    Some(Step::Filter {
        path: path_of(text.get(..at)?)?,
        operator: *operator,
        value,
    })
}

fn unquoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    Some(inner.replace(['\\'], ""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds() {
        let object = json!({
            "spec": {"a.b": 1, "list": [{"n": 1}, {"n": 2}]},
            "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}]}
        });
        let table = [
            (".spec.list[1].n", json!([2])),
            (".spec.list[-1].n", json!([2])),
            (".spec.list[*].n", json!([1, 2])),
            (".spec['a.b']", json!([1])),
            (".spec.a\\.b", json!([1])),
            ("{.spec.list[?(@.n>1)].n}", json!([2])),
            (
                ".status.conditions[?(@.type==\"Ready\")].status",
                json!(["True"]),
            ),
            (
                ".status.conditions[?(@.type=='Ready')].status",
                json!(["True"]),
            ),
            (".status.conditions[?(@.type!='Ready')].type", json!(["A"])),
            (".status.conditions[?(@.missing)]", json!([])),
            (".missing.x[0]", json!([])),
        ];
        for (path, want) in table {
            assert_eq!(
                json!(JsonPath::parse(path).unwrap().all(&object)),
                want,
                "{path}"
            );
        }
    }

    #[test]
    fn malformed() {
        for path in [".a[", ".a[x]", ".a..b", ".a[?(b==1)]", "."] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }
}
