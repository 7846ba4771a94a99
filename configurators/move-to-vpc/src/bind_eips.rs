//! The public addresses, to the new network interfaces.

use configurator_sdk::{Cause, HandlerError, Input, Output};
use serde_json::json;

use crate::cloud::{Cloud, Consulted};
use crate::inventory::Instances;
use crate::operations::{Carried, Job, Notes, carry_out};
use crate::plan::Plan;

/// Has them lead there. Their service takes each order as it comes, so this belongs in a step that is marked `once`: after a failure it
/// is entered again only because a person says so, and then looks first which of them lead there already.
///
/// # Errors
/// As [`carry_out`].
pub fn bind_eips(input: &Input) -> Result<Output, HandlerError> {
    let plan = Plan::of(input)?;
    let cloud = Cloud::of(input)?;
    let ids: Vec<&str> = plan.moves.iter().map(|one| one.instance.as_str()).collect();
    let question = [format!("/instances?ids={}", ids.join(","))];
    // What was noted before anything else than an answer came is not relied on.
    let is_after = input.context.cause == Cause::Again;
    let mut notes = if is_after {
        Notes::of(input)?
    } else {
        Notes::default()
    };
    let plan = match notes.plan.take() {
        Some(left) => left,
        None => match cloud.consult(&question)? {
            Consulted::NotYet(asks) => return Ok(*asks),
            Consulted::Answers([found]) => left_of(plan, &found.read()?),
        },
    };
    let jobs = plan.public_addresses().map(|(address, interface)| Job {
        object: address.to_owned(),
        path: format!("/addresses/{address}/bind"),
        body: json!({"interfaceId": interface}),
    });
    let jobs: Vec<Job> = jobs.collect();
    notes.plan = Some(plan);
    match carry_out(&cloud, notes, &jobs)? {
        Carried::NotYet(output) => Ok(*output),
        Carried::Done { output, .. } => Ok(output.status(Plan::of(input)?.reached("Moved"))),
    }
}

/// The plan without public addresses that lead to their new interfaces.
fn left_of(mut plan: Plan, found: &Instances) -> Plan {
    let is_bound = |address: &str, interface: &str| {
        let mut known = found
            .instances
            .iter()
            .flat_map(|instance| &instance.interfaces);
        known.any(|known| known.id == interface && known.public_address.as_deref() == Some(address))
    };
    for one in plan.moves.iter_mut().flat_map(|one| &mut one.interfaces) {
        let pair = one.public_address.as_deref().zip(one.new.as_deref());
        if pair.is_some_and(|(address, interface)| is_bound(address, interface)) {
            one.public_address = None;
        }
    }
    plan
}
