//! Extensions that answer as a scenario says.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::glob;
use configurator_core::request::{ExtensionRequest, Operation};
use configurator_core::result::Answer;

use super::faults::lock;
use super::scenario::ExtensionAnswer;
use crate::sinks::{Scope, Sink};

/// The extensions of a scenario. Each gives the first of its answers that fits and was not given often enough.
#[derive(Clone)]
pub(super) struct ScriptedExtensions {
    answers: Arc<Mutex<Vec<ExtensionAnswer>>>,
}

impl ScriptedExtensions {
    pub(super) fn new(answers: &[ExtensionAnswer]) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.to_vec())),
        }
    }

    fn next(&self, request: &ExtensionRequest) -> Option<ExtensionAnswer> {
        let mut answers = lock(&self.answers);
        let answer = answers.iter_mut().find(|answer| {
            answer.times != Some(0)
                && answer.extension == request.extension
                && glob::matches(&answer.verb, &request.verb)
                && glob::matches(&answer.target, &request.target)
        })?;
        if let Some(times) = &mut answer.times {
            *times -= 1;
        }
        Some(answer.clone())
    }
}

#[async_trait]
impl Sink for ScriptedExtensions {
    async fn execute(&self, operation: &AuthorizedOperation, _: &Scope) -> Result<Answer, Fault> {
        let generic = |message: String| Fault::new(FaultKind::ResourceGeneric, message);
        let Operation::Extension(request) = operation.operation() else {
            return Err(generic("not a request to an extension".to_owned()));
        };
        let answer = self
            .next(request)
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
