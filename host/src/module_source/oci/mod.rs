//! Modules that are OCI artifacts in registries, as the CNCF's Wasm artifact format has them:
//! <https://tag-runtime.cncf.io/wgs/wasm/deliverables/wasm-oci-artifact/>.

mod access;
mod artifact;
mod authority;
mod challenge;
mod client;
mod login;
mod refusal;
mod signature;
mod source;
mod transport;

pub use self::artifact::{About, Artifact};
pub use self::authority::{Authority, AuthorityError};
pub use self::client::{Registry, RegistryError, RegistryOptions, repository};
pub use self::login::{Login, LoginError};
pub use self::signature::{KeyError, Signature, Signer, SigningKey, is_signed};
pub use self::source::Registries;
/// A name in a registry: `ghcr.io/team/greeter:1.2`, or with `@sha256:…`.
pub use oci_client::Reference;
