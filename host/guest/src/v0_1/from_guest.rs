//! What a handler returned, checked and in the words of the core.

mod desired;
mod requests;

use std::time::Duration;

use configurator_core::document::Document;
use configurator_core::handler as core;
use configurator_core::handler::CallFault;
use configurator_core::request as req;

use super::bindings::configurator::handler::types as wit_types;
use super::bindings::exports::configurator::handler::handler as wit;

/// What an element of a list counts besides its texts, in bytes.
const ELEMENT: u64 = 16;

pub(super) fn handler_output(
    output: Result<wit::HandlerOutput, wit::HandlerError>,
    limits: &core::CallLimits,
) -> Result<core::HandlerOutput, CallFault> {
    let mut reader = Reader {
        size: 0,
        limit: limits.output_size,
        status_limit: limits.status_size,
    };
    match output {
        Ok(output) => reader.handler_output(output),
        Err(error) => Err(CallFault::Handler(reader.handler_error(error)?)),
    }
}

pub(super) fn module_description(
    description: wit::ModuleDescription,
    limit: u64,
) -> Result<core::ModuleDescription, CallFault> {
    let mut reader = Reader {
        size: 0,
        limit,
        status_limit: 0,
    };
    let handlers = reader.list(description.handlers, Reader::handler_description)?;
    Ok(core::ModuleDescription { handlers })
}

/// Counts what it reads; stops at the limit.
struct Reader {
    size: u64,
    limit: u64,
    /// For one status.
    status_limit: u64,
}

type Read<T> = Result<T, CallFault>;

impl Reader {
    fn handler_output(&mut self, output: wit::HandlerOutput) -> Read<core::HandlerOutput> {
        Ok(core::HandlerOutput {
            requests: self.requests(output.requests)?,
            pass_through_args: self.list(output.pass_through_args, |reader, (name, value)| {
                let value = reader.json(value, || format!("pass-through-args {name:?}"))?;
                Ok((reader.text(name)?, value))
            })?,
            outcome: self.outcome(output.outcome)?,
            next: self.optional_text(output.next)?,
            statuses: self.list(output.statuses, |reader, update| {
                let (size, limit) = (update.status.len() as u64, reader.status_limit);
                if size > limit {
                    return Err(CallFault::StatusTooLarge { size, limit });
                }
                Ok(core::StatusUpdate {
                    of: reader.optional(update.of, Self::object_ref)?,
                    status: reader.json(update.status, || "statuses: status".into())?,
                })
            })?,
            data: self.optional_json(output.data, || "data".into())?,
            events: self.list(output.events, Self::event)?,
            progress: self.optional(output.progress, Self::progress)?,
            output: self.optional_json(output.output, || "output".into())?,
            details: self.optional_json(output.details, || "details".into())?,
            desired: self.optional(output.desired, Self::desired_set)?,
            remove_from_plan: self.list(output.remove_from_plan, Self::text)?,
            reads: self.list(output.reads, Self::request)?,
        })
    }

    fn outcome(&mut self, outcome: wit::Outcome) -> Read<core::Outcome> {
        Ok(match outcome {
            wit::Outcome::Done => core::Outcome::Done,
            wit::Outcome::Again(after) => core::Outcome::Again(after.map(Duration::from_millis)),
            wit::Outcome::Wait(wake) => core::Outcome::Wait(core::Wake {
                after: wake.after.map(Duration::from_millis),
                signals: self.list(wake.signals, Self::text)?,
                objects: self.list(wake.objects, Self::object_key)?,
            }),
            wit::Outcome::Failed(error) => core::Outcome::Failed(self.handler_error(error)?),
            wit::Outcome::Stop => core::Outcome::Stop,
        })
    }

    fn handler_error(&mut self, error: wit::HandlerError) -> Read<core::HandlerError> {
        Ok(core::HandlerError {
            message: self.text(error.message)?,
            fatal: error.fatal,
            retry_after: error.retry_after.map(Duration::from_millis),
            code: self.optional_text(error.code)?,
        })
    }

