//! How handlers are called.

/// How handlers are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallMode {
    /// Several at a time, and off the task's thread when they last.
    #[default]
    Parallel,
    /// On the task's thread. For the simulator, where time must not pass while a handler runs.
    Inline,
}
