//! Pods that are made anew, since what they are made of cannot be changed.

use configurator_sdk::kubernetes::POD;
use configurator_sdk::{HandlerError, Input, Output, Request};
use serde_json::Value;

use crate::ensure::{Ensured, ensure, pod_is_ready};
use crate::field::text;
use crate::pod::{Pods, made_for, was_made_for};

/// Makes the Pods that read anew, one after another, each ready before the next goes.
///
/// # Errors
/// As [`pod_is_ready`].
pub fn rebuild_ro_pods(input: &Input) -> Result<Output, HandlerError> {
    rebuild(input, Pods::ro)
}

/// Makes the Pod that writes anew.
///
/// # Errors
/// As [`pod_is_ready`].
pub fn rebuild_rw_pod(input: &Input) -> Result<Output, HandlerError> {
    rebuild(input, Pods::rw)
}

fn rebuild(input: &Input, names: fn(&Pods) -> Vec<String>) -> Result<Output, HandlerError> {
    let pods = Pods::of(input)?;
    let names = names(&pods);
    let cluster = &pods.cluster;
    let done: usize = input.notes()?.unwrap_or(0);
    let Some(name) = names.get(done) else {
        return Ok(Output::new().progress(100, format!("{} are new", names.len())));
    };
    let percent = u8::try_from(done * 100 / names.len().max(1)).unwrap_or(100);
    let under_way = |output: Output| {
        let progress = format!("{done} of {} are new", names.len());
        output
            .progress(percent, progress)
            .data(serde_json::json!(done))
    };
    let wanted = pods.pod(name)?;
    // It was applied in the entry before, so it is the new one.
    if input.answer(&wanted.request_name()).is_some() {
        return match ensure(input, &[wanted], pod_is_ready)? {
            Ensured::NotYet(output) => Ok(under_way(*output)),
            Ensured::Ready(_) => Ok(under_way(Output::new())
                .data(serde_json::json!(done + 1))
                .again()),
        };
    }
    let look = || Request::new("old", POD.get(cluster.at(name))).catch_error();
    let Some(answer) = input.answer("old") else {
        return Ok(under_way(Output::new().request(look()).again()));
    };
    let old = answer
        .found()?
        .map(serde_json::from_str::<Value>)
        .transpose()?;
    match old {
        Some(old) if was_made_for(&old) != made_for(&pods.plan) => {
            let uid = text(&old, "/metadata/uid");
            let delete = Request::new("gone", POD.delete(cluster.at(name)).uid(uid));
            let is_going = !text(&old, "/metadata/deletionTimestamp").is_empty();
            Ok(under_way(match is_going {
                // It takes its time.
                true => Output::new()
                    .request(look())
                    .again_after(std::time::Duration::from_secs(1)),
                false => Output::new().request(delete).again(),
            }))
        }
        _ => Ok(under_way(Output::new().request(wanted.request()).again())),
    }
}
