//! The memory limit of a child.

use std::io;

use galatea_types::{Error, Result};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Limits the data of this process to this many bytes.
pub(super) fn limit_memory(bytes: Option<u64>) -> Result<()> {
    if bytes.is_none() {
        return Ok(());
    }
    let limit = Rlimit { current: bytes, maximum: bytes };
    setrlimit(Resource::Data, limit).map_err(|error| {
        let error = io::Error::from(error);
        Error::unavailable(format!("the memory of the process cannot be limited: {error}"))
    })
}
