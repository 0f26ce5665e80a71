//! Models of a hub (Hugging Face and what speaks like it): `hf://ORG/MODEL[@REVISION][/PATH]`.
//!
//! A branch or tag is resolved to the commit that it is; a poll asks for that alone. Files are known by their content's
//! digest, so that a commit that changes other files makes nothing be fetched again.

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

/// Whether a repository is one of a hub.
pub fn is_address(given: &str) -> bool {
    given.starts_with(address::SCHEME)
}

/// The repository at an address of a hub. Nothing is asked yet. `backend_of` tells what runs a model file.
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

/// Reads what a hub may answer as the kinds of answers that there are: for fuzzing.
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
