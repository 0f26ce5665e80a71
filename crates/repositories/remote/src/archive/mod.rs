//! Models in an archive on a web server: `https://HOST/PATH.tar.gz#sha256=DIGEST`.
//!
//! The digest is required: an address names a place and no content, and models are programs. It is also the key of the
//! archive in the cache, so that a fetched archive is never requested again.

mod address;
mod download;
mod root;
mod unpacking;

use std::sync::Arc;

use galatea_engine::RepositoryRoot;
use galatea_web_client::WebClient;

pub use self::root::OpenFolder;
use self::{address::ArchiveAddress, root::ArchiveRoot};
use crate::{cache::Cache, error::RemoteError};

/// Returns true if a repository is an archive on a web server.
pub fn is_address(given: &str) -> bool {
    given.starts_with("https://") || given.starts_with("http://")
}

/// Opens the repository in an archive. Fetches nothing yet. `open_folder` makes a repository of the unpacked folder.
///
/// # Errors
/// When the address cannot be used.
pub fn open(
    given: &str,
    network: Arc<WebClient>,
    cache: Arc<Cache>,
    open_folder: OpenFolder,
) -> Result<Arc<dyn RepositoryRoot>, RemoteError> {
    let address = ArchiveAddress::parse(given)?;
    Ok(Arc::new(ArchiveRoot::new(address, network, cache, open_folder)))
}
