//! Orders that contradict one another while a set changes.
//!
//! Each order has no cycle, but two of them together can: `a` is provisioned before `b`, and updated after it. When `b` is new and `a` differs, the
//! creation of `b` waits for the update of `a`, which waits for `b`. Then the creation goes first.

use super::Graph;

/// An entry that waits for others, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Its member is to be created.
    Create,
    /// Its member is to be updated or recreated.
    Update,
    /// It is ready.
    Ready,
    /// It is not ready, and waits for no other entry.
    Other,
}

/// Returns the creations that wait for updates which wait for them, directly or through others, and for nothing else.
pub(super) fn freed(graph: &Graph, waits: &[Wait]) -> Vec<usize> {
    let unready = |index: usize| {
        let order = match waits.get(index) {
            Some(Wait::Create) => graph.provision(),
            _ => graph.update(),
        };
        let is_unready = |index: &usize| waits.get(*index) != Some(&Wait::Ready);
        order.dependencies(index).iter().copied().filter(is_unready)
    };
    let is_waiting = |index: &usize| matches!(waits.get(*index), Some(Wait::Create | Wait::Update));
    let all: Vec<usize> = (0..waits.len()).filter(is_waiting).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let mut forward: Vec<Vec<usize>> = vec![Vec::new(); waits.len()];
    let mut backward = forward.clone();
    for index in &all {
        for dependency in unready(*index) {
            if let (Some(forward), Some(backward)) =
                (forward.get_mut(*index), backward.get_mut(dependency))
            {
                forward.push(dependency);
                backward.push(*index);
            }
        }
    }
    let mut is_left: Vec<bool> = (0..waits.len()).map(|index| is_waiting(&index)).collect();
    // These go on by themselves, and so does everything that waits for them.
    peel(&mut is_left, &backward, |index| {
        let mut dependencies = forward.get(index).into_iter().flatten().peekable();
        dependencies.peek().is_none() || dependencies.any(|index| !is_waiting(index))
    });
    // Entries that nothing waits for are only behind a contradiction.
    let mut dependents = vec![0usize; waits.len()];
    for index in all
        .iter()
        .filter(|index| is_left.get(**index) == Some(&true))
    {
        for dependency in forward.get(*index).into_iter().flatten() {
            if let Some(dependents) = dependents.get_mut(*dependency) {
                *dependents += 1;
            }
        }
    }
    let mut free: Vec<usize> = all
        .iter()
        .copied()
        .filter(|index| is_left.get(*index) == Some(&true) && dependents.get(*index) == Some(&0))
        .collect();
    while let Some(index) = free.pop() {
        if let Some(is_left) = is_left.get_mut(index) {
            *is_left = false;
        }
        for dependency in forward.get(index).into_iter().flatten() {
            if let Some(dependents) = dependents.get_mut(*dependency) {
                *dependents -= 1;
                if *dependents == 0 {
                    free.push(*dependency);
                }
            }
        }
    }
    let is_creation = |index: &usize| waits.get(*index) == Some(&Wait::Create);
    all.into_iter()
        .filter(|index| is_left.get(*index) == Some(&true) && is_creation(index))
        .filter(|index| !forward.get(*index).into_iter().flatten().any(is_creation))
        .collect()
}

/// Removes the entries that match, and all that wait for one that was removed.
fn peel(is_left: &mut [bool], backward: &[Vec<usize>], matches: impl Fn(usize) -> bool) {
    let mut removed: Vec<usize> = (is_left.iter().enumerate())
        .filter(|(index, is_left)| **is_left && matches(*index))
        .map(|(index, _)| index)
        .collect();
    while let Some(index) = removed.pop() {
        match is_left.get_mut(index) {
            Some(is_left) if *is_left => *is_left = false,
            _ => continue,
        }
        removed.extend(backward.get(index).into_iter().flatten());
    }
}
