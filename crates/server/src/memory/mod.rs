//! How much memory clients' requests may take in all: what the flag says, of what the machine has.

mod available;
mod size;

use std::sync::Arc;

use galatea_types::MemoryBudget;

pub use self::size::MemorySize;

/// Where the system does not say how much memory there is.
const ASSUMED: usize = 4 << 30;

/// The budget of the whole server, and a line about it in the log.
pub fn budget(size: MemorySize) -> Arc<MemoryBudget> {
    let available = available::available();
    let limit = size.of(available.unwrap_or(ASSUMED));
    let of = available.map_or_else(
        || "; how much memory there is cannot be read".to_owned(),
        |bytes| format!(" of {} that the machine and its control groups allow", mib(bytes)),
    );
    log::info!("Memory budget of requests and responses: {}{of} (--memory-budget)", mib(limit));
    MemoryBudget::new(limit)
}

fn mib(bytes: usize) -> String {
    format!("{} MiB", bytes >> 20)
}
