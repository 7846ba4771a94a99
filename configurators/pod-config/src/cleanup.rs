//! The phases of a Pod that is gone. They need its name, namespace and uid, and nothing else of it.

use configurator_sdk::configstore::{Entry, Transaction, TwoLayers};
use configurator_sdk::secretstore::Secret;
use configurator_sdk::{HandlerError, Input, Output, Request};

use crate::pod::Pod;
use crate::root::results;
use crate::{names, stored};

/// Asks for what is stored under the Pod's name, whichever Pod's it is.
///
/// # Errors
/// Fatal, when the object is no Pod of the API.
pub fn cleanup(input: &Input) -> Result<Output, HandlerError> {
    let pod: Pod<'_> = input.object()?;
    let entry = Entry::pod(&*pod.metadata.namespace, &*pod.metadata.name).get();
    Ok(Output::new().request(Request::new(results::ENTRY, entry).catch_error()))
}

/// Deletes the Pod's entry with its app-conf, its leaf in the index, and its secret. The ConfigMap goes with the Pod.
///
/// A newer Pod may have the same name, as those of a StatefulSet do. What is stored is then the newer one's, and stays.
///
/// # Errors
/// When the entry could not be read, which a retry may cure.
pub fn delete_config(input: &Input) -> Result<Output, HandlerError> {
    let pod: Pod<'_> = input.object()?;
    let metadata = &pod.metadata;
    let entry = stored::Entry::of(input.result(results::ENTRY)?)?;
    if entry
        .as_ref()
        .is_some_and(|entry| !entry.is_of(&metadata.uid))
    {
        return Ok(Output::new());
    }
    let mut output = Output::new();
    if let Some(entry) = &entry {
        let mut gone = Transaction::new().and(
            Entry::pod(&*metadata.namespace, &*metadata.name)
                .uid(&*metadata.uid)
                .delete(),
        );
        let index = entry.previous(&metadata.uid).index;
        if !index.is_empty() {
            gone.push(TwoLayers::new(&*index, &*metadata.name).delete());
        }
        output.push(Request::new("config", gone));
    }
    // Created beside the entry, not after it: a run that was cut short may have left it alone.
    output.push(Request::new(
        "secret",
        Secret::new(names::secret(metadata)).delete(),
    ));
    Ok(output)
}
