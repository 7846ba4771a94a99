/// Limits of a store in a file.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Bytes of the file kept in memory. Default 8 MiB.
    pub cache_bytes: usize,
    /// Transactions that may wait for their turn; more wait for a place. Default 1024.
    pub queue_length: usize,
    /// Transactions that share one flush to the disk at most. Default 512.
    pub group_length: usize,
    /// Percent of the file that may be free. Beyond it the file is compacted: when it is opened, and while it is open when the writer has
    /// nothing else to do and no reader is there. At 100 it is never compacted. Default 50.
    pub free_percent: u8,
    /// Bytes in use at most for a file to be compacted while it is open, since readers and writers wait meanwhile. A file in which more is in
    /// use is compacted only when it is opened. Default 64 MiB, which takes less than a second on an ordinary disk.
    pub compact_open_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 8 << 20,
            queue_length: 1024,
            group_length: 512,
            free_percent: 50,
            compact_open_bytes: 64 << 20,
        }
    }
}
