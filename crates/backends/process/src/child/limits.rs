//! What a child does to itself before it reads anything foreign.

use std::io;

use galatea_types::{Error, Result};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Where memory runs out, the kernel is to end a child before the server: half of the range upward.
const OOM_SCORE: &str = "500";

/// Names the process, and makes it the first choice when memory runs out.
pub(super) fn mark_process() {
    galatea_system::mark_process("galatea-model", OOM_SCORE);
}

/// From now on the process may not have more than this many bytes of data.
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
