//! What is to be moved.

use std::collections::BTreeMap;

use configurator_sdk::{HandlerError, Input, Output};
use serde_json::{Value, json};

use crate::cloud::{Cloud, Consulted};
use crate::inventory::{self, Account, Instances, Vpc};
use crate::subnets::matching;

/// Notes in the status whose account it is, which instances are to be moved, and which subnet takes the place of which.
///
/// # Errors
/// When the networks are not there, or there is no instance to be moved.
pub fn initialize(input: &Input) -> Result<Output, HandlerError> {
    let cloud = Cloud::of(input)?;
    let spec = &cloud.spec;
    let questions = [
        "/account".to_owned(),
        inventory::vpc(&spec.src_vpc_id),
        inventory::vpc(&spec.dst_vpc_id),
        inventory::instances(spec),
    ];
    let [account, from, to, instances] = match cloud.consult(&questions)? {
        Consulted::NotYet(output) => return Ok(*output),
        Consulted::Answers(answers) => answers,
    };
    let account: Account = account.read()?;
    let (from, to): (Vpc, Vpc) = (from.read()?, to.read()?);
    let Instances { instances } = instances.read()?;
    if instances.is_empty() {
        let message = format!("there is no instance to be moved in {}", spec.src_vpc_id);
        return Err(HandlerError::fatal(message));
    }
    let instances = instances.iter().map(|instance| {
        let about =
            json!({"state": "Pending", "vpcId": instance.vpc_id, "ip": instance.first_ip()});
        (instance.id.as_str(), about)
    });
    let instances: BTreeMap<&str, Value> = instances.collect();
    let pairs = matching(&from, &to, spec.keep_ips);
    let subnets = from.subnets.iter().map(|subnet| {
        let new = pairs.get(subnet.id.as_str()).copied().flatten();
        let about = json!({"cidr": subnet.cidr, "zone": subnet.zone, "dstSubnetId": new});
        (subnet.id.as_str(), about)
    });
    let subnets: BTreeMap<&str, Value> = subnets.collect();
    Ok(Output::new().status(json!({
        "uin": account.uin,
        "instances": instances,
        "subnets": subnets,
        "confirmed": false,
    })))
}
