//! The keys of the config store that are the host's own.

use configurator_core::partition;

/// The prefixes of these keys, within a partition.
const PREFIXES: [&str; 9] = [
    "effects/",
    "fences/",
    "ledger/",
    "members/",
    "retired/",
    "revisions/",
    "sets/",
    "states/",
    "trees/",
];

/// Whether a key is the host's own: no request reads or writes it.
#[must_use]
pub fn is_host_key(key: &str) -> bool {
    let key = partition::within(key);
    PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partitions_have_keys_of_the_host_too() {
        for key in [
            "sets/a",
            "members/config/basic/a",
            "namespaces/shop/uid-1/members/secret/a",
        ] {
            assert!(is_host_key(key), "{key}");
        }
        for key in [
            "basic/members",
            "namespaces/shop/uid-1/basic/a",
            "two/sets/a",
        ] {
            assert!(!is_host_key(key), "{key}");
        }
    }
}
