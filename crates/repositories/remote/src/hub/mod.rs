//! Models on a hub (Hugging Face and compatible ones): `hf://ORG/MODEL[@REVISION][/PATH]`.
//!
//! A branch or tag is resolved to its commit, and a poll requests only that. Files are identified by their content's digest,
//! so a commit that changes other files does not fetch these again.

mod address;
mod client;
mod files;
mod layout;
mod listing;
mod token;

use std::sync::Arc;

use galatea_engine::RepositoryRoot;
use galatea_types::Environment;
use galatea_web_client::WebClient;

pub use self::layout::BackendOf;
use self::{address::HubAddress, client::HubClient, files::HubFiles};
use crate::{cache::Cache, error::RemoteError, remote_root::RemoteRoot};

/// Returns true if a repository is on a hub.
pub fn is_address(given: &str) -> bool {
    given.starts_with(address::SCHEME)
}

/// Opens the repository at an address of a hub. Requests nothing yet. `backend_of` returns the backend of a model file.
///
/// # Errors
/// When the address, the hub that the environment names or its token cannot be used.
pub fn open(
    given: &str,
    environment: &Environment,
    network: Arc<WebClient>,
    cache: Arc<Cache>,
    backend_of: BackendOf,
) -> Result<Arc<dyn RepositoryRoot>, RemoteError> {
    let address = HubAddress::parse(given)?;
    let client = HubClient::new(network.http().clone(), environment, &address)?;
    let files = HubFiles::new(given, address, client, backend_of);
    Ok(Arc::new(RemoteRoot::new(files, network, cache)))
}

/// Reads bytes as each kind of response of a hub: for fuzzing.
#[doc(hidden)]
pub fn read_answer(answer: &[u8], address: &str) {
    let _ = listing::commit(answer);
    if let (Ok(files), Ok(address)) = (listing::files(answer), HubAddress::parse(address)) {
        let _ = layout::of(&address, &files, |name| match name.ends_with(".onnx") {
            true => Ok("onnxruntime"),
            false => Err(String::new()),
        });
    }
}
