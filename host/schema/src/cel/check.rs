//! What can be said of a rule before it runs: whether its names exist, and what it may cost.

use cel::{
    Program,
    common::ast::{EntryExpr, Expr, IdedExpr},
};

use super::value::{Size, escape};
use crate::schema::{Kind, Node};

/// Deeper expressions are refused: evaluation recurses.
const DEPTH_MAX: usize = 120;

/// What bounds the steps of an evaluation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    nodes: u64,
    /// How deep loops nest.
    loops: u32,
    /// Calls that can make strings longer than the sum of their inputs.
    multipliers: u32,
    /// Concatenations and literals: what makes lists longer.
    growth: u64,
}

impl Cost {
    /// An upper bound of the steps on a value of this size.
    pub(super) fn steps(&self, size: Size) -> u64 {
        let entries = size.entries.max(2).saturating_mul(self.growth + 1);
        let text = size.text.max(16).saturating_mul(self.growth + 1);
        let looped = self
            .nodes
            .saturating_mul(entries.saturating_pow(self.loops));
        let multiplied = if self.multipliers == 0 {
            0
        } else {
            text.saturating_pow(self.multipliers + 1) / 1000
        };
        looped.saturating_add(multiplied)
    }
}

/// Functions that rules may call, beside the operators.
const FUNCTIONS: &[&str] = &[
    "add",
    "all",
    "asApproximateFloat",
    "asInteger",
    "bool",
    "bytes",
    "charAt",
    "compareTo",
    "contains",
    "containsCIDR",
    "containsIP",
    "cidr",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "exists",
    "exists_one",
    "family",
    "find",
    "findAll",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getEscapedPath",
    "getFullYear",
    "getHost",
    "getHostname",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getPort",
    "getQuery",
    "getScheme",
    "getSeconds",
    "has",
    "hasValue",
    "indexOf",
    "int",
    "ip",
    "isCIDR",
    "isGreaterThan",
    "isIP",
    "isInteger",
    "isLessThan",
    "isLoopback",
    "isQuantity",
    "isSorted",
    "isURL",
    "isUnspecified",
    "join",
    "lastIndexOf",
    "lowerAscii",
    "matches",
    "max",
    "min",
    "optFlatMap",
    "optMap",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "or",
    "orValue",
    "prefixLength",
    "quantity",
    "replace",
    "reverse",
    "sign",
    "size",
    "split",
    "startsWith",
    "string",
    "strings.quote",
    "sub",
    "substring",
    "sum",
    "timestamp",
    "trim",
    "type",
    "uint",
    "upperAscii",
    "url",
    "value",
    "of",
    "none",
    "ofNonZeroValue",
    "quote",
];

/// Checks the names of a rule against the schema, and finds what it may cost.
pub(super) fn check(program: &Program, node: &Node, root: bool) -> Result<Cost, String> {
    let mut check = Check {
        root: root.then_some(std::ptr::from_ref(node)),
        scopes: Vec::new(),
        cost: Cost::default(),
    };
    check.scopes.push(("self", Some(node)));
    check.scopes.push(("oldSelf", Some(node)));
    check.visit(program.expression(), 0, 0)?;
    Ok(check.cost)
}

/// Finds what an expression may cost that knows one variable, of which nothing is known.
pub(super) fn check_over(program: &Program, variable: &str) -> Result<Cost, String> {
    let mut check = Check {
        root: None,
        scopes: vec![(variable, None)],
        cost: Cost::default(),
    };
    check.visit(program.expression(), 0, 0)?;
    Ok(check.cost)
}

/// Whether a `fieldPath` such as `.spec.x['y']` names a declared field.
pub(super) fn path_exists(node: &Node, path: &str) -> bool {
    let Ok(steps) = crate::table::jsonpath::names(path) else {
        return false;
    };
    let mut at = node;
    for step in &steps {
        match at.field(step) {
            Some(next) => at = next,
            None => return false,
        }
    }
    !steps.is_empty()
}

struct Check<'a> {
    root: Option<*const Node>,
    /// Variables, innermost last, with what they hold where that is known.
    scopes: Vec<(&'a str, Option<&'a Node>)>,
    cost: Cost,
}

