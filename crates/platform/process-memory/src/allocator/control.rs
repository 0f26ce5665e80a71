//! jemalloc's numbers and commands, by the names in its manual.

use std::{
    ffi::{CStr, c_uint},
    ptr,
};

use tikv_jemalloc_sys::{mallctl, mallctlbymib, mallctlnametomib};

/// Returns the number of a block's arena, or `None` if the block is not one of jemalloc's.
pub(super) fn arena_of(block: *mut u8) -> Option<c_uint> {
    let (mut arena, mut size) = (c_uint::MAX, size_of::<c_uint>());
    let mut block = block;
    // SAFETY: takes the address of a pointer, and writes a number of the size told; a block of another allocator, or none,
    // is refused.
    let error = unsafe {
        mallctl(
            c"arenas.lookup".as_ptr(),
            (&raw mut arena).cast(),
            &raw mut size,
            (&raw mut block).cast(),
            size_of::<*mut u8>(),
        )
    };
    (error == 0).then_some(arena)
}

/// Returns the bytes of an arena's free pages that were not given back yet.
pub(super) fn free_bytes(arena: c_uint) -> Option<usize> {
    refresh();
    let page = read(&number_of::<2>(c"arenas.page")?)?;
    let mut name: [usize; 4] = number_of(c"stats.arenas.0.pdirty")?;
    name[2] = arena.try_into().ok()?;
    read(&name)?.checked_mul(page)
}

/// Gives an arena's free pages back to the system. Returns false if there is no such arena.
pub(super) fn purge(arena: c_uint) -> bool {
    let Some(mut name) = number_of::<3>(c"arena.0.purge") else { return false };
    let Ok(arena) = arena.try_into() else { return false };
    name[1] = arena;
    // SAFETY: this one neither reads nor writes.
    let error = unsafe {
        mallctlbymib(
            name.as_ptr(),
            name.len(),
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            0,
        )
    };
    error == 0
}

/// Updates the numbers below `stats`, which are as old as the last such call.
fn refresh() {
    let mut any = 1_u64;
    // SAFETY: reads a number of the size told.
    unsafe {
        let any = (&raw mut any).cast();
        mallctl(c"epoch".as_ptr(), ptr::null_mut(), ptr::null_mut(), any, size_of::<u64>());
    }
}

/// Returns the numbers of a name with `PARTS` parts. Those that stand for an arena can be replaced.
fn number_of<const PARTS: usize>(name: &CStr) -> Option<[usize; PARTS]> {
    let (mut numbers, mut length) = ([0; PARTS], PARTS);
    // SAFETY: writes at most so many numbers as told.
    let error = unsafe { mallctlnametomib(name.as_ptr(), numbers.as_mut_ptr(), &raw mut length) };
    (error == 0 && length == PARTS).then_some(numbers)
}

/// Reads a number that is as long as a pointer.
fn read<const PARTS: usize>(name: &[usize; PARTS]) -> Option<usize> {
    let (mut value, mut size) = (0_usize, size_of::<usize>());
    // SAFETY: writes a number of the size told.
    let error = unsafe {
        let value = (&raw mut value).cast();
        mallctlbymib(name.as_ptr(), PARTS, value, &raw mut size, ptr::null_mut(), 0)
    };
    (error == 0).then_some(value)
}
