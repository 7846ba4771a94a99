//! What `wit-bindgen` makes of the contract.
//!
//! The types are re-exported at the crate's root under shorter names, with builders and accessors added to them.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]

wit_bindgen::generate!({
    world: "configurator",
    path: "wit",
    pub_export_macro: true,
    default_bindings_module: "configurator_sdk::bindings",
    generate_all,
    additional_derives: [PartialEq, Eq],
});
