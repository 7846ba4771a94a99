/// Limits of a store in a file.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Bytes of the file kept in memory. Default 8 MiB.
    pub cache_bytes: usize,
    /// Transactions that may wait for their turn; more wait for a place. Default 1024.
    pub queue_length: usize,
    /// Transactions that share one flush to the disk at most. Default 512.
    pub group_length: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 8 << 20,
            queue_length: 1024,
            group_length: 512,
        }
    }
}
