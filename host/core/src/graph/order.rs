//! In which order nodes that depend on one another come.
//!
//! The order depends on nothing but the nodes: those that could come side by side come as they were given. Libraries of graphs promise no
//! such order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fmt;

/// A name, and the names that must come before it.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    /// No other node has it.
    pub name: &'a str,
    /// Names of other nodes. One that is named twice counts once.
    pub depends_on: &'a [String],
}

/// Why nodes have no order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderError {
    /// Two nodes have the same name.
    Duplicate {
        /// The name.
        name: String,
    },
    /// A node depends on a name that no node has.
    Unknown {
        /// The node.
        name: String,
        /// The name that it depends on.
        dependency: String,
    },
    /// Nodes depend on one another in a circle.
    Cycle {
        /// Each depends on the next, and the last on the first.
        path: Vec<String>,
    },
}

impl std::error::Error for OrderError {}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate { name } => write!(f, "two entries have the name {name:?}"),
            Self::Unknown { name, dependency } => {
                write!(
                    f,
                    "{name:?} depends on {dependency:?}, and no entry has that name"
                )
            }
            Self::Cycle { path } => {
                f.write_str("entries depend on one another in a circle: ")?;
                write_cycle(f, path)
            }
        }
    }
}

/// Writes the path of a cycle, which ends where it began.
pub(super) fn write_cycle(f: &mut fmt::Formatter<'_>, path: &[String]) -> fmt::Result {
    for name in path {
        write!(f, "{name:?} → ")?;
    }
    let first = path.first().map_or("", String::as_str);
    write!(f, "{first:?}")
}

/// An order of nodes, each named by its index among those that were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The nodes that each node depends on, in ascending order.
    dependencies: Vec<Vec<usize>>,
    /// The nodes that depend on each node, in ascending order.
    dependents: Vec<Vec<usize>>,
    /// Every node after those that it depends on.
    sorted: Vec<usize>,
}

impl Order {
    /// Orders nodes, in a time that is linear in nodes and dependencies but for a logarithm.
    ///
    /// # Errors
    /// The first that is found: names, then dependencies, then cycles.
    pub fn of<'a>(nodes: impl IntoIterator<Item = Node<'a>>) -> Result<Self, OrderError> {
        let nodes: Vec<Node<'a>> = nodes.into_iter().collect();
        let mut indexes: HashMap<&str, usize> = HashMap::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            if indexes.insert(node.name, index).is_some() {
                return Err(OrderError::Duplicate {
                    name: node.name.to_owned(),
                });
            }
        }
        let mut dependencies = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let mut own = Vec::with_capacity(node.depends_on.len());
            for name in node.depends_on {
                let index = indexes.get(name.as_str());
                own.push(*index.ok_or_else(|| OrderError::Unknown {
                    name: node.name.to_owned(),
                    dependency: name.clone(),
                })?);
            }
            own.sort_unstable();
            own.dedup();
            dependencies.push(own);
        }
        Self::of_indexes(dependencies).map_err(|path| OrderError::Cycle {
            path: path
                .into_iter()
                .filter_map(|index| nodes.get(index))
                .map(|node| node.name.to_owned())
                .collect(),
        })
    }

    /// Orders nodes by the indexes that each depends on, which must be those of nodes.
    ///
    /// # Errors
    /// A circle, as indexes: each depends on the next, and the last on the first.
    pub fn of_indexes(dependencies: Vec<Vec<usize>>) -> Result<Self, Vec<usize>> {
        let mut dependents = vec![Vec::new(); dependencies.len()];
        for (index, own) in dependencies.iter().enumerate() {
            for dependency in own {
                if let Some(dependents) = dependents.get_mut(*dependency) {
                    dependents.push(index);
                }
            }
        }
        let sorted = sorted(&dependencies, &dependents);
        if sorted.len() < dependencies.len() {
            return Err(circle(&dependencies, &sorted));
        }
        Ok(Self {
            dependencies,
            dependents,
            sorted,
        })
    }

    /// Every node after those that it depends on.
    #[must_use]
    pub fn sorted(&self) -> &[usize] {
        &self.sorted
    }

    /// The nodes that a node depends on, in ascending order.
    #[must_use]
    pub fn dependencies(&self, index: usize) -> &[usize] {
        self.dependencies.get(index).map_or(&[], Vec::as_slice)
    }

    /// The nodes that depend on a node, in ascending order.
    #[must_use]
    pub fn dependents(&self, index: usize) -> &[usize] {
        self.dependents.get(index).map_or(&[], Vec::as_slice)
    }

    /// The waves in which nodes can be made: each node as early as what it depends on allows.
    #[must_use]
    pub fn waves(&self) -> Vec<Vec<usize>> {
        layers(self.sorted.iter().copied(), &self.dependencies)
    }

    /// The waves in which nodes can be deleted: each node as early as what depends on it allows.
    #[must_use]
    pub fn deletion_waves(&self) -> Vec<Vec<usize>> {
        layers(self.sorted.iter().rev().copied(), &self.dependents)
    }
}

