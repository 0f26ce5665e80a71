//! A cache of recent proofs: checking a signature takes fifty times as long as a look-up here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use galatea_types::LockExt;

use crate::{digest::Digest, grantee::Grantee};

/// Parts with a lock each, so that threads seldom wait for each other.
const PARTS: usize = 16;
/// Most proofs in each part.
const MAX_IN_PART: usize = 256;

/// Grantees by the digest of their proof. Bounded.
#[derive(Debug, Default)]
pub(crate) struct Cache([Mutex<HashMap<Digest, Arc<Grantee>>>; PARTS]);

impl Cache {
    fn part(&self, proof: &Digest) -> &Mutex<HashMap<Digest, Arc<Grantee>>> {
        &self.0[proof.low() % PARTS]
    }

    /// Returns the grantee of a proof. It may have expired.
    pub fn get(&self, proof: &Digest) -> Option<Arc<Grantee>> {
        self.part(proof).lock_unpoisoned().get(proof).cloned()
    }

    /// Stores a grantee. When the part is full, it removes the expired ones, or else all: their clients are checked again.
    pub fn put(&self, proof: Digest, grantee: Arc<Grantee>, now: u64) {
        let mut part = self.part(&proof).lock_unpoisoned();
        if part.len() >= MAX_IN_PART {
            part.retain(|_, grantee| !grantee.has_expired(now));
        }
        if part.len() >= MAX_IN_PART {
            part.clear();
        }
        part.insert(proof, grantee);
    }
}

#[cfg(test)]
mod tests {
    use galatea_types::Identity;

    use super::*;
    use crate::grantee::IdentityProof;

    fn grantee(expires: u64) -> Arc<Grantee> {
        let proof = IdentityProof::Token([].into());
        Arc::new(Grantee::new(Identity::new("", "i"), proof, Vec::new(), Some(expires)))
    }

    fn count(cache: &Cache) -> usize {
        cache.0.iter().map(|part| part.lock_unpoisoned().len()).sum()
    }

    #[test]
    fn proofs_are_cached_and_their_number_is_bounded() {
        let cache = Cache::default();
        for n in 0..20_000u32 {
            cache.put(Digest::of(&n.to_le_bytes()), grantee(100), 1);
        }
        assert!(count(&cache) <= PARTS * MAX_IN_PART);
        assert!(cache.get(&Digest::of(&19_999u32.to_le_bytes())).is_some());
        assert!(cache.get(&Digest::of(b"other")).is_none());
    }

    #[test]
    fn expired_proofs_are_evicted_first() {
        let cache = Cache::default();
        let lasting = Digest::of(b"lasting");
        cache.put(lasting, grantee(u64::MAX), 1);
        for n in 0..20_000u32 {
            cache.put(Digest::of(&n.to_le_bytes()), grantee(10), 20);
        }
        assert!(cache.get(&lasting).is_some());
    }
}
