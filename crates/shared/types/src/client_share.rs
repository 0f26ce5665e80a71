//! Limits on the requests of a client, and their use.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The limits on requests in progress; `usize::MAX` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareLimits {
    /// Number of requests.
    pub requests: usize,
    /// Bytes of their bodies or messages.
    pub bytes: usize,
}

impl ShareLimits {
    /// No limit.
    pub const NONE: Self = Self { requests: usize::MAX, bytes: usize::MAX };
}

/// The requests in progress of a client or a connection.
#[derive(Debug)]
pub struct ClientAccount {
    limits: ShareLimits,
    requests: AtomicUsize,
    bytes: AtomicUsize,
}

/// The error of a request that exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverShare {
    /// The limit on requests.
    Requests(usize),
    /// The limit on bytes.
    Bytes(usize),
}

impl ClientAccount {
    /// Makes an account without requests.
    pub fn new(limits: ShareLimits) -> Arc<Self> {
        let (requests, bytes) = Default::default();
        Arc::new(Self { limits, requests, bytes })
    }

    /// Adds a request of `bytes` bytes, until the returned share is dropped.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Result<ClientShare, OverShare> {
        take(&self.requests, 1, self.limits.requests).map_err(OverShare::Requests)?;
        let mut share = ClientShare { account: self.clone(), bytes: 0, beside: None };
        share.grow(bytes)?;
        Ok(share)
    }

    /// Returns whether no request is in progress.
    pub fn is_idle(&self) -> bool {
        self.requests.load(Relaxed) == 0
    }
}

/// Adds `more` if the sum is within `limit`. Otherwise it changes nothing, and the error is the limit.
fn take(taken: &AtomicUsize, more: usize, limit: usize) -> Result<(), usize> {
    let before = taken.fetch_add(more, Relaxed);
    if before.checked_add(more).is_some_and(|sum| sum <= limit) {
        return Ok(());
    }
    taken.fetch_sub(more, Relaxed);
    Err(limit)
}

/// The share of a request in its accounts; returned when it is dropped.
#[derive(Debug)]
pub struct ClientShare {
    account: Arc<ClientAccount>,
    bytes: usize,
    beside: Option<Box<ClientShare>>,
}

impl ClientShare {
    /// Adds a second account that the request counts to.
    pub fn and(mut self, other: ClientShare) -> Self {
        self.beside = Some(Box::new(other));
        self
    }

    /// Adds bytes to a request that became longer.
    pub fn grow(&mut self, bytes: usize) -> Result<(), OverShare> {
        take(&self.account.bytes, bytes, self.account.limits.bytes).map_err(OverShare::Bytes)?;
        self.bytes += bytes;
        self.beside.as_mut().map_or(Ok(()), |beside| beside.grow(bytes))
    }
}

impl Drop for ClientShare {
    fn drop(&mut self) {
        self.account.requests.fetch_sub(1, Relaxed);
        self.account.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_uses_its_share_until_dropped_and_nothing_if_refused() {
        let client = ClientAccount::new(ShareLimits { requests: 2, bytes: 100 });
        let connection = ClientAccount::new(ShareLimits { requests: 1, bytes: usize::MAX });
        let first = client.take(60).expect("fits").and(connection.take(60).expect("fits"));
        assert_eq!(client.take(41).map(drop), Err(OverShare::Bytes(100)));
        assert_eq!(connection.take(0).map(drop), Err(OverShare::Requests(1)));
        let mut second = client.take(40).expect("fits");
        assert_eq!(client.take(0).map(drop), Err(OverShare::Requests(2)));
        assert_eq!(second.grow(1), Err(OverShare::Bytes(100)));
        drop(first);
        assert!(connection.is_idle() && !client.is_idle());
        assert_eq!(second.grow(60), Ok(()));
        assert_eq!(second.grow(usize::MAX), Err(OverShare::Bytes(100)));
        drop(second);
        assert!(client.is_idle());
        assert!(client.take(100).is_ok());
    }
}
