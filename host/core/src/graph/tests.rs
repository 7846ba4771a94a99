//! Sets against a small server, action by action.

mod histories;
mod members;
mod published;
mod server;
mod sets;
