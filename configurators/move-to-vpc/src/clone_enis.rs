//! The network interfaces in the target network.

use configurator_sdk::{HandlerError, Input, Output};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cloud::{Cloud, Consulted};
use crate::inventory::{self, Instance, Instances, Vpc};
use crate::operations::{Carried, Job, Notes, carry_out};
use crate::plan::{Move, Plan, Replacement};
use crate::subnets::matching;

/// Plans the move, and makes an interface in the target network for each that an instance has beside its first. Leaves the plan.
///
/// # Errors
/// When the plan cannot be made; see also [`carry_out`].
pub fn clone_enis(input: &Input) -> Result<Output, HandlerError> {
    let cloud = Cloud::of(input)?;
    let mut notes = Notes::of(input)?;
    let plan = match notes.plan.take() {
        Some(plan) => plan,
        None => match planned(&cloud)? {
            Ok(plan) => plan,
            Err(asks) => return Ok(*asks),
        },
    };
    let jobs = plan.replacements().map(|one| Job {
        object: one.old.clone(),
        path: "/interfaces".to_owned(),
        body: json!({"subnetId": one.subnet, "ip": one.ip}),
    });
    let jobs: Vec<Job> = jobs.collect();
    notes.plan = Some(plan.clone());
    let (made, output) = match carry_out(&cloud, notes, &jobs)? {
        Carried::NotYet(output) => return Ok(*output),
        Carried::Done { results, output } => (results, output),
    };
    #[derive(Deserialize)]
    struct Made {
        id: String,
        ip: String,
    }
    let mut plan = plan;
    let replacements = plan.moves.iter_mut().flat_map(|one| &mut one.interfaces);
    for one in replacements {
        let made = made.get(&one.old).cloned().unwrap_or_default();
        let Made { id, ip } = serde_json::from_value(made)?;
        one.new = Some(id);
        one.ip = Some(ip);
    }
    let states = plan.moves.iter().map(|one| {
        let interfaces = one.interfaces.iter().map(|one| {
            let about = json!({"new": one.new, "ip": one.ip, "publicAddress": one.public_address});
            (one.old.clone(), about)
        });
        let interfaces: serde_json::Map<String, Value> = interfaces.collect();
        (
            one.instance.clone(),
            json!({"state": "Cloned", "interfaces": interfaces}),
        )
    });
    let states: serde_json::Map<String, Value> = states.collect();
    Ok(output
        .status(json!({ "instances": states }))
        .output(serde_json::to_string(&plan)?))
}

/// The plan, or what asks for what it is made of.
fn planned(cloud: &Cloud<'_>) -> Result<Result<Plan, Box<Output>>, HandlerError> {
    let spec = &cloud.spec;
    let questions = [
        inventory::vpc(&spec.src_vpc_id),
        inventory::vpc(&spec.dst_vpc_id),
        inventory::instances(spec),
    ];
    let [from, to, instances] = match cloud.consult(&questions)? {
        Consulted::NotYet(asks) => return Ok(Err(asks)),
        Consulted::Answers(answers) => answers,
    };
    let (from, to): (Vpc, Vpc) = (from.read()?, to.read()?);
    let Instances { instances } = instances.read()?;
    let pairs = matching(&from, &to, spec.keep_ips);
    let place = |subnet: &str| {
        let new = pairs.get(subnet).copied().flatten();
        new.map(str::to_owned).ok_or_else(|| {
            HandlerError::fatal(format!(
                "no subnet of {} takes the place of {subnet}",
                to.id
            ))
        })
    };
    let moved = |instance: &Instance| {
        let beside = instance
            .interfaces
            .iter()
            .filter(|interface| !interface.is_first);
        let interfaces = beside.map(|interface| {
            Ok(Replacement {
                old: interface.id.clone(),
                subnet: place(&interface.subnet_id)?,
                ip: spec.keep_ips.then(|| interface.ip.clone()),
                new: None,
                public_address: interface.public_address.clone(),
            })
        });
        Ok(Move {
            instance: instance.id.clone(),
            subnet: place(&instance.subnet_id)?,
            ip: instance
                .first_ip()
                .filter(|_| spec.keep_ips)
                .map(str::to_owned),
            interfaces: interfaces.collect::<Result<_, HandlerError>>()?,
        })
    };
    let here = instances
        .iter()
        .filter(|instance| instance.vpc_id == from.id);
    let moves = here.map(moved).collect::<Result<_, HandlerError>>()?;
    Ok(Ok(Plan { moves }))
}
