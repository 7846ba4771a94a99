//! The object graph: the objects that an owner is to have, and the order in which the host creates, updates and deletes them.
//!
//! [`Graph`] holds the entries of a desired set. [`plan::plan`] compares it with the [`Inventory`](member::Inventory) and with what was
//! observed, and returns the actions that may run now, side by side. [`deletion::delete`] does the same for an owner that goes; it needs no
//! graph. Both are pure functions: the host executes the actions, observes again and calls them again. Every action is safe to repeat, so a
//! host that stops between any two of them loses nothing.

mod contradiction;
pub mod deletion;
pub mod entry;
mod explain;
pub mod health;
pub mod member;
pub mod members;
pub mod object;
pub mod observation;
pub mod order;
pub mod plan;
pub mod removal;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use entry::{Entry, Orders, Provides};
use member::{MemberFacts, MemberKey};
use order::{Node, Order, OrderError};

/// The most dependencies of one graph, those that orders and the host add included.
pub const MAX_DEPENDENCIES: usize = 1_000_000;

/// A valid set of entries: names and members are unique, every dependency exists, and no order has a cycle.
#[derive(Debug, Clone)]
pub struct Graph {
    /// Tells this graph, with its clones, from every other one.
    identity: Arc<()>,
    entries: Vec<Entry>,
    /// Each entry after those that it depends on.
    depends_on: Order,
    /// Each entry after those that must be ready before it is created, where an order replaces dependencies.
    provision: Option<Order>,
    /// Each entry after those that must be ready before it is updated, where an order replaces dependencies.
    update: Option<Order>,
    /// The wave in which the member of each entry is deleted.
    waves: Vec<u32>,
    /// The groups and kinds whose definitions are entries.
    kinds: HashSet<(String, String)>,
}

/// The reason that entries form no graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphError {
    /// Names or dependencies are wrong.
    Order(OrderError),
    /// Two entries describe the same member.
    SameMember {
        /// The name of the first entry.
        first: String,
        /// The name of the second entry.
        second: String,
        /// The member.
        key: Box<MemberKey>,
    },
    /// An order names an entry that does not exist.
    UnknownInOrder {
        /// `provision`, `update` or `terminate`.
        order: &'static str,
        /// The name.
        name: String,
    },
    /// An order names an entry twice.
    TwiceInOrder {
        /// `provision`, `update` or `terminate`.
        order: &'static str,
        /// The name.
        name: String,
    },
    /// An order and the dependencies outside it form a cycle.
    CycleInOrder {
        /// `provision`, `update` or `terminate`.
        order: &'static str,
        /// Each comes after the next, and the last after the first.
        path: Vec<String>,
    },
    /// There are more than [`MAX_DEPENDENCIES`].
    TooManyDependencies,
}

impl std::error::Error for GraphError {}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order(error) => error.fmt(f),
            Self::SameMember { first, second, key } => {
                write!(
                    f,
                    "the entries {first:?} and {second:?} both describe {key}"
                )
            }
            Self::UnknownInOrder { order, name } => {
                write!(
                    f,
                    "the order `{order}` names {name:?}, and no entry has that name"
                )
            }
            Self::TwiceInOrder { order, name } => {
                write!(f, "the order `{order}` names {name:?} twice")
            }
            Self::CycleInOrder { order, path } => {
                write!(
                    f,
                    "the order `{order}` contradicts the dependencies of entries outside it: "
                )?;
                order::write_cycle(f, path)
            }
            Self::TooManyDependencies => write!(
                f,
                "the entries have more than {MAX_DEPENDENCIES} dependencies; declare fewer, or put fewer entries into the groups of an order"
            ),
        }
    }
}

