//! Batches.

use configurator_sdk::configstore::Entry;
use configurator_sdk::{
    Event, EventType, HandlerError, Input, ObjectRef, Output, Request, WatchEvent,
};
use serde_json::{Value, json};

fn event(event: WatchEvent) -> &'static str {
    match event {
        WatchEvent::Added => "added",
        WatchEvent::Modified => "modified",
        WatchEvent::Deleted => "deleted",
        WatchEvent::Resync => "resync",
    }
}

/// Of each object: a request, a status and an Event.
pub fn batch(input: &Input) -> Result<Output, HandlerError> {
    let mut output = Output::new();
    for watched in input.objects() {
        let object: Value = watched.parse()?;
        let text = |field: &str| {
            object["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        let of = ObjectRef::new(&*namespace, &*name);
        let entry = Entry::pod(&*namespace, &*name).uid(text("uid"));
        output.push(Request::new(format!("{namespace}/{name}"), entry.update("1")).of(of.clone()));
        output = output.status_of(of.clone(), json!({"seen": event(watched.event)}));
        output.events.push(Event {
            of: Some(of),
            event_type: EventType::Normal,
            reason: "Seen".to_owned(),
            message: format!("{name} was {}", event(watched.event)),
        });
    }
    Ok(output)
}

pub fn either(input: &Input) -> Result<Output, HandlerError> {
    Output::new().pass("objects", &input.objects().len())
}
