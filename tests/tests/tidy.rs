//! What is written down twice must agree.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::fs;

use configurator_core::fault::FaultKind;
use configurator_guest::digest::Digest;
use configurator_tests::guests::workspace;

#[test]
fn every_kind_of_fault_has_a_page_and_every_page_a_kind() {
    let pages: BTreeSet<String> = fs::read_dir(workspace().join("docs/errors"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let kinds: BTreeSet<String> = FaultKind::ALL
        .into_iter()
        .map(|kind| format!("{kind}.md"))
        .collect();
    assert_eq!(pages, kinds);
    for kind in FaultKind::ALL {
        let page = fs::read_to_string(workspace().join(format!("docs/errors/{kind}.md"))).unwrap();
        let says = if kind.is_retryable() {
            "**Retryable:** yes"
        } else {
            "**Retryable:** no"
        };
        assert!(
            page.contains(says),
            "docs/errors/{kind}.md does not say {says}"
        );
    }
}

/// Whoever changes the contract has to look at the page that explains it, and then writes the new digest there.
#[test]
fn the_protocol_page_knows_the_contract() {
    let mut files: Vec<_> = fs::read_dir(workspace().join("wit"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let contract: Vec<u8> = files
        .iter()
        .flat_map(|file| fs::read(file).unwrap())
        .collect();
    let digest = Digest::of(&contract).to_string();
    let page = fs::read_to_string(workspace().join("docs/protocol.md")).unwrap();
    assert!(
        page.contains(&digest),
        "wit/ has changed: bring docs/protocol.md up to date, and write {digest} at its end"
    );
}
