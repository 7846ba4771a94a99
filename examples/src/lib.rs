//! Examples of embedding the host: `embed.rs` and `demo.rs`, beside this folder.
