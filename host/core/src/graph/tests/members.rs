//! The arrangement of members.

use super::server::{graph, key};
use crate::graph::member::Member;
use crate::graph::members::Members;
use crate::graph::observation::Observation;

fn names(members: &Members) -> Vec<String> {
    members.all().map(|(key, _)| key.to_string()).collect()
}

fn member(entry: &str) -> Member {
    Member {
        facts: graph(&[entry]).facts(0).unwrap(),
        removed_in: None,
        nonce: "nonce".to_owned(),
        uid: None,
    }
}

#[test]
fn members_are_arranged_as_their_entries() {
    let inventory = ["c", "b", "gone"].map(|name| (key(name), member(name)));
    let watched = ["c", "stale"].map(|name| (key(name), Observation::default()));
    let mut members = Members::new(inventory.into(), watched.into());
    let set = graph(&["a", "b", "c"]);
    members.arrange(&set);
    let expected = ["a", "b", "c", "gone"].map(|name| format!("ConfigMap shop/{name}"));
    assert_eq!(names(&members), expected);
    let has_record: Vec<bool> = (members.of_entries())
        .map(|known| known.member.is_some())
        .collect();
    assert_eq!(has_record, [false, true, true]);
    assert_eq!(members.without_entry().count(), 1);
    members.arrange(&set);
    assert_eq!(names(&members), expected);
    members.arrange(&graph(&["c"]));
    assert_eq!(members.of_entries().count(), 1);
    assert_eq!(members.without_entry().count(), 2);
    assert_eq!(members.inventory().count(), 3);
}
