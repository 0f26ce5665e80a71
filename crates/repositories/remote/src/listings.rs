//! Listings of a place, kept for as long as they are in use.
//!
//! One load asks for the same model several times: its existence, its configuration, its changes, its files. Between
//! [`Listings::begin`] and the drop of its result, each listing is requested once. A call that begins ignores earlier
//! listings, so it sees everything that was uploaded before. If a place does not answer, later questions fail at once: each
//! would take as long as all attempts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use galatea_types::LockExt;
use tokio::time::Instant;

use crate::{
    error::{FailureKind, RemoteError},
    names::Files,
};

/// Longest age of a listing. The start of a server with many models takes longer than a listing may count as current.
const VALID: Duration = Duration::from_secs(10);

/// Most files that are remembered. Beyond it everything is requested again.
const MOST_FILES: usize = 50_000;

/// The kept listings of a place.
#[derive(Debug, Default)]
pub struct Listings {
    known: Mutex<KnownListing>,
}

#[derive(Debug, Default)]
struct KnownListing {
    /// Number of current users.
    looks: usize,
    /// Number that grows with each new user.
    round: u64,
    folders: Option<(Instant, Vec<String>)>,
    models: HashMap<String, (Instant, Arc<Files>)>,
    /// Number of files of all models.
    files: usize,
    /// Time and reason of the last missing answer.
    failure: Option<(Instant, RemoteError)>,
}

/// The time of a question. An answer is not kept if a user began after its question.
#[derive(Clone, Copy, Debug)]
pub struct ListingRound(u64);

impl Listings {
    /// Keeps listings from now on, until the returned value is dropped.
    pub fn begin(self: &Arc<Self>) -> ListingUse {
        let mut known = self.known.lock_unpoisoned();
        known.clear();
        known.looks += 1;
        ListingUse(self.clone())
    }

    /// Drops all listings, because one turned out to be wrong.
    pub fn forget(&self) {
        self.known.lock_unpoisoned().clear();
    }

    /// Returns the current round. Call it before a question.
    pub fn round(&self) -> ListingRound {
        ListingRound(self.known.lock_unpoisoned().round)
    }

    /// Returns the names of all models.
    pub fn folders(&self) -> Option<Vec<String>> {
        valid(self.known.lock_unpoisoned().folders.as_ref()).cloned()
    }

    /// Returns true if a model exists, or `None` if that is unknown.
    pub fn holds(&self, model: &str) -> Option<bool> {
        if let Some(files) = self.model(model) {
            return Some(!files.is_empty());
        }
        let known = self.known.lock_unpoisoned();
        valid(known.folders.as_ref()).map(|folders| folders.iter().any(|name| name == model))
    }

    /// Returns the files of a model, or none if it does not exist.
    pub fn model(&self, model: &str) -> Option<Arc<Files>> {
        valid(self.known.lock_unpoisoned().models.get(model)).cloned()
    }

    /// Returns the reason if the place recently did not answer.
    pub fn failure(&self) -> Option<RemoteError> {
        valid(self.known.lock_unpoisoned().failure.as_ref()).cloned()
    }

    /// Keeps a failure of a question since `round`, if the place did not answer.
    pub fn keep_failure(&self, round: ListingRound, failure: &RemoteError) {
        let mut known = self.known.lock_unpoisoned();
        if failure.kind() == FailureKind::Unavailable && known.takes(round) {
            known.failure = Some((Instant::now(), failure.clone()));
        }
    }

    /// Returns true if anybody uses listings, so that it pays to request more than is needed now.
    pub fn is_kept(&self) -> bool {
        self.known.lock_unpoisoned().looks > 0
    }

    /// Keeps all models, as listed since `round`.
    pub fn keep_folders(&self, round: ListingRound, folders: &[String]) {
        let mut known = self.known.lock_unpoisoned();
        if known.takes(round) {
            known.folders = Some((Instant::now(), folders.to_vec()));
        }
    }

