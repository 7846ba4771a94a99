//! Checks of the networks.

use configurator_sdk::{HandlerError, Input, Output};

use crate::check::check;
use crate::inventory::{self, Addresses, Instances, Vpc};
use crate::resource::{MoveToVpc, Spec};
use crate::subnets::matching;

/// Both networks must exist, belong to the account, and be in the region.
///
/// # Errors
/// Fatal, when one does not.
pub fn vpc_app_id(input: &Input) -> Result<Output, HandlerError> {
    check(input, both, |spec, answers| {
        for (answer, id) in answers
            .into_iter()
            .zip([&spec.src_vpc_id, &spec.dst_vpc_id])
        {
            let Some(vpc) = answer.found::<Vpc>()? else {
                return Ok(Some(format!("there is no network {id}")));
            };
            if vpc.app_id != spec.app_id {
                return Ok(Some(format!("{id} belongs to the account {}", vpc.app_id)));
            }
            if vpc.region != spec.region {
                return Ok(Some(format!("{id} is in the region {}", vpc.region)));
            }
        }
        Ok(None)
    })
}

/// Each subnet of the source network must have one in the target network that can take its place.
///
/// # Errors
/// Fatal, when one has not.
pub fn cidr(input: &Input) -> Result<Output, HandlerError> {
    check(input, both, |spec, [from, to]| {
        let (from, to): (Vpc, Vpc) = (from.read()?, to.read()?);
        let pairs = matching(&from, &to, spec.keep_ips);
        let alone = from
            .subnets
            .iter()
            .filter(|subnet| pairs.get(subnet.id.as_str()).copied().flatten().is_none());
        let alone = alone.map(|subnet| format!("{} ({}, {})", subnet.id, subnet.cidr, subnet.zone));
        let alone: Vec<String> = alone.collect();
        Ok((!alone.is_empty()).then(|| {
            let needs = match spec.keep_ips {
                true => "of the same zone with the same addresses",
                false => "of the same zone",
            };
            format!("{} has no subnet {needs} as {}", to.id, alone.join(", "))
        }))
    })
}

/// Where addresses stay the same, none of them may be taken in the target network.
///
/// # Errors
/// Fatal, when one is.
pub fn ips_not_occupied(input: &Input) -> Result<Output, HandlerError> {
    if !MoveToVpc::of(input)?.spec.keep_ips {
        return Ok(Output::new());
    }
    let questions = |spec: &Spec| {
        let taken = format!("/vpcs/{}/addresses", spec.dst_vpc_id);
        [inventory::instances(spec), taken]
    };
    check(input, questions, |_, [instances, taken]| {
        let Instances { instances } = instances.read()?;
        let Addresses { addresses } = taken.read()?;
        let own = instances.iter().flat_map(|instance| &instance.interfaces);
        let taken = own
            .map(|interface| interface.ip.as_str())
            .filter(|ip| addresses.iter().any(|taken| taken == ip));
        let taken: Vec<&str> = taken.collect();
        Ok((!taken.is_empty())
            .then(|| format!("{} are taken in the target network", taken.join(", "))))
    })
}

fn both(spec: &Spec) -> [String; 2] {
    [&spec.src_vpc_id, &spec.dst_vpc_id].map(|id| inventory::vpc(id))
}
