//! What the server calls itself.

/// The name of the program.
pub const NAME: &str = "galatea";

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Name and version of the program in one, for people and logs of others.
pub const NAME_AND_VERSION: &str = concat!("galatea ", env!("CARGO_PKG_VERSION"));

/// The same in the form of the `Server:` header of HTTP.
pub const NAME_SLASH_VERSION: &str = concat!("galatea/", env!("CARGO_PKG_VERSION"));

/// The Triton version whose contract the server keeps, as its metadata reports it: clients and scripts decide by it
/// what they may ask for.
pub const CONTRACT_VERSION: &str = "2.74.0";
