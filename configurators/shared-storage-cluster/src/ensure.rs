//! Having objects that are ready, over several entries of a leaf: they are applied; those that are not ready are waited for, out of
//! memory; when one has changed, all are applied again, which changes nothing and shows what they are now.

use configurator_sdk::kubernetes::Resource;
use configurator_sdk::{HandlerError, Input, Output, Request, Wake};
use serde_json::Value;

use crate::field::{list, text};

/// An object that is to be there.
pub struct Wanted {
    /// Its kind.
    pub resource: Resource,
    /// The whole of it, with its name and namespace.
    pub object: Value,
}

/// Whether an object is ready, or why it never will be.
pub type IsReady = fn(&Value) -> Result<bool, HandlerError>;

/// What has become of objects.
pub enum Ensured {
    /// They are not ready; this goes on.
    NotYet(Box<Output>),
    /// All are there and ready; this says so to people.
    Ready(Box<Output>),
}

impl Wanted {
    fn text(&self, pointer: &str) -> &str {
        let found = self.object.pointer(pointer);
        found.and_then(Value::as_str).unwrap_or_default()
    }

    fn at(&self) -> (&str, &str) {
        (
            self.text("/metadata/namespace"),
            self.text("/metadata/name"),
        )
    }

    /// The request that applies it.
    pub fn request(&self) -> Request {
        let apply = self.resource.apply(self.at(), self.object.clone()).force();
        Request::new(self.request_name(), apply)
    }

    /// The name of that request.
    pub fn request_name(&self) -> String {
        [self.resource.plural, "/", self.at().1].concat()
    }
}

/// Has these objects, and waits until they are ready.
///
/// # Errors
/// What the API has refused them for, and why one will never be ready.
pub fn ensure(
    input: &Input,
    wanted: &[Wanted],
    is_ready: IsReady,
) -> Result<Ensured, HandlerError> {
    let mut awaited = Vec::new();
    for one in wanted {
        let Some(answer) = input.answer(&one.request_name()) else {
            let ask = Output::new().with_requests(wanted.iter().map(Wanted::request));
            return Ok(Ensured::NotYet(ask.again().into()));
        };
        let object: Value = answer.object()?;
        if !is_ready(&object)? {
            awaited.push(one.resource.key(one.at()));
        }
    }
    let (all, ready) = (wanted.len(), wanted.len() - awaited.len());
    let percent = u8::try_from(ready * 100 / all.max(1)).unwrap_or(100);
    let output = Output::new().progress(percent, format!("{ready} of {all} are ready"));
    if ready == all {
        return Ok(Ensured::Ready(
            output.progress(100, format!("{all} are ready")).into(),
        ));
    }
    let wake = Wake {
        after: None,
        signals: Vec::new(),
        objects: awaited,
    };
    Ok(Ensured::NotYet(output.wait(wake).into()))
}

/// Has these objects, and is done when they are ready.
///
/// # Errors
/// As [`ensure`].
pub fn step(input: &Input, wanted: &[Wanted], is_ready: IsReady) -> Result<Output, HandlerError> {
    match ensure(input, wanted, is_ready)? {
        Ensured::NotYet(output) | Ensured::Ready(output) => Ok(*output),
    }
}

/// Whether a Pod is ready.
///
/// # Errors
/// With the code `POD_FAILED`, when it has ended: the remedy removes it, and it is made again. With `IMAGE_PULL_FAILED`, when its image is
/// not to be had.
pub fn pod_is_ready(pod: &Value) -> Result<bool, HandlerError> {
    let name = text(pod, "/metadata/name");
    if text(pod, "/status/phase") == "Failed" {
        let message = format!("the Pod {name} has failed");
        return Err(HandlerError::retry(message).code("POD_FAILED"));
    }
    let mut containers = list(pod, "/status/containerStatuses").iter();
    if containers.any(|one| {
        let reason = text(one, "/state/waiting/reason");
        matches!(reason, "ImagePullBackOff" | "InvalidImageName")
    }) {
        let image = text(pod, "/spec/containers/0/image");
        let message = format!("the image {image} of the Pod {name} is not to be had");
        return Err(HandlerError::retry(message).code("IMAGE_PULL_FAILED"));
    }
    let mut conditions = list(pod, "/status/conditions").iter();
    Ok(conditions.any(|one| text(one, "/type") == "Ready" && text(one, "/status") == "True"))
}
