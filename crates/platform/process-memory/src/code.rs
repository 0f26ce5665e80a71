//! Releases program code that was needed once. Much of a program's and its libraries' code runs only at the start, and stays
//! mapped afterwards.

use std::{ffi::c_void, fs, ops::Range};

/// Removes the code of program files from this process's memory. Code that runs again is read from the system's cache of
/// files, some microseconds for 64 KiB. The rest no longer counts for this process, and the system may reuse its memory.
/// Takes milliseconds, in which no library is opened or closed.
///
/// Code that was changed in memory stays: by a debugger, or by relocations in a library's code.
pub fn release_code() {
    while_libraries_stay(|_| {
        // Files may have names in any encoding.
        let mappings = fs::read("/proc/self/smaps").unwrap_or_default();
        for range in code_of(&String::from_utf8_lossy(&mappings)) {
            let start = std::ptr::with_exposed_provenance_mut(range.start);
            // SAFETY: the range is a private mapping of a file that may be executed but not written, and no page of it was
            // changed: whoever reads or executes it next gets the same bytes, from the file. Libraries are not unmapped
            // meanwhile, and nothing but them maps files to execute them.
            unsafe { libc::madvise(start, range.len(), libc::MADV_DONTNEED) };
        }
    });
}

/// Returns how many libraries this process has opened since it began.
pub fn opened_libraries() -> u64 {
    let mut count = 0;
    while_libraries_stay(|opened| count = opened);
    count
}

/// Calls `act` with the number of libraries opened so far. None can be closed or opened meanwhile: the C library's list of
/// them is locked.
fn while_libraries_stay(mut act: impl FnMut(u64)) {
    let mut act: &mut dyn FnMut(u64) = &mut act;
    // SAFETY: the callback is called while this call runs, with the pointer that it is given here.
    unsafe { libc::dl_iterate_phdr(Some(at_first_library), (&raw mut act).cast()) };
}

/// Handles the first library, which is enough: each one has the total number.
unsafe extern "C" fn at_first_library(
    library: *mut libc::dl_phdr_info,
    size: usize,
    act: *mut c_void,
) -> libc::c_int {
    if size >= size_of::<libc::dl_phdr_info>() {
        // SAFETY: the C library gives a description of this size, and the pointer that `while_libraries_stay` gave it.
        unsafe { (*act.cast::<&mut dyn FnMut(u64)>())((*library).dlpi_adds) };
    }
    1
}

/// Returns the code ranges of files, from `/proc/self/smaps`: mappings `r-xp` with an inode and no changed page.
fn code_of(smaps: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut current = None;
    for line in smaps.lines() {
        if let Some(mapping) = Mapping::parse(line) {
            current = mapping.is_code.then_some(mapping.range);
        } else if line.split_whitespace().eq(["Anonymous:", "0", "kB"]) {
            found.extend(current.take());
        }
    }
    found
}

/// The first line about a mapping in `smaps`.
struct Mapping {
    range: Range<usize>,
    is_code: bool,
}

impl Mapping {
    /// Parses a line. Returns `None` if it is one of the figures.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let range = address(start)?..address(end)?;
        let (access, inode) = (fields.next()?, fields.nth(2)?);
        Some(Self { range, is_code: access == "r-xp" && inode != "0" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unmodified_file_mappings_are_code() {
        let smaps = "\
55d0c0000000-55d0c0100000 r--p 00000000 fe:00 11 /usr/bin/a program
Rss:                 512 kB
Anonymous:             0 kB
55d0c0100000-55d0c0200000 r-xp 00100000 fe:00 11 /usr/bin/a program
Rss:                 512 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
55d0c0200000-55d0c0300000 r-xp 00000000 fe:00 12 /usr/lib/a library with a breakpoint
Anonymous:             4 kB
55d0c0300000-55d0c0400000 r-xp 00000000 00:00 0
Anonymous:             0 kB
55d0c0400000-55d0c0500000 r-xs 00000000 fe:00 13 /shared
Anonymous:             0 kB
55d0c0500000-55d0c0600000 rwxp 00000000 fe:00 14 /written
Anonymous:             0 kB
";
        let program = 0x55d0_c010_0000..0x55d0_c020_0000;
        assert_eq!(code_of(smaps), std::slice::from_ref(&program));
    }

    /// The test releases the code of this program; tests that run beside it continue.
    #[test]
    fn released_code_is_read_again_on_use() {
        let code = || -> usize {
            let smaps = fs::read_to_string("/proc/self/smaps").expect("readable");
            let mut is_code = false;
            let resident = smaps.lines().filter_map(|line| match Mapping::parse(line) {
                Some(mapping) => {
                    is_code = mapping.is_code;
                    None
                }
                None => line.strip_prefix("Rss:").filter(|_| is_code),
            });
            let kib = |text: &str| text.trim().strip_suffix(" kB")?.parse::<usize>().ok();
            resident.filter_map(kib).sum()
        };
        let before = code();
        release_code();
        let after = code();
        assert!(after < before, "{after} of {before} KiB");
        let text: Vec<String> = (0..1000).map(|number| format!("{number:x}")).collect();
        assert_eq!(text[255], "ff", "what runs next is as it was");
    }

    #[test]
    fn libraries_are_counted() {
        let opened = opened_libraries();
        assert!(opened > 1, "the C library at least");
        assert_eq!(opened_libraries(), opened);
    }
}
