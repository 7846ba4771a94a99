//! Validation rules in CEL: `x-kubernetes-validations`.
//!
//! A rule cannot hang its host. Its size and nesting are limited when it is compiled. Before it is evaluated, its cost is
//! bounded from above: steps are nodes of the expression times the largest list, map or (for functions that multiply strings)
//! string, to the power of how deep its loops nest. What would exceed the budget of one object fails instead of running.

use std::sync::{Arc, OnceLock};

use cel::{Context, Env, Program, Value as CelValue, objects::OptionalValue};
use serde_json::Value;

use crate::{
    FieldError, Reason,
    field_error::joined,
    schema::{Kind, Node},
};

mod check;
mod condition;
mod library;
mod value;

pub use self::condition::{Condition, ConditionError};

/// The longest rule, in bytes.
const RULE_LENGTH_MAX: usize = 4096;

/// Steps that the rules of one object may take together.
const STEPS_MAX: u64 = 20_000_000;

/// One rule, compiled.
#[derive(Debug)]
pub(crate) struct Rule {
    source: String,
    program: Program,
    message: Option<String>,
    message_expression: Option<Program>,
    reason: Reason,
    field_path: Option<String>,
    /// Compares with the old value: evaluated only if there is one.
    transition: bool,
    /// The old value is an optional, and the rule is evaluated also without.
    optional_old: bool,
    cost: check::Cost,
}

/// The steps that are left for the rules of one object.
#[derive(Debug)]
pub(crate) struct Budget(u64);

impl Default for Budget {
    fn default() -> Budget {
        Budget(STEPS_MAX)
    }
}

impl Rule {
    /// Compiles one entry of `x-kubernetes-validations` of `node`; `root` if that is the whole object.
    ///
    /// Errors have paths below the entry.
    pub(crate) fn compile(entry: &Value, node: &Node, root: bool) -> Result<Rule, Vec<FieldError>> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let given = |name: &str| {
            entry
                .get(name)
                .and_then(Value::as_str)
                .is_some_and(|t| !t.is_empty())
        };
        let (source, message, field_path) =
            (text("rule"), text("message").trim(), text("fieldPath"));
        let mut errors = Vec::new();
        if source.trim().is_empty() {
            errors.push(FieldError::required("rule", "rule is not specified"));
        } else if given("message") && message.is_empty() {
            errors.push(FieldError::invalid(
                "message",
                &text("message").into(),
                "must be non-empty if specified",
            ));
        } else if message.contains('\n') {
            errors.push(FieldError::invalid(
                "message",
                &message.into(),
                "must not contain line breaks",
            ));
        } else if source.trim().contains('\n') && message.is_empty() && !given("messageExpression")
        {
            errors.push(FieldError::required(
                "message",
                "message must be specified if rule contains line breaks",
            ));
        }
        let reason = match text("reason") {
            "" | "FieldValueInvalid" => Reason::Invalid,
            "FieldValueForbidden" => Reason::Forbidden,
            "FieldValueRequired" => Reason::Required,
            "FieldValueDuplicate" => Reason::Duplicate,
            other => {
                let known = [
                    "FieldValueDuplicate",
                    "FieldValueForbidden",
                    "FieldValueInvalid",
                    "FieldValueRequired",
                ];
                errors.push(FieldError::not_supported("reason", &other.into(), known));
                Reason::Invalid
            }
        };
        if !field_path.is_empty() && !check::path_exists(node, field_path) {
            errors.push(FieldError::invalid(
                "fieldPath",
                &field_path.into(),
                "must be a valid path",
            ));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let (program, cost) = compile("rule", source, node, root)?;
        let transition = program.references().has_variable("oldSelf");
        let optional_old = entry
            .get("optionalOldSelf")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        if entry.get("optionalOldSelf").is_some() && !transition {
            let detail = "may not be set if oldSelf is not used in rule";
            return Err(vec![FieldError::invalid(
                "optionalOldSelf",
                &optional_old.into(),
                detail,
            )]);
        }
        let message_expression = if given("messageExpression") {
            Some(compile("messageExpression", text("messageExpression"), node, root)?.0)
        } else {
            None
        };
        Ok(Rule {
            source: source.trim().to_owned(),
            program,
            message: (!message.is_empty()).then(|| message.to_owned()),
            message_expression,
            reason,
            field_path: (!field_path.is_empty())
                .then(|| field_path.trim_start_matches('.').to_owned()),
            transition,
            optional_old,
            cost,
        })
    }

    /// Whether it compares with the old value.
    pub(crate) fn is_transition(&self) -> bool {
        self.transition
    }

