//! Objects as rows, the way `kubectl get` shows them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::FieldError;

mod age;
mod builtin;
pub(crate) mod jsonpath;
mod network;
mod workload;

use jsonpath::JsonPath;

/// How objects of one kind are shown as rows.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Rows,
}

#[derive(Debug)]
struct Column {
    name: String,
    /// As in OpenAPI: string, integer, number, boolean; or date.
    kind: String,
    format: String,
    description: String,
    /// Above 0: only in wide output.
    priority: i64,
}

/// Where the cells come from.
#[derive(Debug)]
enum Rows {
    Builtin(builtin::Cells),
    /// After the name, one cell of each path.
    Paths(Vec<JsonPath>),
    /// Name and creation time.
    Plain,
}

impl Table {
    /// The columns of a built-in kind; of any other: name and creation time.
    pub fn builtin(group: &str, _version: &str, kind: &str) -> Table {
        match builtin::of(group, kind) {
            Some((columns, cells)) => Table {
                columns: columns.split('|').map(Column::read).collect(),
                rows: Rows::Builtin(cells),
            },
            None => Table {
                columns: vec![
                    Column::read("Name"),
                    Column {
                        kind: "date".to_owned(),
                        ..Column::read("Created At")
                    },
                ],
                rows: Rows::Plain,
            },
        }
    }

    /// The columns of a custom kind: its `additionalPrinterColumns`, or the age if there are none.
    ///
    /// # Errors
    /// Columns with a missing name, an unknown type or a malformed path, below `additionalPrinterColumns`.
    pub fn from_crd(columns: Option<&Value>) -> Result<Table, Vec<FieldError>> {
        let age =
            [json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})];
        let given = columns
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .filter(|c| !c.is_empty())
            .unwrap_or(&age);
        let mut errors = Vec::new();
        let mut table = Table {
            columns: vec![Column::read("Name")],
            rows: Rows::Plain,
        };
        let mut paths = Vec::new();
        for (at, column) in given.iter().enumerate() {
            let text = |name: &str| {
                column
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let place = |name: &str| format!("additionalPrinterColumns[{at}].{name}");
            if text("name").is_empty() {
                errors.push(FieldError::required(place("name"), ""));
            }
            let kinds = ["boolean", "date", "integer", "number", "string"];
            match text("type").as_str() {
                "" => errors.push(FieldError::required(
                    place("type"),
                    &format!("must be one of {}", kinds.join(",")),
                )),
                kind if !kinds.contains(&kind) => {
                    let detail = format!("must be one of {}", kinds.join(","));
                    errors.push(FieldError::invalid(place("type"), &kind.into(), detail));
                }
                _ => {}
            }
            let path = text("jsonPath");
            if path.is_empty() {
                errors.push(FieldError::required(place("jsonPath"), ""));
            } else if !path.starts_with('.') {
                errors.push(FieldError::invalid(
                    place("jsonPath"),
                    &path.as_str().into(),
                    "must be a simple json path starting with .",
                ));
            } else {
                match JsonPath::parse(&path) {
                    Ok(parsed) => paths.push(parsed),
                    Err(error) => errors.push(FieldError::invalid(
                        place("jsonPath"),
                        &path.as_str().into(),
                        format!("is an invalid JSONPath: {error}"),
                    )),
                }
            }
            let description = match text("description") {
                none if none.is_empty() => {
                    format!("Custom resource definition column (in JSONPath format): {path}")
                }
                some => some,
            };
            table.columns.push(Column {
                name: text("name"),
                kind: text("type"),
                format: text("format"),
                description,
                priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
            });
        }
        if errors.is_empty() {
            table.rows = Rows::Paths(paths);
            Ok(table)
        } else {
            Err(errors)
        }
    }

    /// The `columnDefinitions` of a `Table`.
    pub fn columns(&self) -> Value {
        let one = |c: &Column| json!({"name": c.name, "type": c.kind, "format": c.format, "description": c.description, "priority": c.priority});
        self.columns.iter().map(one).collect()
    }

    /// The `cells` of the row of `object`: one for each column, wide ones included.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = object
            .pointer("/metadata/name")
            .cloned()
            .unwrap_or_default();
        match &self.rows {
            Rows::Builtin(cells) => {
                let mut cells = cells(object, now);
                for (column, cell) in self.columns.iter().zip(&mut cells) {
                    // Numbers go out as such.
                    if column.kind == "integer"
                        && let Some(number) =
                            cell.as_str().and_then(|text| text.parse::<i64>().ok())
                    {
                        *cell = Value::from(number);
                    }
                }
                cells
            }
            Rows::Plain => vec![
                name,
                object
                    .pointer("/metadata/creationTimestamp")
                    .cloned()
                    .unwrap_or_default(),
            ],
            Rows::Paths(paths) => {
                let mut cells = vec![name];
                for (column, path) in self.columns.iter().skip(1).zip(paths) {
                    cells.push(
                        path.first(object)
                            .map_or(Value::Null, |value| column.cell(value, now)),
                    );
                }
                cells
            }
        }
    }
}

impl Column {
    /// From a short form: `*` stands behind wide columns, `#` behind integers, `?` behind booleans.
    fn read(short: &str) -> Column {
        let name = short.trim_end_matches(['*', '#', '?']);
        let kind = match short {
            s if s.contains('#') => "integer",
            s if s.contains('?') => "boolean",
            _ => "string",
        };
        let (format, description) = if name == "Name" {
            ("name", "Name must be unique within a namespace.")
        } else {
            ("", "")
        };
        Column {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: format.to_owned(),
            description: description.to_owned(),
            priority: i64::from(short.contains('*')),
        }
    }

    /// A value of a custom object in the type of the column; null if it does not fit.
    fn cell(&self, value: &Value, now: Timestamp) -> Value {
        match (self.kind.as_str(), value) {
            (_, Value::Null) => Value::Null,
            ("integer", Value::Number(n)) => n
                .as_i64()
                .map(Value::from)
                .or_else(|| truncated(n.as_f64()))
                .unwrap_or_default(),
            ("number", Value::Number(n)) => n.as_f64().map(Value::from).unwrap_or_default(),
            ("boolean", Value::Bool(b)) => json!(b),
            ("string", Value::String(s)) => json!(s),
            ("string", other) => json!(other.to_string()),
            ("date", Value::String(_)) => match age::seconds_since(Some(value), now) {
                Some(seconds) => json!(age::human_duration(seconds)),
                None => json!("<invalid>"),
            },
            _ => Value::Null,
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "that is what is shown")]
fn truncated(number: Option<f64>) -> Option<Value> {
    number.map(|n| Value::from(n as i64))
}
