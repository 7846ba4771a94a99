//! One crash-safe file, or memory, under the embedded stores
