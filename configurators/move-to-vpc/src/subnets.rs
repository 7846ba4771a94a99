//! Which subnet of the target network takes the place of which.

use std::collections::BTreeMap;

use ipnet::IpNet;

use crate::inventory::{Subnet, Vpc};

/// By the id of each subnet of the source network, the one of the target network that takes its place; nothing where there is none.
///
/// It is in the same zone. Where addresses stay the same, it has all addresses of the old one.
pub fn matching<'a>(
    from: &'a Vpc,
    to: &'a Vpc,
    keep_ips: bool,
) -> BTreeMap<&'a str, Option<&'a str>> {
    let pair = |old: &'a Subnet| {
        let fits =
            |new: &&Subnet| new.zone == old.zone && (!keep_ips || contains(&new.cidr, &old.cidr));
        let new = to.subnets.iter().find(fits);
        (old.id.as_str(), new.map(|new| new.id.as_str()))
    };
    from.subnets.iter().map(pair).collect()
}

fn contains(outer: &str, inner: &str) -> bool {
    let nets = outer.parse::<IpNet>().ok().zip(inner.parse::<IpNet>().ok());
    nets.is_some_and(|(outer, inner)| outer.contains(&inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vpc(subnets: &[(&str, &str, &str)]) -> Vpc {
        let subnet = |(id, cidr, zone): &(&str, &str, &str)| Subnet {
            id: (*id).to_owned(),
            cidr: (*cidr).to_owned(),
            zone: (*zone).to_owned(),
        };
        Vpc {
            id: "vpc".to_owned(),
            app_id: "1".to_owned(),
            region: "north".to_owned(),
            subnets: subnets.iter().map(subnet).collect(),
        }
    }

    fn check(keep_ips: bool, expected: &[(&str, Option<&str>)]) {
        let from = vpc(&[
            ("a", "10.0.1.0/24", "1"),
            ("b", "10.0.2.0/24", "2"),
            ("c", "nothing", "1"),
        ]);
        let to = vpc(&[
            ("x", "10.1.0.0/16", "1"),
            ("y", "10.0.0.0/16", "1"),
            ("z", "10.0.2.0/25", "2"),
        ]);
        let found: Vec<_> = matching(&from, &to, keep_ips).into_iter().collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_subnet_of_the_zone_takes_the_place_and_has_the_addresses_where_they_stay() {
        check(true, &[("a", Some("y")), ("b", None), ("c", None)]);
        check(
            false,
            &[("a", Some("x")), ("b", Some("z")), ("c", Some("x"))],
        );
    }
}
