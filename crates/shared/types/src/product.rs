//! The names and versions of the server.

/// The name of the program.
pub const NAME: &str = "galatea";

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Name and version of the program, for people and logs.
pub const NAME_AND_VERSION: &str = concat!("galatea ", env!("CARGO_PKG_VERSION"));

/// Name and version in the form of the `Server:` header of HTTP.
pub const NAME_SLASH_VERSION: &str = concat!("galatea/", env!("CARGO_PKG_VERSION"));

/// The Triton version that the server is compatible with, as its metadata reports it. Clients and scripts use it to decide what
/// they may ask for.
pub const CONTRACT_VERSION: &str = "2.74.0";
