//! Object stores: Amazon S3, Google Cloud Storage, Azure Blob Storage, and what speaks their protocols.

mod azure;
mod checksum;
mod connector;
mod credential_file;
mod failure;
mod files;
mod gcs;
mod listing;
mod profile;
mod s3;
mod store;

use std::{sync::Arc, time::Duration};

use galatea_types::Environment;
use galatea_web_client::WebClient;
use object_store::RetryConfig;

pub use self::files::ObjectStoreFiles;
use self::{connector::Connector, credential_file::Credential, store::Store};
use crate::{
    address::{Address, Service},
    error::{FailureKind, RemoteError},
};

/// The files at an address, with the credentials that the environment has for it. `given` is the address as the user wrote
/// it, which credentials are chosen by.
///
/// # Errors
/// When credentials are named that cannot be read, or that this does not support.
pub fn open(
    given: &str,
    address: &Address,
    environment: &Environment,
    network: &WebClient,
) -> Result<ObjectStoreFiles, RemoteError> {
    let credential = Credential::find(environment, address.service.key(), given)?;
    let connector = Connector::new(network.http().clone());
    let store = match address.service {
        Service::S3 => s3::open(address, &credential, environment, connector),
        Service::Gcs => gcs::open(address, &credential, environment, connector),
        Service::Azure => azure::open(address, &credential, environment, connector),
    }?;
    Ok(ObjectStoreFiles::new(given, address, store))
}

/// The crate below asks once: what repeats questions is above it, for stores of all kinds.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, retry_timeout: Duration::ZERO, ..RetryConfig::default() }
}

/// Settings that the store's library refuses.
fn not_opened(error: &object_store::Error) -> RemoteError {
    RemoteError::new(FailureKind::Invalid, failure::describe(error))
}

/// A store that is asked as it was built.
fn plain(store: impl store::Client) -> Store {
    Store::new(Arc::new(store), None)
}
