//! The object graph: what an owner is to have, and in which order.

pub mod order;
