//! The secret store on Vault, by its KV engine of version 2.
