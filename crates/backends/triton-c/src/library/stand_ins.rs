//! The stand-in libraries that are open in this process.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write as _},
    os::fd::AsRawFd as _,
    sync::Mutex,
};

use galatea_native_library::{Handle, reason};
use galatea_types::{Error, LockExt as _, Result};
use libloading::os::unix::{RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use rustix::fs::MemfdFlags;

use super::stand_in::stand_in;
use crate::Offer;

/// Most stand-ins: the names come from files.
const MOST: usize = 64;
/// The name of the core in Triton's own builds. Libraries that other libraries need may name it too.
const CORE: &str = "libtritonserver.so";

/// A stand-in, which stays open. So does its file: the loader takes a file with the same path for the same library.
struct StandIn {
    _file: File,
    _handle: Handle,
}

static OPEN: Mutex<BTreeMap<String, StandIn>> = Mutex::new(BTreeMap::new());

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
    open: &mut BTreeMap<String, StandIn>,
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
    let file = in_memory(&stand_in(name, offer)).map_err(|error| failed(error.to_string()))?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // Functions are found by libraries that do not name the core, so they are known to all.
    let scope = if offer.is_some() { RTLD_GLOBAL } else { RTLD_LOCAL };
    // SAFETY: the file has no code.
    let handle = unsafe { Handle::open(Some(path), RTLD_NOW | scope) }
        .map_err(|error| failed(reason(&error)))?;
    open.insert(name.to_owned(), StandIn { _file: file, _handle: handle });
    Ok(())
}

fn in_memory(content: &[u8]) -> io::Result<File> {
    let mut file: File = rustix::fs::memfd_create("galatea-stand-in", MemfdFlags::CLOEXEC)?.into();
    file.write_all(content)?;
    Ok(file)
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