impl Graph {
    /// Checks entries and orders them. The time is linear in entries and dependencies but for a logarithm.
    ///
    /// Beside the declared dependencies, an object depends on the CustomResourceDefinition of its kind and on its Namespace where they are
    /// entries too.
    ///
    /// # Errors
    /// The first error found: names, members, dependencies and their cycles, then orders.
    pub fn new(entries: Vec<Entry>, orders: &Orders) -> Result<Self, GraphError> {
        let declared: usize = entries.iter().map(|entry| entry.depends_on.len()).sum();
        if declared > MAX_DEPENDENCIES {
            return Err(GraphError::TooManyDependencies);
        }
        // Finds wrong names, and cycles of declared dependencies. The host adds its own dependencies afterwards.
        let nodes = entries.iter().map(|entry| Node {
            name: &entry.name,
            depends_on: &entry.depends_on,
        });
        let declared = Order::of(nodes).map_err(GraphError::Order)?;
        let mut indexes: HashMap<&MemberKey, usize> = HashMap::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            if let Some(first) = indexes.insert(&entry.key, index) {
                return Err(GraphError::SameMember {
                    first: name_of(&entries, first),
                    second: entry.name.clone(),
                    key: Box::new(entry.key.clone()),
                });
            }
        }
        let providers = Providers::of(&entries);
        let depends_on = if providers.is_empty() {
            declared
        } else {
            let dependencies = with_providers(&entries, &providers, &declared);
            Order::of_indexes(&dependencies).map_err(|path| {
                GraphError::Order(OrderError::Cycle {
                    path: names_of(&entries, &path),
                })
            })?
        };
        let names: HashMap<&str, usize> = match orders.is_empty() {
            true => HashMap::new(),
            false => (entries.iter().enumerate())
                .map(|(index, entry)| (entry.name.as_str(), index))
                .collect(),
        };
        let ordered = |order, groups: &[Vec<String>], base: &dyn Fn(usize) -> Vec<usize>| {
            if groups.is_empty() {
                return Ok(None);
            }
            let base = (0..entries.len()).map(base).collect();
            let dependencies = with_groups(base, groups, &names, order)?;
            let ordered = Order::of_indexes(&dependencies);
            ordered.map(Some).map_err(|path| GraphError::CycleInOrder {
                order,
                path: names_of(&entries, &path),
            })
        };
        let before = |index| depends_on.dependencies(index).to_vec();
        let after = |index| depends_on.dependents(index).to_vec();
        let provision = ordered("provision", &orders.provision, &before)?;
        let update = ordered("update", &orders.update, &before)?;
        let terminate = ordered("terminate", &orders.terminate, &after)?;
        let waves = match terminate {
            None => depends_on.deletion_wave_of_each(),
            Some(order) => order.wave_of_each(),
        };
        let kinds = (entries.iter())
            .filter_map(|entry| match &entry.provides {
                Some(Provides::Kind { group, kind }) => Some((group.clone(), kind.clone())),
                _ => None,
            })
            .collect();
        Ok(Self {
            identity: Arc::default(),
            entries,
            depends_on,
            provision,
            update,
            waves,
            kinds,
        })
    }

    /// The entries, in the order in which they were given.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The order in which entries are created.
    #[must_use]
    pub fn provision(&self) -> &Order {
        self.provision.as_ref().unwrap_or(&self.depends_on)
    }

    /// The order in which entries are updated.
    #[must_use]
    pub fn update(&self) -> &Order {
        self.update.as_ref().unwrap_or(&self.depends_on)
    }

    /// Whether the orders of creation and of updates can differ.
    pub(crate) const fn has_orders(&self) -> bool {
        self.provision.is_some() || self.update.is_some()
    }

    /// Returns the facts that the inventory records of an entry.
    #[must_use]
    pub fn facts(&self, index: usize) -> Option<MemberFacts> {
        let entry = self.entries.get(index)?;
        Some(MemberFacts {
            entry: entry.name.clone(),
            wave: self.waves.get(index).copied(),
            on_delete: entry.on_delete,
        })
    }

    /// Whether these are the facts of an entry.
    pub(crate) fn has_facts(&self, index: usize, facts: &MemberFacts) -> bool {
        let wave = self.waves.get(index).copied();
        self.entries.get(index).is_some_and(|entry| {
            entry.name == facts.entry && wave == facts.wave && entry.on_delete == facts.on_delete
        })
    }

    /// Whether the definition of a member's kind is an entry.
    pub(crate) fn provides_kind_of(&self, key: &MemberKey) -> bool {
        match key {
            MemberKey::Kubernetes { group, kind, .. } => {
                self.kinds.contains(&(group.clone(), kind.clone()))
            }
            MemberKey::Config { .. } | MemberKey::Secret { .. } => false,
        }
    }
}

