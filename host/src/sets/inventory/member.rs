//! The records of members in an `ObjectSet`.

use configurator_core::graph::entry::OnDelete;
use configurator_core::graph::member::{Member, MemberFacts, MemberKey};

use crate::resource::object_set::{MemberSpec, OnDeleteSpec, StoreSpec};

/// The record of a member, as an `ObjectSet` has it.
pub(super) fn member_spec(key: &MemberKey, member: &Member) -> MemberSpec {
    let (store, group, kind, namespace, name) = match key {
        MemberKey::Kubernetes {
            group,
            kind,
            namespace,
            name,
        } => (
            StoreSpec::Kubernetes,
            group.as_str(),
            kind.as_str(),
            namespace,
            name,
        ),
        MemberKey::Config { partition, key } => (StoreSpec::Config, "", "", partition, key),
        MemberKey::Secret { partition, name } => (StoreSpec::Secret, "", "", partition, name),
    };
    MemberSpec {
        store,
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.clone(),
        name: name.clone(),
        entry: member.facts.entry.clone(),
        wave: member.facts.wave,
        on_delete: match member.facts.on_delete {
            OnDelete::WithOwner => OnDeleteSpec::WithOwner,
            OnDelete::Retain => OnDeleteSpec::Retain,
            OnDelete::OnlyUnderWipeOut => OnDeleteSpec::OnlyUnderWipeOut,
        },
        removed_in: member.removed_in,
        nonce: member.nonce.clone(),
        uid: member.uid.clone(),
    }
}

/// A member, as an `ObjectSet` records it.
pub(super) fn read_member(spec: &MemberSpec) -> (MemberKey, Member) {
    let member = Member {
        facts: MemberFacts {
            entry: spec.entry.clone(),
            wave: spec.wave,
            on_delete: match spec.on_delete {
                OnDeleteSpec::WithOwner => OnDelete::WithOwner,
                OnDeleteSpec::Retain => OnDelete::Retain,
                OnDeleteSpec::OnlyUnderWipeOut => OnDelete::OnlyUnderWipeOut,
            },
        },
        removed_in: spec.removed_in,
        nonce: spec.nonce.clone(),
        uid: spec.uid.clone(),
    };
    (spec.key(), member)
}