    fn event(&mut self, event: wit::Event) -> Read<core::Event> {
        Ok(core::Event {
            of: self.optional(event.of, Self::object_ref)?,
            event_type: match event.event_type {
                wit::EventType::Normal => core::EventType::Normal,
                wit::EventType::Warning => core::EventType::Warning,
            },
            reason: self.text(event.reason)?,
            message: self.text(event.message)?,
        })
    }

    fn progress(&mut self, progress: wit::Progress) -> Read<core::Progress> {
        if progress.percent > 100 {
            return Err(invalid(format!(
                "progress: percent is {}, and must be 0 to 100",
                progress.percent
            )));
        }
        Ok(core::Progress {
            percent: progress.percent,
            message: self.text(progress.message)?,
        })
    }

    fn handler_description(
        &mut self,
        handler: wit::HandlerDescription,
    ) -> Read<core::HandlerDescription> {
        let name = self.text(handler.name)?;
        Ok(core::HandlerDescription {
            description: self.text(handler.description)?,
            view: match handler.view {
                wit::View::None => core::View::None,
                wit::View::CheckList => core::View::CheckList,
                wit::View::ObjectDetail => core::View::ObjectDetail,
            },
            accepts: match handler.accepts {
                wit::Accepts::One => core::Accepts::One,
                wit::Accepts::Batch => core::Accepts::Batch,
                wit::Accepts::Either => core::Accepts::Either,
            },
            parameters_schema: self.optional_json(handler.parameters_schema, || {
                format!("handler {name:?}: parameters-schema")
            })?,
            capabilities: self.optional_json(handler.capabilities, || {
                format!("handler {name:?}: capabilities")
            })?,
            name,
        })
    }

    fn object_ref(&mut self, object: wit_types::ObjectRef) -> Read<req::ObjectRef> {
        Ok(req::ObjectRef {
            namespace: self.text(object.namespace)?,
            name: self.text(object.name)?,
        })
    }

    fn object_key(&mut self, key: wit_types::ObjectKey) -> Read<req::ObjectKey> {
        Ok(req::ObjectKey {
            group: self.text(key.group)?,
            version: self.text(key.version)?,
            plural: self.text(key.plural)?,
            namespace: self.text(key.namespace)?,
            name: self.text(key.name)?,
        })
    }

    fn json(&mut self, text: String, place: impl FnOnce() -> String) -> Read<Document> {
        self.count(text.len() as u64)?;
        Document::parse(text).map_err(|error| invalid(format!("{} is {error}", place())))
    }

    fn optional_json(
        &mut self,
        text: Option<String>,
        place: impl FnOnce() -> String,
    ) -> Read<Option<Document>> {
        self.optional(text, |reader, text| reader.json(text, place))
    }

    fn text(&mut self, text: String) -> Read<String> {
        self.count(text.len() as u64)?;
        Ok(text)
    }

    fn optional_text(&mut self, text: Option<String>) -> Read<Option<String>> {
        self.optional(text, Self::text)
    }

    fn optional<T, U>(
        &mut self,
        value: Option<T>,
        read: impl FnOnce(&mut Self, T) -> Read<U>,
    ) -> Read<Option<U>> {
        value.map(|value| read(self, value)).transpose()
    }

    fn list<T, U>(
        &mut self,
        items: Vec<T>,
        mut read: impl FnMut(&mut Self, T) -> Read<U>,
    ) -> Read<Vec<U>> {
        self.count((items.len() as u64).saturating_mul(ELEMENT))?;
        items.into_iter().map(|item| read(self, item)).collect()
    }

    fn count(&mut self, bytes: u64) -> Read<()> {
        self.size = self.size.saturating_add(bytes);
        if self.size > self.limit {
            return Err(CallFault::OutputTooLarge {
                size: self.size,
                limit: self.limit,
            });
        }
        Ok(())
    }
}

fn invalid(message: String) -> CallFault {
    CallFault::InvalidOutput { message }
}
