//! Machines: an object moves from phase to phase, and in each one a tree of handlers does the work.
//!
//! [`apply`](apply::apply) is the whole of it: a [`State`](state::State), an [`Event`](event::Event) and a time give the next
//! state and [`Action`](action::Action)s. The state is all that is kept, so whoever has stored it can go on after a crash, or on
//! another machine. Nothing here knows of Kubernetes.
//!
//! - A *phase* is active, stable or terminal. An active one has a tree; when it is done, or has failed for good, another phase follows.
//! - A *leaf* of the tree is a handler. In a `serial` node the children have their turns one after another, in a `parallel` one all
//!   at once; a `flow` is a serial node with a name and rules of its own.
//! - What a composite node has come to is derived: done when all are; failed, and fatal, when any is.
//! - What is done is not entered again. What failed is tried again, unless that is fatal; meanwhile what goes on beside it is called off.
//! - A leaf that waits takes no more than its state.

pub mod action;
pub mod apply;
pub mod command;
pub mod event;
pub mod memento;
pub mod phase;
pub mod state;
pub mod tree;

#[cfg(test)]
mod tests;