    /// Keeps a model, as listed since `round`.
    pub fn keep_model(&self, round: ListingRound, model: &str, files: &Arc<Files>) {
        let mut known = self.known.lock_unpoisoned();
        if !known.takes(round) {
            return;
        }
        if known.files > MOST_FILES {
            known.models.clear();
            known.files = 0;
        }
        // A model without files takes room as well.
        known.files += files.len() + 1;
        known.models.insert(model.to_owned(), (Instant::now(), files.clone()));
    }
}

impl KnownListing {
    fn clear(&mut self) {
        *self = Self { looks: self.looks, round: self.round + 1, ..Self::default() };
    }

    fn takes(&self, round: ListingRound) -> bool {
        self.looks > 0 && self.round == round.0
    }
}

fn valid<T>(kept: Option<&(Instant, T)>) -> Option<&T> {
    kept.filter(|(since, _)| since.elapsed() < VALID).map(|(_, kept)| kept)
}

/// A use of the listings, which keeps them until it is dropped.
#[derive(Debug)]
pub struct ListingUse(Arc<Listings>);

impl Drop for ListingUse {
    fn drop(&mut self) {
        let mut known = self.0.known.lock_unpoisoned();
        known.looks -= 1;
        if known.looks == 0 {
            known.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(listings: &Listings) -> Option<Vec<String>> {
        listings.folders()
    }

    #[test]
    fn listings_are_kept_only_during_a_poll() {
        let listings = Arc::new(Listings::default());
        listings.keep_folders(listings.round(), &["a".to_owned()]);
        assert_eq!(names(&listings), None);
        let look = listings.begin();
        listings.keep_folders(listings.round(), &["a".to_owned()]);
        listings.keep_model(listings.round(), "b", &Arc::default());
        assert_eq!(names(&listings), Some(vec!["a".to_owned()]));
        let held = ["a", "b", "c"].map(|model| listings.holds(model));
        assert_eq!(held, [Some(true), Some(false), Some(false)]);
        drop(look);
        assert!(names(&listings).is_none() && listings.model("b").is_none() && !listings.is_kept());
    }

    #[test]
    fn a_new_poll_sees_no_older_listing() {
        let listings = Arc::new(Listings::default());
        let first = listings.begin();
        listings.keep_model(listings.round(), "a", &Arc::default());
        let under_way = listings.round();
        let second = listings.begin();
        assert!(listings.model("a").is_none());
        // It was asked before the second began, and answered after.
        listings.keep_model(under_way, "a", &Arc::default());
        assert!(listings.model("a").is_none());
        listings.keep_model(listings.round(), "a", &Arc::default());
        drop(first);
        assert!(listings.model("a").is_some(), "one still looks");
        listings.forget();
        assert!(listings.model("a").is_none() && listings.is_kept());
        drop(second);
    }

    #[test]
    fn an_unreachable_place_is_not_asked_again_in_the_same_poll() {
        let listings = Arc::new(Listings::default());
        let failed = |kind| RemoteError::new(kind, "on purpose");
        listings.keep_failure(listings.round(), &failed(FailureKind::Unavailable));
        assert!(listings.failure().is_none(), "nobody looks");
        let look = listings.begin();
        listings.keep_failure(listings.round(), &failed(FailureKind::Missing));
        assert!(listings.failure().is_none(), "that is an answer");
        listings.keep_failure(listings.round(), &failed(FailureKind::Unavailable));
        assert!(listings.failure().is_some());
        let _next = listings.begin();
        assert!(listings.failure().is_none());
        drop(look);
    }

    #[test]
    fn the_number_of_kept_listings_is_bounded() {
        let listings = Arc::new(Listings::default());
        let _look = listings.begin();
        for number in 0..=MOST_FILES + 1 {
            listings.keep_model(listings.round(), &number.to_string(), &Arc::default());
        }
        assert!(listings.model("0").is_none());
        assert!(listings.known.lock_unpoisoned().models.len() < MOST_FILES);
    }
}
