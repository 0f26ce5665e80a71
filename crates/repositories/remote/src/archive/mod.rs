//! Models in an archive on a server of the web: `https://HOST/PATH.tar.gz#sha256=DIGEST`.
//!
//! The digest is demanded: an address says where an archive is and not what it is, and models are programs. It is also what
//! the cache knows the archive by, so that one that was fetched is never asked for again.

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

/// Whether a repository is an archive on a server of the web.
pub fn is_address(given: &str) -> bool {
    given.starts_with("https://") || given.starts_with("http://")
}

/// The repository in an archive. Nothing is fetched yet. `open_folder` makes a repository of the folder that it unpacks to.
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
