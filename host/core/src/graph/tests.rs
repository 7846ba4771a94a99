//! Sets against a small server, action by action.

mod histories;
mod server;
mod sets;
