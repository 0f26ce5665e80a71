//! One bucket, and in which way requests to it are signed.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use galatea_types::LockExt;
use object_store::{CredentialProvider, ObjectStore, list::PaginatedListStore};
use tokio::time::Instant;

/// What is asked of a bucket.
pub trait Client: ObjectStore + PaginatedListStore {}

impl<T: ObjectStore + PaginatedListStore> Client for T {}

/// How long it is remembered that this machine has no credentials.
const REMEMBERED: Duration = Duration::from_secs(60);

type Probe = Box<
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), object_store::Error>> + Send>> + Send + Sync,
>;

/// A bucket. Where no credentials were given, those of the machine are asked for, and where it has none the bucket is asked
/// without any, as public buckets are: so the clients of the clouds do.
pub struct Store {
    signed: Arc<dyn Client>,
    unsigned: Option<AnonymousStore>,
}

struct AnonymousStore {
    client: Arc<dyn Client>,
    probe: Probe,
    /// When it was last found to have none.
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

    /// The client for the next request.
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
                "no credentials were given and this machine has none ({reason}): asking without any"
            );
        }
        *since = (!has_some).then(Instant::now);
        has_some
    }
}

/// Whether a provider, which keeps what it was given, has credentials.
pub fn probe<T: Send + Sync + 'static>(
    provider: Arc<dyn CredentialProvider<Credential = T>>,
) -> Probe {
    Box::new(move || {
        let provider = provider.clone();
        Box::pin(async move { provider.get_credential().await.map(drop) })
    })
}
