//! The clock that only goes forward, as a number.

/// Returns the nanoseconds of the system's clock that only goes forward, which C programs read as `CLOCK_MONOTONIC`.
pub fn monotonic_nanoseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the result. The call cannot fail: every Unix has the clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_only_goes_forward() {
        let first = monotonic_nanoseconds();
        assert!(first > 0 && monotonic_nanoseconds() >= first);
    }
}
