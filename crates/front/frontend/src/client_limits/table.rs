//! The table of clients. Its size is bounded: a client without requests in progress and with a full rate is forgotten.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use galatea_types::{ClientAccount, LockExt, ShareLimits};

use super::token_bucket::{RequestRate, TokenBucket};
use crate::client::Peer;

/// The number of parts of the table. Each has its own lock.
const PARTS: usize = 16;
/// The most clients in one part. All clients beyond them share one account.
const MOST: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Identity(u64),
    Ip4([u8; 4]),
    /// The /64 network of an IPv6 address, because one client has all its addresses.
    Ip6([u8; 8]),
    Unix,
}

impl Key {
    fn of(peer: Peer, identity: Option<u64>) -> Self {
        match (identity, peer) {
            (Some(key), _) => Self::Identity(key),
            (None, Peer::Unix) => Self::Unix,
            (None, Peer::Tcp(address)) => Self::of_address(address),
        }
    }

    fn of_address(address: SocketAddr) -> Self {
        match address.ip().to_canonical() {
            IpAddr::V4(address) => Self::Ip4(address.octets()),
            IpAddr::V6(address) => {
                let mut network = [0; 8];
                network.copy_from_slice(&address.octets()[..8]);
                Self::Ip6(network)
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct OneClient {
    pub account: Arc<ClientAccount>,
    rate: Option<(RequestRate, Mutex<TokenBucket>)>,
}

impl OneClient {
    fn new(limits: ShareLimits, rate: Option<RequestRate>) -> Arc<Self> {
        let rate = rate.map(|rate| (rate, Mutex::new(TokenBucket::full(rate))));
        Arc::new(Self { account: ClientAccount::new(limits), rate })
    }

    /// Counts a request against the rate. The error is the time until the next request is allowed.
    pub fn pass(&self, now: Instant) -> Result<(), Duration> {
        match &self.rate {
            None => Ok(()),
            Some((rate, bucket)) => bucket.lock_unpoisoned().take(*rate, now),
        }
    }

    /// Returns `true` if a new client in its place would behave the same.
    fn can_be_forgotten(self: &Arc<Self>, now: Instant) -> bool {
        let is_rested = |(rate, bucket): &(RequestRate, Mutex<TokenBucket>)| {
            bucket.lock_unpoisoned().is_full(*rate, now)
        };
        Arc::strong_count(self) == 1
            && self.account.is_idle()
            && self.rate.as_ref().is_none_or(is_rested)
    }
}

#[derive(Debug)]
pub(super) struct Accounts {
    limits: ShareLimits,
    rate: Option<RequestRate>,
    hasher: RandomState,
    parts: [Mutex<HashMap<Key, Arc<OneClient>>>; PARTS],
    /// The shared account of the clients beyond the bound.
    others: Arc<OneClient>,
}

impl Accounts {
    pub fn new(limits: ShareLimits, rate: Option<RequestRate>) -> Self {
        let (hasher, parts) = Default::default();
        Self { limits, rate, hasher, parts, others: OneClient::new(limits, rate) }
    }

    pub fn of(&self, peer: Peer, identity: Option<u64>) -> Arc<OneClient> {
        let key = Key::of(peer, identity);
        // The remainder is below 16, so the index is in bounds.
        let part = &self.parts[self.hasher.hash_one(key) as usize % PARTS];
        let mut clients = part.lock_unpoisoned();
        if let Some(client) = clients.get(&key) {
            return client.clone();
        }
        if clients.len() >= MOST {
            let now = Instant::now();
            clients.retain(|_, client| !client.can_be_forgotten(now));
            if clients.len() >= MOST {
                return self.others.clone();
            }
        }
        clients.entry(key).or_insert_with(|| OneClient::new(self.limits, self.rate)).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Peer {
        Peer::Tcp(address.parse().expect("an address"))
    }

    #[test]
    fn a_client_is_its_identity_or_its_address_without_the_port() {
        let accounts = Accounts::new(ShareLimits::NONE, None);
        let is_same = |one: (Peer, Option<u64>), other: (Peer, Option<u64>)| {
            Arc::ptr_eq(&accounts.of(one.0, one.1), &accounts.of(other.0, other.1))
        };
        let (here, there) = (at("10.0.0.1:1"), at("10.0.0.2:1"));
        assert!(is_same((here, None), (at("10.0.0.1:2"), None)));
        assert!(is_same((here, None), (at("[::ffff:10.0.0.1]:2"), None)));
        assert!(!is_same((here, None), (there, None)));
        assert!(is_same((here, Some(1)), (there, Some(1))));
        assert!(
            !is_same((here, Some(1)), (here, Some(2))) && !is_same((here, Some(1)), (here, None))
        );
        assert!(is_same((at("[2001:db8::1]:1"), None), (at("[2001:db8::2]:1"), None)));
        assert!(!is_same((at("[2001:db8::1]:1"), None), (at("[2001:db8:0:1::1]:1"), None)));
        assert!(is_same((Peer::Unix, None), (Peer::Unix, None)));
    }

    #[test]
    fn clients_over_a_number_share_one_entry_and_idle_ones_are_forgotten() {
        let accounts = Accounts::new(ShareLimits::NONE, None);
        let count = 2 * PARTS * MOST;
        let held: Vec<_> = (0..count).map(|n| accounts.of(Peer::Unix, Some(n as u64))).collect();
        let beyond = held.iter().filter(|client| Arc::ptr_eq(client, &accounts.others)).count();
        assert!(beyond > count / 4, "{beyond}");
        drop(held);
        let again = accounts.of(Peer::Unix, Some(u64::MAX));
        assert!(!Arc::ptr_eq(&again, &accounts.others));
    }
}
