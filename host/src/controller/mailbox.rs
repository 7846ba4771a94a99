//! Messages for a task.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Messages for one task, which takes all of them at a time. Unlike a channel, it allocates nothing while it is empty: every Configurator has some
/// of these.
pub(super) struct Mailbox<T> {
    messages: Mutex<Vec<T>>,
    changed: Notify,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self {
            messages: Mutex::default(),
            changed: Notify::new(),
        }
    }
}

impl<T> Mailbox<T> {
    /// Adds a message.
    pub(super) fn post(&self, message: T) {
        self.messages().push(message);
        self.changed.notify_one();
    }

    /// Takes the messages that are there, in order.
    pub(super) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.messages())
    }

    /// Waits for messages. Dropping the future loses none.
    pub(super) async fn next(&self) -> Vec<T> {
        loop {
            let messages = self.take();
            if !messages.is_empty() {
                return messages;
            }
            self.changed.notified().await;
        }
    }

    fn messages(&self) -> MutexGuard<'_, Vec<T>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn messages_come_in_order_and_a_wait_that_is_dropped_loses_none() {
        let mailbox = Mailbox::default();
        assert!(mailbox.next().now_or_never().is_none());
        mailbox.post(1);
        mailbox.post(2);
        assert_eq!(mailbox.next().await, [1, 2]);
        assert!(mailbox.next().now_or_never().is_none());
    }
}
