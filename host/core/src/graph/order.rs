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
    dependencies: Neighbours,
    /// The nodes that depend on each node, in ascending order.
    dependents: Neighbours,
    /// Every node after those that it depends on.
    sorted: Vec<usize>,
}

/// The neighbours of every node, one after another in one list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Neighbours {
    /// The place after the last neighbour of each node.
    ends: Vec<usize>,
    nodes: Vec<usize>,
}

impl Neighbours {
    fn with_capacity(nodes: usize, neighbours: usize) -> Self {
        Self {
            ends: Vec::with_capacity(nodes),
            nodes: Vec::with_capacity(neighbours),
        }
    }

    /// Adds a node with these neighbours.
    fn push(&mut self, neighbours: &[usize]) {
        self.nodes.extend_from_slice(neighbours);
        self.ends.push(self.nodes.len());
    }

    /// The number of nodes.
    const fn len(&self) -> usize {
        self.ends.len()
    }

    fn of(&self, index: usize) -> &[usize] {
        let start = match index {
            0 => Some(0),
            _ => self.ends.get(index - 1).copied(),
        };
        let range = start.zip(self.ends.get(index).copied());
        let neighbours = range.and_then(|(start, end)| self.nodes.get(start..end));
        neighbours.unwrap_or_default()
    }

    fn iter(&self) -> impl Iterator<Item = &[usize]> {
        (0..self.len()).map(|index| self.of(index))
    }

    /// The nodes whose neighbour each node is. A neighbour that is no node is left out.
    fn reversed(&self) -> Self {
        let mut places = vec![0_usize; self.len()];
        for neighbour in &self.nodes {
            if let Some(number) = places.get_mut(*neighbour) {
                *number += 1;
            }
        }
        let mut end = 0;
        let mut ends = Vec::with_capacity(self.len());
        for place in &mut places {
            let start = end;
            end += *place;
            ends.push(end);
            *place = start;
        }
        let mut nodes = vec![0; end];
        for (index, neighbours) in self.iter().enumerate() {
            for neighbour in neighbours {
                let Some(place) = places.get_mut(*neighbour) else {
                    continue;
                };
                if let Some(node) = nodes.get_mut(*place) {
                    *node = index;
                }
                *place += 1;
            }
        }
        Self { ends, nodes }
    }
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
        let number = nodes.iter().map(|node| node.depends_on.len()).sum();
        let mut dependencies = Neighbours::with_capacity(nodes.len(), number);
        let mut own = Vec::new();
        for node in &nodes {
            own.clear();
            for name in node.depends_on {
                let index = indexes.get(name.as_str());
                own.push(*index.ok_or_else(|| OrderError::Unknown {
                    name: node.name.to_owned(),
                    dependency: name.clone(),
                })?);
            }
            own.sort_unstable();
            own.dedup();
            dependencies.push(&own);
        }
        Self::of_neighbours(dependencies).map_err(|path| OrderError::Cycle {
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
    pub fn of_indexes(dependencies: &[Vec<usize>]) -> Result<Self, Vec<usize>> {
        let number = dependencies.iter().map(Vec::len).sum();
        let mut neighbours = Neighbours::with_capacity(dependencies.len(), number);
        for own in dependencies {
            neighbours.push(own);
        }
        Self::of_neighbours(neighbours)
    }

    fn of_neighbours(dependencies: Neighbours) -> Result<Self, Vec<usize>> {
        let dependents = dependencies.reversed();
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
        self.dependencies.of(index)
    }

    /// The nodes that depend on a node, in ascending order.
    #[must_use]
    pub fn dependents(&self, index: usize) -> &[usize] {
        self.dependents.of(index)
    }

    /// The waves in which nodes can be made: each node as early as what it depends on allows.
    #[must_use]
    pub fn waves(&self) -> Vec<Vec<usize>> {
        waves(&self.wave_of_each())
    }

    /// The waves in which nodes can be deleted: each node as early as what depends on it allows.
    #[must_use]
    pub fn deletion_waves(&self) -> Vec<Vec<usize>> {
        waves(&self.deletion_wave_of_each())
    }

    /// The wave in which each node can be made.
    pub(super) fn wave_of_each(&self) -> Vec<u32> {
        layers(self.sorted.iter().copied(), &self.dependencies)
    }

    /// The wave in which each node can be deleted.
    pub(super) fn deletion_wave_of_each(&self) -> Vec<u32> {
        layers(self.sorted.iter().rev().copied(), &self.dependents)
    }
}

/// Puts the nodes in order. If several may come next, the one that was given first does. Nodes on a circle, or behind one, are left out.
fn sorted(dependencies: &Neighbours, dependents: &Neighbours) -> Vec<usize> {
    let mut missing: Vec<usize> = dependencies.iter().map(<[usize]>::len).collect();
    let free = missing
        .iter()
        .enumerate()
        .filter(|(_, missing)| **missing == 0);
    let mut free: BinaryHeap<Reverse<usize>> = free.map(|(index, _)| Reverse(index)).collect();
    let mut sorted = Vec::with_capacity(missing.len());
    while let Some(Reverse(index)) = free.pop() {
        sorted.push(index);
        for dependent in dependents.of(index) {
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
fn circle(dependencies: &Neighbours, sorted: &[usize]) -> Vec<usize> {
    let mut is_sorted = vec![false; dependencies.len()];
    for index in sorted {
        if let Some(is_sorted) = is_sorted.get_mut(*index) {
            *is_sorted = true;
        }
    }
    let is_left = |index: &usize| is_sorted.get(*index) == Some(&false);
    let next = |index: usize| {
        let mut own = dependencies.of(index).iter().copied();
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

/// The first layer of each node that is after those of all nodes that come `before` it; `sorted` names these first.
fn layers(sorted: impl Iterator<Item = usize>, before: &Neighbours) -> Vec<u32> {
    let mut layer_of = vec![0; before.len()];
    for index in sorted {
        let before = before.of(index).iter();
        let layer = before
            .filter_map(|before| layer_of.get(*before))
            .max()
            .map_or(0, |last: &u32| last.saturating_add(1));
        if let Some(own) = layer_of.get_mut(index) {
            *own = layer;
        }
    }
    layer_of
}

/// The nodes of each wave, in ascending order.
fn waves(wave_of_each: &[u32]) -> Vec<Vec<usize>> {
    let mut waves: Vec<Vec<usize>> = Vec::new();
    for (index, wave) in wave_of_each.iter().enumerate() {
        let wave = usize::try_from(*wave).unwrap_or(usize::MAX);
        if waves.len() <= wave {
            waves.resize_with(wave + 1, Vec::new);
        }
        if let Some(wave) = waves.get_mut(wave) {
            wave.push(index);
        }
    }
    waves
}

#[cfg(test)]
mod tests;
