//! One bucket, with the credentials for its requests.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use galatea_types::LockExt;
use object_store::{CredentialProvider, ObjectStore, list::PaginatedListStore};
use tokio::time::Instant;

/// The operations on a bucket.
pub trait Client: ObjectStore + PaginatedListStore {}

impl<T: ObjectStore + PaginatedListStore> Client for T {}

/// Time for which the server remembers that this machine has no credentials.
const REMEMBERED: Duration = Duration::from_secs(60);

type Probe = Box<
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), object_store::Error>> + Send>> + Send + Sync,
>;

/// A bucket. Without given credentials those of the machine are used. If it has none, requests are anonymous, as for public
/// buckets. The clouds' own clients do the same.
pub struct Store {
    signed: Arc<dyn Client>,
    unsigned: Option<AnonymousStore>,
}

struct AnonymousStore {
    client: Arc<dyn Client>,
    probe: Probe,
    /// Time when the machine was last found to have none.
    since: Mutex<Option<Instant>>,
}

impl Store {
    pub fn new(signed: Arc<dyn Client>, unsigned: Option<(Arc<dyn Client>, Probe)>) -> Self {
        let unsigned = unsigned.map(|(client, probe)| AnonymousStore {
            client,
            probe,
            since: Mutex::default(),
        });
        Self { signed, unsigned }
    }

    /// Returns the client for the next request.
    pub async fn client(&self) -> &dyn Client {
        match &self.unsigned {
            Some(unsigned) if !unsigned.has_credentials().await => &*unsigned.client,
            _ => &*self.signed,
        }
    }
}

impl AnonymousStore {
    async fn has_credentials(&self) -> bool {
        let is_fresh = |since: Instant| since.elapsed() < REMEMBERED;
        if self.since.lock_unpoisoned().is_some_and(is_fresh) {
            return false;
        }
        let found = (self.probe)().await;
        let has_some = found.is_ok();
        let mut since = self.since.lock_unpoisoned();
        if let (Err(error), None) = (&found, &*since) {
            let reason = super::failure::describe(error);
            log::info!(
                "no credentials were given and this machine has none ({reason}): requests are sent without credentials"
            );
        }
        *since = (!has_some).then(Instant::now);
        has_some
    }
}

/// Makes a probe for a provider's credentials. The provider caches what it got.
pub fn probe<T: Send + Sync + 'static>(
    provider: Arc<dyn CredentialProvider<Credential = T>>,
) -> Probe {
    Box::new(move || {
        let provider = provider.clone();
        Box::pin(async move { provider.get_credential().await.map(drop) })
    })
}
