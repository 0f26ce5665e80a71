//! How much memory the reading of foreign bytes takes.

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Most memory that may be taken at a time for foreign bytes, beside the bytes themselves.
#[derive(Clone, Copy)]
pub struct Bound {
    /// For each of the bytes.
    pub per_byte: usize,
    /// However few there are.
    pub base: usize,
}

/// What `work` gives, which reads `length` foreign bytes. Panics when more memory was taken meanwhile than `bound`
/// allows, by any thread.
pub fn bounded<T>(length: usize, bound: Bound, work: impl FnOnce() -> T) -> T {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = work();
    let taken = ALLOCATOR.peak_usage().saturating_sub(before);
    let allowed = bound.base + bound.per_byte * length;
    assert!(taken <= allowed, "{length} bytes took {taken} bytes of memory; {allowed} are allowed");
    result
}
