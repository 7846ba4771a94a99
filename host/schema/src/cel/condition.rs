//! A condition over an object of any shape.

use cel::{Context, Program, Value as CelValue};
use serde_json::Value;

use super::{RULE_LENGTH_MAX, STEPS_MAX, check, environment, value};
use crate::schema::anything;

/// The variable that a condition is over.
const OBJECT: &str = "object";

/// A CEL expression over `object` that is true or false, with the functions that validation rules of Kubernetes have.
#[derive(Debug)]
pub struct Condition {
    program: Program,
    cost: check::Cost,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// The expression is none.
    #[error("the expression cannot be compiled: {0}")]
    Compile(String),
    /// It failed on this object, as by a field that the object does not have.
    #[error("the expression failed: {0}")]
    Evaluate(String),
    /// It gave something else.
    #[error("the expression gives a {0}, and must give a bool")]
    NoBool(String),
    /// It could take too long on an object of this size.
    #[error("the expression could take too long on an object of this size")]
    TooCostly,
}

impl Condition {
    /// Compiles an expression.
    ///
    /// # Errors
    /// When it is none, names anything but `object`, is longer than 4096 bytes or nested too deep.
    pub fn compile(source: &str) -> Result<Self, ConditionError> {
        if source.len() > RULE_LENGTH_MAX {
            let message = format!("it is longer than {RULE_LENGTH_MAX} bytes");
            return Err(ConditionError::Compile(message));
        }
        let program = environment()
            .compile(source)
            .map_err(|error| ConditionError::Compile(error.to_string()))?;
        let cost = check::check_over(&program, OBJECT).map_err(ConditionError::Compile)?;
        Ok(Self { program, cost })
    }

    /// Whether it holds for this object.
    ///
    /// # Errors
    /// When it fails, gives no bool, or could take too long.
    pub fn holds(&self, object: &Value) -> Result<bool, ConditionError> {
        let (object, size) = value::convert(anything(), object, false);
        if self.cost.steps(size) > STEPS_MAX {
            return Err(ConditionError::TooCostly);
        }
        let mut context = Context::with_env(environment());
        context.add_variable_from_value(OBJECT, object);
        match self.program.execute(&context) {
            Ok(CelValue::Bool(holds)) => Ok(holds),
            Ok(other) => Err(ConditionError::NoBool(other.type_of().to_string())),
            Err(error) => Err(ConditionError::Evaluate(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(source: &str, expected: Expect) {
        let object = json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"class": "large", "nodes": [1, 2]},
            "status": {"class": "small", "nothing": null},
        });
        let told = Condition::compile(source).and_then(|condition| condition.holds(&object));
        expected.assert_eq(&told.map_or_else(|error| error.to_string(), |holds| holds.to_string()));
    }

    #[test]
    fn a_condition_holds_or_says_why_there_is_no_answer() {
        check(
            "object.spec.class != object.status.class",
            expect![["true"]],
        );
        check("object.metadata.labels.app == 'web'", expect![["true"]]);
        check("object.spec.nodes.all(n, n < 2)", expect![["false"]]);
        check("has(object.status.version)", expect![["false"]]);
        check(
            "object.status.version == '1'",
            expect!["the expression failed: No such key: version"],
        );
        check(
            "object.spec.class",
            expect!["the expression gives a string, and must give a bool"],
        );
        check(
            "self.spec",
            expect![
                "the expression cannot be compiled: undeclared reference to 'self' (in container '')"
            ],
        );
        check(
            "object.spec ==",
            expect![[r#"
            the expression cannot be compiled: ERROR: <input>:1:15: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
            | object.spec ==
            | ..............^"#]],
        );
        check(
            &"!".repeat(5000),
            expect!["the expression cannot be compiled: it is longer than 4096 bytes"],
        );
    }
}
