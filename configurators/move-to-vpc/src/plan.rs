//! What is to be moved where. The step that clones the interfaces makes it, and those after it follow it.

use configurator_sdk::{HandlerError, Input};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The step that leaves the plan.
const MADE_BY: &str = "InFlight/cloneENIs";

/// Everything that is to be moved.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// Instance by instance.
    pub moves: Vec<Move>,
}

/// The move of an instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// The instance.
    pub instance: String,
    /// The subnet that it goes to.
    pub subnet: String,
    /// The private address that it keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// The interfaces beside its first.
    pub interfaces: Vec<Replacement>,
}

/// The interface that takes the place of another.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    /// The old one.
    pub old: String,
    /// The subnet that the new one is in.
    pub subnet: String,
    /// The private address that it keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// The new one, once it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// The public address that leads to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_address: Option<String>,
}

impl Plan {
    /// The plan that is being followed.
    ///
    /// # Errors
    /// Fatal, when none was made.
    pub fn of(input: &Input) -> Result<Plan, HandlerError> {
        input.output_of(MADE_BY)
    }

    /// All interfaces that take the place of others.
    pub fn replacements(&self) -> impl Iterator<Item = &Replacement> {
        self.moves.iter().flat_map(|moved| &moved.interfaces)
    }

    /// The status where each instance is in this state.
    pub fn reached(&self, state: &str) -> Value {
        let states = self.moves.iter();
        let states = states.map(|one| (one.instance.clone(), json!({ "state": state })));
        json!({"instances": states.collect::<Map<String, Value>>()})
    }

    /// All public addresses, with the new interface that each is to lead to.
    pub fn public_addresses(&self) -> impl Iterator<Item = (&str, &str)> {
        self.replacements()
            .filter_map(|one| Some((one.public_address.as_deref()?, one.new.as_deref()?)))
    }
}
