//! What the server does for a worker while its model runs.

pub(crate) mod bls;
pub(crate) mod server_calls;
