//! Object stores: Amazon S3, Google Cloud Storage, Azure Blob Storage, and compatible ones.

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

/// Opens the files at an address, with its credentials from the environment. `given` is the address as the user wrote it,
/// which selects the credentials.
///
/// # Errors
/// When credentials cannot be read, or are of an unsupported kind.
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

/// Disables repetitions in the library: this crate repeats requests itself, for stores of all kinds.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, retry_timeout: Duration::ZERO, ..RetryConfig::default() }
}

/// Returns the error of settings that the store's library refuses.
fn not_opened(error: &object_store::Error) -> RemoteError {
    RemoteError::new(FailureKind::Invalid, failure::describe(error))
}

/// Makes a store that is used as it was built.
fn plain(store: impl store::Client) -> Store {
    Store::new(Arc::new(store), None)
}
