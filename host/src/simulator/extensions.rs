//! Extensions that answer as a scenario says.

use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::glob;
use configurator_core::request::{Operation, SinkName};
use configurator_core::result::Answer;

use super::answers::Answers;
use super::scenario::ExtensionAnswer;
use crate::sinks::{Scope, Sink, misrouted};

/// The extensions of a scenario.
#[derive(Clone)]
pub(super) struct ScriptedExtensions {
    answers: Answers<ExtensionAnswer>,
}

impl ScriptedExtensions {
    pub(super) fn new(answers: &[ExtensionAnswer]) -> Self {
        Self {
            answers: Answers::new(answers),
        }
    }
}

#[async_trait]
impl Sink for ScriptedExtensions {
    async fn execute(&self, operation: &AuthorizedOperation, _: &Scope) -> Result<Answer, Fault> {
        let generic = |message: String| Fault::new(FaultKind::ResourceGeneric, message);
        let Operation::Extension(request) = operation.operation() else {
            return Err(misrouted(operation, SinkName::Extension));
        };
        let fits = |answer: &ExtensionAnswer| {
            answer.extension == request.extension
                && glob::matches(&answer.verb, &request.verb)
                && glob::matches(&answer.target, &request.target)
        };
        let answer = (self.answers.next(fits))
            .ok_or_else(|| generic(format!("the scenario has no answer for {operation}")))?;
        let objects = answer.objects.iter().map(Document::of);
        Ok(Answer {
            query_objects: objects
                .collect::<Result<_, _>>()
                .map_err(|error| generic(error.to_string()))?,
            changed: true,
            http_response: None,
        })
    }

    async fn probe(&self) -> Result<(), Fault> {
        Ok(())
    }
}
