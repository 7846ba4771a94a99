//! Checks of the instances.

use configurator_sdk::{HandlerError, Input, Output};

use crate::check::check;
use crate::inventory::{self, Instance, Instances};
use crate::resource::Spec;

/// All instances that are named must exist, and all that are to be moved must run.
///
/// # Errors
/// Fatal, when one does not.
pub fn state_running(input: &Input) -> Result<Output, HandlerError> {
    judge(input, |spec, found| {
        let is_absent = |id: &&String| !found.iter().any(|instance| instance.id == **id);
        let absent = spec.instances.iter().filter(is_absent).map(String::as_str);
        let stopped = found.iter().filter(|instance| !instance.is_running());
        let stopped = stopped.map(|instance| instance.id.as_str());
        let absent: Vec<&str> = absent.collect();
        let stopped: Vec<&str> = stopped.collect();
        match (absent.as_slice(), stopped.as_slice()) {
            ([], []) => None,
            ([], stopped) => Some(format!("{} do not run", stopped.join(", "))),
            (absent, []) => Some(format!("{} do not exist", absent.join(", "))),
            (absent, stopped) => Some(format!(
                "{} do not exist, and {} do not run",
                absent.join(", "),
                stopped.join(", ")
            )),
        }
    })
}

/// All instances must be in the source network.
///
/// # Errors
/// Fatal, when one is not.
pub fn in_src_vpc(input: &Input) -> Result<Output, HandlerError> {
    judge(input, |spec, found| {
        let elsewhere = found
            .iter()
            .filter(|instance| instance.vpc_id != spec.src_vpc_id);
        let elsewhere =
            elsewhere.map(|instance| format!("{} is in {}", instance.id, instance.vpc_id));
        let elsewhere: Vec<String> = elsewhere.collect();
        (!elsewhere.is_empty()).then(|| elsewhere.join(", "))
    })
}

fn judge(
    input: &Input,
    wrong: impl Fn(&Spec, &[Instance]) -> Option<String>,
) -> Result<Output, HandlerError> {
    let question = |spec: &Spec| [inventory::instances(spec)];
    check(input, question, |spec, [found]| {
        let Instances { instances } = found.read()?;
        Ok(wrong(spec, &instances))
    })
}
