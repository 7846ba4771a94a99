//! The records of members in an `ObjectSet`.

use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::entry::OnDelete;
use configurator_core::graph::member::{Member, MemberFacts, MemberKey};

use crate::resource::object_set::{MemberSpec, OnDeleteSpec};

/// The record of a member, as an `ObjectSet` has it.
///
/// # Errors
/// When it is a member of a store, which inventories cannot have yet.
pub(super) fn member_spec(key: &MemberKey, member: &Member) -> Result<MemberSpec, Fault> {
    let MemberKey::Kubernetes {
        group,
        kind,
        namespace,
        name,
    } = key
    else {
        let message = format!("{key}: this host offers sets of Kubernetes objects only");
        return Err(Fault::new(FaultKind::UnsupportedResourceOperation, message));
    };
    Ok(MemberSpec {
        group: group.clone(),
        kind: kind.clone(),
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
    })
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
