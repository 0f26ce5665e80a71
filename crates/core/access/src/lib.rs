//! Access control. A [`Policy`] names the known clients (by API keys, tokens of an issuer, certificates), and grants them
//! [`Role`]s for models. A [`Gate`] holds the current policy and decides.
//!
//! **Invariants.** Nothing here has a file, a socket or a clock: texts and the time are passed in. Credentials from clients are
//! in no error, no log line and no debug output. They are looked up by their SHA-256 and never compared.

#![warn(missing_docs)]

mod action;
mod api_key;
mod credentials;
mod digest;
mod gate;
mod grantee;
mod jwt;
mod pattern;
mod policy;
mod refusal;
mod role;

pub use action::Action;
pub use api_key::ApiKey;
pub use credentials::Credentials;
pub use digest::Digest;
pub use gate::Gate;
pub use grantee::Grantee;
pub use jwt::{JwtRules, KeySet, KeySetError, KeySource, MAX_KEY_SET, SigningAlgorithm};
pub use policy::{MAX_POLICY, Policy, PolicyError};
pub use refusal::{AccessError, AuthFailure, DENIED};
pub use role::Role;
