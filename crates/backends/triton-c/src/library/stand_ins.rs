//! The stand-in libraries that are open in this process.

use std::{collections::BTreeMap, sync::Mutex};

use galatea_native_library::{MemoryLibrary, open_from_memory};
use galatea_types::{Error, LockExt as _, Result};

use super::stand_in::stand_in;
use crate::Offer;

/// Most stand-ins: the names come from files.
const MOST: usize = 64;
/// The name of the core in Triton's own builds. Libraries that other libraries need may name it too.
const CORE: &str = "libtritonserver.so";

static OPEN: Mutex<BTreeMap<String, MemoryLibrary>> = Mutex::new(BTreeMap::new());

/// Makes the functions of these offers known to libraries that are opened from now on, and the names of the core that `needed`
/// has. Each is done once.
///
/// # Errors
/// The reason of the system or the loader.
pub(super) fn prepare(needed: &[String], offers: &[&'static Offer]) -> Result<()> {
    let mut open = OPEN.lock_unpoisoned();
    for offer in offers {
        add(&mut open, offer.name, Some(offer))?;
    }
    let of_core = needed.iter().map(String::as_str).filter(|name| is_core(name));
    [CORE].into_iter().chain(of_core).try_for_each(|name| add(&mut open, name, None))
}

/// Returns true for the names of the core: `libtritonserver.so`, and those that tools for wheels make, such as
/// `libtritonserver-717102f0.so`.
fn is_core(name: &str) -> bool {
    name.strip_prefix("libtritonserver").is_some_and(|rest| {
        rest.starts_with(['.', '-']) && !rest.contains('/') && rest.contains(".so")
    })
}

fn add(
    open: &mut BTreeMap<String, MemoryLibrary>,
    name: &str,
    offer: Option<&'static Offer>,
) -> Result<()> {
    if open.contains_key(name) {
        return Ok(());
    }
    let failed = |reason: String| {
        Error::internal(format!("a stand-in for the library '{name}' cannot be made: {reason}"))
    };
    if open.len() >= MOST {
        return Err(failed(format!("there are {MOST} already")));
    }
    // Functions are found by libraries that do not name the core, so they are known to all.
    let library = open_from_memory(&stand_in(name, offer), offer.is_some()).map_err(failed)?;
    open.insert(name.to_owned(), library);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_core_are_recognised() {
        for name in ["libtritonserver.so", "libtritonserver-717102f0.so", "libtritonserver.so.2"] {
            assert!(is_core(name), "{name}");
        }
        for name in
            ["libtriton_python.so", "libtritonserverless.so", "libc.so.6", "libtritonserver-x"]
        {
            assert!(!is_core(name), "{name}");
        }
    }
}