fn name_of(entries: &[Entry], index: usize) -> String {
    entries
        .get(index)
        .map_or_else(String::new, |entry| entry.name.clone())
}

fn names_of(entries: &[Entry], path: &[usize]) -> Vec<String> {
    path.iter().map(|index| name_of(entries, *index)).collect()
}

/// The entries that others need before the server accepts them.
#[derive(Default)]
struct Providers<'e> {
    /// By the group and the kind that each defines.
    definitions: HashMap<(&'e str, &'e str), usize>,
    namespaces: HashMap<&'e str, usize>,
}

impl<'e> Providers<'e> {
    fn of(entries: &'e [Entry]) -> Self {
        let mut providers = Self::default();
        for (index, entry) in entries.iter().enumerate() {
            match &entry.provides {
                Some(Provides::Kind { group, kind }) => {
                    let definitions = &mut providers.definitions;
                    definitions.entry((group, kind)).or_insert(index);
                }
                Some(Provides::Namespace(name)) => {
                    providers.namespaces.entry(name).or_insert(index);
                }
                None => {}
            }
        }
        providers
    }

    fn is_empty(&self) -> bool {
        self.definitions.is_empty() && self.namespaces.is_empty()
    }

    /// Returns the entries with the definition and the Namespace that a member needs.
    fn needed_by(&self, key: &MemberKey) -> [Option<usize>; 2] {
        let MemberKey::Kubernetes {
            group,
            kind,
            namespace,
            ..
        } = key
        else {
            return [None, None];
        };
        [
            self.definitions.get(&(&**group, &**kind)).copied(),
            self.namespaces.get(&**namespace).copied(),
        ]
    }
}

/// Adds the definitions and Namespaces that entries need to what they depend on.
fn with_providers(
    entries: &[Entry],
    providers: &Providers<'_>,
    declared: &Order,
) -> Vec<Vec<usize>> {
    (entries.iter().enumerate())
        .map(|(index, entry)| {
            let mut own = declared.dependencies(index).to_vec();
            let needed = providers.needed_by(&entry.key).into_iter().flatten();
            own.extend(needed.filter(|provider| *provider != index));
            own.sort_unstable();
            own.dedup();
            own
        })
        .collect()
}

/// Replaces the dependencies between the entries that an order names by those of the order: each group comes after the one before it.
fn with_groups(
    mut base: Vec<Vec<usize>>,
    groups: &[Vec<String>],
    names: &HashMap<&str, usize>,
    order: &'static str,
) -> Result<Vec<Vec<usize>>, GraphError> {
    let mut is_named = vec![false; base.len()];
    let mut resolved: Vec<Vec<usize>> = Vec::with_capacity(groups.len());
    for group in groups.iter().filter(|group| !group.is_empty()) {
        let mut indexes = Vec::with_capacity(group.len());
        for name in group {
            let index = *names
                .get(name.as_str())
                .ok_or_else(|| GraphError::UnknownInOrder {
                    order,
                    name: name.clone(),
                })?;
            match is_named.get_mut(index) {
                Some(is_named) if !*is_named => *is_named = true,
                _ => {
                    return Err(GraphError::TwiceInOrder {
                        order,
                        name: name.clone(),
                    });
                }
            }
            indexes.push(index);
        }
        resolved.push(indexes);
    }
    let is_named = |index: usize| is_named.get(index) == Some(&true);
    for (index, own) in base.iter_mut().enumerate() {
        if is_named(index) {
            own.retain(|dependency| !is_named(*dependency));
        }
    }
    let mut left = MAX_DEPENDENCIES;
    for (before, after) in resolved.iter().zip(resolved.iter().skip(1)) {
        left = (before.len().checked_mul(after.len()))
            .and_then(|added| left.checked_sub(added))
            .ok_or(GraphError::TooManyDependencies)?;
        for index in after {
            if let Some(own) = base.get_mut(*index) {
                own.extend(before);
            }
        }
    }
    for own in &mut base {
        own.sort_unstable();
    }
    Ok(base)
}