impl<'a> Check<'a> {
    /// Returns what the expression yields, where that is known.
    fn visit(
        &mut self,
        expr: &'a IdedExpr,
        depth: usize,
        loops: u32,
    ) -> Result<Option<&'a Node>, String> {
        if depth > DEPTH_MAX {
            return Err(format!(
                "the expression nests deeper than {DEPTH_MAX} levels"
            ));
        }
        self.cost.nodes += 1;
        self.cost.loops = self.cost.loops.max(loops);
        match &expr.expr {
            Expr::Unspecified | Expr::Literal(_) => Ok(None),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => match self.visit(&select.operand, depth + 1, loops)? {
                Some(node) => self.select(node, &select.field),
                None => Ok(None),
            },
            Expr::Call(call) => {
                self.function(&call.func_name)?;
                let target = match &call.target {
                    // `optional.of(x)` is a name, not a field of a variable.
                    Some(target) if matches!(&target.expr, Expr::Ident(n) if n == "optional" || n == "strings") => {
                        None
                    }
                    Some(target) => self.visit(target, depth + 1, loops)?,
                    None => None,
                };
                let mut first = None;
                for (at, arg) in call.args.iter().enumerate() {
                    let found = self.visit(arg, depth + 1, loops)?;
                    if at == 0 {
                        first = found;
                    }
                }
                Ok(match call.func_name.as_str() {
                    "_[_]" => first.and_then(element),
                    "_+_" => {
                        self.cost.growth += 1;
                        None
                    }
                    "replace" | "join" | "format" => {
                        self.cost.multipliers += 1;
                        None
                    }
                    // A filter keeps what its range holds.
                    "filter" => target,
                    _ => None,
                })
            }
            Expr::List(list) => {
                self.cost.growth += list.elements.len() as u64 / 8;
                for element in &list.elements {
                    self.visit(element, depth + 1, loops)?;
                }
                Ok(None)
            }
            Expr::Map(map) => {
                self.entries(map.entries.iter().map(|e| &e.expr), depth, loops)?;
                Ok(None)
            }
            Expr::Struct(object) => {
                self.entries(object.entries.iter().map(|e| &e.expr), depth, loops)?;
                Ok(None)
            }
            Expr::Comprehension(inner) => {
                let range = self.visit(&inner.iter_range, depth + 1, loops)?;
                self.visit(&inner.accu_init, depth + 1, loops)?;
                let before = self.scopes.len();
                // A loop over a map runs over its keys.
                let item = range.filter(|n| n.kind == Kind::Array).map(Node::item);
                self.scopes.push((&inner.iter_var, item));
                if let Some(second) = &inner.iter_var2 {
                    self.scopes.push((second, None));
                }
                self.scopes.push((&inner.accu_var, None));
                self.visit(&inner.loop_cond, depth + 1, loops + 1)?;
                self.visit(&inner.loop_step, depth + 1, loops + 1)?;
                self.visit(&inner.result, depth + 1, loops)?;
                self.scopes.truncate(before);
                Ok(None)
            }
        }
    }

    fn entries(
        &mut self,
        entries: impl Iterator<Item = &'a EntryExpr>,
        depth: usize,
        loops: u32,
    ) -> Result<(), String> {
        for entry in entries {
            match entry {
                EntryExpr::StructField(field) => {
                    self.visit(&field.value, depth + 1, loops)?;
                }
                EntryExpr::MapEntry(entry) => {
                    self.visit(&entry.key, depth + 1, loops)?;
                    self.visit(&entry.value, depth + 1, loops)?;
                }
            }
        }
        Ok(())
    }

    fn variable(&self, name: &str) -> Result<Option<&'a Node>, String> {
        const TYPES: [&str; 12] = [
            "int",
            "uint",
            "double",
            "bool",
            "string",
            "bytes",
            "list",
            "map",
            "null_type",
            "type",
            "optional",
            "dyn",
        ];
        if let Some((_, node)) = self.scopes.iter().rev().find(|(n, _)| *n == name) {
            return Ok(*node);
        }
        if TYPES.contains(&name) || name.starts_with(['@', '#', '_']) {
            return Ok(None);
        }
        Err(format!(
            "undeclared reference to '{name}' (in container '')"
        ))
    }

    fn function(&self, name: &str) -> Result<(), String> {
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) && !FUNCTIONS.contains(&name) {
            return Err(format!(
                "undeclared reference to '{name}' (in container '')"
            ));
        }
        Ok(())
    }

    fn select(&self, node: &'a Node, field: &str) -> Result<Option<&'a Node>, String> {
        if node.kind != Kind::Object {
            return match node.kind {
                Kind::Any | Kind::Array | Kind::IntOrString => Ok(None),
                kind => Err(format!(
                    "type '{}' does not support field selection",
                    kind.name()
                )),
            };
        }
        if let Some((name, inner)) = node
            .properties
            .iter()
            .find(|(name, _)| escape(name) == field)
        {
            let hidden = self.root == Some(std::ptr::from_ref(node)) && name.as_ref() == "metadata";
            return Ok((!hidden).then_some(inner.as_ref()));
        }
        if let Some(inner) = &node.additional {
            return Ok(Some(inner));
        }
        if node.preserve_unknown || node.embedded {
            return Ok(None);
        }
        Err(format!("undefined field '{field}'"))
    }
}

/// What indexing yields.
fn element(node: &Node) -> Option<&Node> {
    match node.kind {
        Kind::Array => Some(node.item()),
        Kind::Object => node.additional.as_deref(),
        _ => None,
    }
}