    fn evaluate(
        &self,
        kind: Kind,
        this: &CelValue,
        old: Option<&CelValue>,
        path: &str,
    ) -> Option<FieldError> {
        let shown = Value::from(kind.name());
        let mut context = Context::with_env(environment());
        context.add_variable_from_value("self", this.clone());
        if self.transition {
            match old {
                Some(old) if self.optional_old => {
                    let old = CelValue::Opaque(Arc::new(OptionalValue::of(old.clone())));
                    context.add_variable_from_value("oldSelf", old);
                }
                Some(old) => context.add_variable_from_value("oldSelf", old.clone()),
                None if self.optional_old => {
                    let none = CelValue::Opaque(Arc::new(OptionalValue::none()));
                    context.add_variable_from_value("oldSelf", none);
                }
                None => return None,
            }
        }
        match self.program.execute(&context) {
            Ok(CelValue::Bool(true)) => None,
            Ok(CelValue::Bool(false)) => {
                let message = self.words(&context);
                let at = match &self.field_path {
                    Some(field) => joined(path, field),
                    None => path.to_owned(),
                };
                Some(match self.reason {
                    Reason::Forbidden => FieldError::forbidden(at, &message),
                    Reason::Required => FieldError::required(at, &message),
                    Reason::Duplicate => FieldError::duplicate(at, &shown),
                    // The value is not shown: it may be large, and the message says what is wrong.
                    _ => FieldError::new(at, Reason::Invalid, format!("Invalid value: {message}")),
                })
            }
            Ok(other) => {
                let detail = format!(
                    "rule evaluates to {}, must be bool, evaluating rule: {}",
                    other.type_of(),
                    self.source
                );
                Some(FieldError::invalid(path, &shown, detail))
            }
            Err(error) => Some(FieldError::invalid(
                path,
                &shown,
                format!("{error} evaluating rule: {}", self.source),
            )),
        }
    }

    /// The message of a failed rule.
    fn words(&self, context: &Context<'_, '_>) -> String {
        if let Some(expression) = &self.message_expression
            && let Ok(CelValue::String(text)) = expression.execute(context)
            && !text.trim().is_empty()
            && !text.contains('\n')
        {
            return text.trim().to_owned();
        }
        self.message
            .clone()
            .unwrap_or_else(|| format!("failed rule: {}", self.source))
    }
}

impl Node {
    /// Evaluates the rules of `value` and of all below. `old` is the value before an update, where the two can be matched.
    pub(crate) fn evaluate(
        &self,
        value: &Value,
        old: Option<&Value>,
        path: &str,
        budget: &mut Budget,
        errors: &mut Vec<FieldError>,
    ) {
        if !self.has_rules || value.is_null() || old == Some(value) {
            return;
        }
        if !self.rules.is_empty() {
            let root = path.is_empty();
            let (this, size) = value::convert(self, value, root);
            let before = old.map(|o| value::convert(self, o, root).0);
            for rule in &self.rules {
                let steps = rule.cost.steps(size);
                if steps > budget.0 {
                    let detail = "validation failed due to running out of cost budget, no further validation rules will be run";
                    errors.push(FieldError::invalid(
                        path,
                        &Value::from(self.kind.name()),
                        detail,
                    ));
                    return;
                }
                budget.0 -= steps;
                errors.extend(rule.evaluate(self.kind, &this, before.as_ref(), path));
            }
        }
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    if let Some(node) = self.field(name).filter(|n| n.has_rules) {
                        node.evaluate(
                            value,
                            old.and_then(|o| o.get(name)),
                            &joined(path, name),
                            budget,
                            errors,
                        );
                    }
                }
            }
            Value::Array(items) => {
                let Some(node) = self.items.as_deref().filter(|n| n.has_rules) else {
                    return;
                };
                for (at, item) in items.iter().enumerate() {
                    node.evaluate(
                        item,
                        self.counterpart(item, old),
                        &format!("{path}[{at}]"),
                        budget,
                        errors,
                    );
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn compile(
    field: &str,
    source: &str,
    node: &Node,
    root: bool,
) -> Result<(Program, check::Cost), Vec<FieldError>> {
    let wrong = |detail: String| {
        vec![FieldError::invalid(
            field,
            &source.into(),
            format!("compilation failed: {detail}"),
        )]
    };
    if source.len() > RULE_LENGTH_MAX {
        return Err(vec![FieldError::too_long(field, RULE_LENGTH_MAX as u64)]);
    }
    let program = environment()
        .compile(source)
        .map_err(|e| wrong(e.to_string()))?;
    let cost = check::check(&program, node, root).map_err(wrong)?;
    Ok((program, cost))
}

/// The functions that rules may call: CEL's own, and the libraries of Kubernetes.
fn environment() -> Arc<Env> {
    static ENVIRONMENT: OnceLock<Arc<Env>> = OnceLock::new();
    ENVIRONMENT
        .get_or_init(|| Arc::new(library::environment()))
        .clone()
}
