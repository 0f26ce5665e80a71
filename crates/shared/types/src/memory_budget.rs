//! A bound on the memory that clients' requests and responses take in the whole server.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;

use crate::{Code, Error};

/// Size in bytes up to which a request may use the last of the budget. Larger ones must leave an eighth of it, so that long
/// requests that fill the budget do not shut out short ones.
const SHORT: usize = 8 << 10;

/// The bytes that clients may make the server hold, over all connections and protocols. They are bodies that are read, decoded
/// requests, waiting requests, and responses that are not yet sent.
///
/// New work asks ([`MemoryReservation::try_grow`]) and is refused beyond the limit. Work in progress continues and is only
/// counted ([`MemoryReservation::grow`]), so that a full server finishes its work instead of failing it.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: AtomicUsize,
    used: AtomicUsize,
    refused: AtomicUsize,
}

impl MemoryBudget {
    /// Makes a budget of `limit` bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        let [limit, used, refused] = [limit, 0, 0].map(AtomicUsize::new);
        Arc::new(Self { limit, used, refused })
    }

    /// Makes a budget that never refuses.
    pub fn unlimited() -> Arc<Self> {
        Self::new(usize::MAX)
    }

    /// Returns the bytes that may be in use.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the bytes that may be in use, from the next reservation on.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Returns the bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the number of refusals since the start.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns whether more is in use than the limit allows: work in progress may grow beyond it.
    pub fn is_exceeded(&self) -> bool {
        self.used() > self.limit()
    }

    /// Makes an empty reservation.
    pub fn reservation(self: &Arc<Self>) -> MemoryReservation {
        MemoryReservation { budget: Some(self.clone()), bytes: 0 }
    }

    fn take(&self, bytes: usize) -> Result<(), OverBudget> {
        let limit = self.limit();
        let reach = if bytes <= SHORT { limit } else { limit - limit / 8 };
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        if bytes == 0 || before.checked_add(bytes).is_some_and(|used| used <= reach) {
            return Ok(());
        }
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(OverBudget { limit })
    }
}

/// The bytes of a [`MemoryBudget`] that a request or response holds; returned when it is dropped.
///
/// The default one belongs to no budget and holds nothing.
#[derive(Default)]
pub struct MemoryReservation {
    budget: Option<Arc<MemoryBudget>>,
    bytes: usize,
}

impl MemoryReservation {
    /// Makes an empty reservation of the same budget.
    pub fn sibling(&self) -> Self {
        Self { budget: self.budget.clone(), bytes: 0 }
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes `bytes` more. If the budget does not have them, it changes nothing.
    pub fn try_grow(&mut self, bytes: usize) -> Result<(), OverBudget> {
        if let Some(budget) = &self.budget {
            budget.take(bytes)?;
            self.bytes += bytes;
        }
        Ok(())
    }

    /// Takes `bytes` more whether the budget has them or not: for work in progress.
    pub fn grow(&mut self, bytes: usize) {
        if let Some(budget) = &self.budget {
            // A sum that wraps would need more bytes than there are addresses.
            budget.used.fetch_add(bytes, Ordering::Relaxed);
            self.bytes += bytes;
        }
    }

    /// Makes a reservation of `bytes` of the same budget, for further work in progress.
    pub fn beside(&self, bytes: usize) -> Self {
        let mut beside = Self { budget: self.budget.clone(), bytes: 0 };
        beside.grow(bytes);
        beside
    }

    /// Returns all bytes but `bytes`; does nothing if it holds fewer.
    pub fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.bytes.saturating_sub(bytes);
        if let Some(budget) = &self.budget {
            budget.used.fetch_sub(surplus, Ordering::Relaxed);
        }
        self.bytes -= surplus;
    }

    /// Returns `bytes` with this reservation attached, until the last part of them is dropped.
    pub fn attach(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(CountedBytes { bytes, _memory: self })
    }

    /// Moves the bytes of `other`, of the same budget, to this reservation.
    pub fn merge(&mut self, mut other: MemoryReservation) {
        if self.budget.is_none() {
            std::mem::swap(self, &mut other);
        }
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

/// Bytes with the reservation that counts them.
struct CountedBytes {
    bytes: Bytes,
    _memory: MemoryReservation,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

impl fmt::Debug for MemoryReservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryReservation({} bytes)", self.bytes)
    }
}

/// The error of a budget without the requested bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the requests and responses in the server take all {limit} bytes of the memory budget; try again later, or allow \
     more with --memory-budget"
)]
pub struct OverBudget {
    /// Bytes of the whole budget.
    pub limit: usize,
}

impl From<OverBudget> for Error {
    fn from(error: OverBudget) -> Self {
        Self::new(Code::Exhausted, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_work_over_the_limit_is_refused_while_work_in_progress_continues() {
        let budget = MemoryBudget::new(100);
        let mut request = budget.reservation();
        request.try_grow(60).expect("fits");
        let mut other = budget.reservation();
        assert_eq!(other.try_grow(41), Err(OverBudget { limit: 100 }));
        assert_eq!((budget.used(), budget.refused(), other.bytes()), (60, 1, 0));
        other.grow(50);
        assert!(budget.is_exceeded());
        assert!(request.try_grow(usize::MAX).is_err());
        drop(request);
        assert_eq!(budget.used(), 50);
        drop(other);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn long_requests_leave_an_eighth_of_the_budget_to_short_ones() {
        let budget = MemoryBudget::new(80 << 10);
        let mut long = budget.reservation();
        assert!(long.try_grow(71 << 10).is_err());
        long.try_grow(70 << 10).expect("seven eighths");
        let mut short = budget.reservation();
        short.try_grow(8 << 10).expect("of the last eighth");
        long.grow(10 << 10);
        assert!(budget.is_exceeded() && short.try_grow(1).is_err());
        short.try_grow(0).expect("nothing is asked for");
    }

    #[test]
    fn a_reservation_shrinks_and_takes_over_another() {
        let budget = MemoryBudget::new(100);
        let mut request = MemoryReservation::default();
        request.grow(10);
        assert_eq!(request.bytes(), 0, "belongs to no budget");
        let mut body = budget.reservation();
        body.grow(30);
        request.merge(body);
        let mut decoded = budget.reservation();
        decoded.grow(12);
        request.merge(decoded);
        assert_eq!((request.bytes(), budget.used()), (42, 42));
        let beside = request.beside(8);
        assert_eq!((beside.bytes(), budget.used()), (8, 50));
        drop(beside);
        request.shrink_to(50);
        request.shrink_to(5);
        assert_eq!(budget.used(), 5);
        drop(request);
        assert_eq!(budget.used(), 0);
    }
}