/// Puts the nodes in order. If several may come next, the one that was given first does. Nodes on a circle, or behind one, are left out.
fn sorted(dependencies: &[Vec<usize>], dependents: &[Vec<usize>]) -> Vec<usize> {
    let mut missing: Vec<usize> = dependencies.iter().map(Vec::len).collect();
    let free = missing
        .iter()
        .enumerate()
        .filter(|(_, missing)| **missing == 0);
    let mut free: BinaryHeap<Reverse<usize>> = free.map(|(index, _)| Reverse(index)).collect();
    let mut sorted = Vec::with_capacity(missing.len());
    while let Some(Reverse(index)) = free.pop() {
        sorted.push(index);
        for dependent in dependents.get(index).into_iter().flatten() {
            if let Some(missing) = missing.get_mut(*dependent) {
                *missing -= 1;
                if *missing == 0 {
                    free.push(Reverse(*dependent));
                }
            }
        }
    }
    sorted
}

/// A circle among the nodes that have no place in the order. Each of them depends on another one of them, so whoever follows that comes
/// back to where it was.
fn circle(dependencies: &[Vec<usize>], sorted: &[usize]) -> Vec<usize> {
    let mut is_sorted = vec![false; dependencies.len()];
    for index in sorted {
        if let Some(is_sorted) = is_sorted.get_mut(*index) {
            *is_sorted = true;
        }
    }
    let is_left = |index: &usize| is_sorted.get(*index) == Some(&false);
    let next = |index: usize| {
        let mut own = dependencies.get(index).into_iter().flatten().copied();
        own.find(is_left)
    };
    let mut path = Vec::new();
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut at = (0..dependencies.len()).find(is_left);
    while let Some(index) = at {
        if let Some(place) = places.get(&index) {
            path.drain(..place);
            break;
        }
        places.insert(index, path.len());
        path.push(index);
        at = next(index);
    }
    path
}

/// Puts each node into the first layer after those of all nodes that come `before` it; `sorted` names these first.
fn layers(sorted: impl Iterator<Item = usize>, before: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut layer_of = vec![0; before.len()];
    let mut layers: Vec<Vec<usize>> = Vec::new();
    for index in sorted {
        let before = before.get(index).into_iter().flatten();
        let layer = before
            .filter_map(|before| layer_of.get(*before))
            .max()
            .map_or(0, |last: &usize| last + 1);
        if let Some(own) = layer_of.get_mut(index) {
            *own = layer;
        }
        match layers.get_mut(layer) {
            Some(layer) => layer.push(index),
            None => layers.push(vec![index]),
        }
    }
    for layer in &mut layers {
        layer.sort_unstable();
    }
    layers
}

#[cfg(test)]
mod tests;
