//! From the repositories on the command line to those the engine reads. The only place that
//! distinguishes kinds of repositories.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Result, bail};
use galatea_engine::{LocalRoot, RepositoryRoot};

/// A typing error in a path ends the start, whatever --exit-on-error is set to for models.
pub fn open(given: &[PathBuf]) -> Result<Vec<Arc<dyn RepositoryRoot>>> {
    let roots = given.iter().map(|path| {
        let text = path.to_string_lossy();
        if text.contains("://") {
            bail!(
                "creating server: Unsupported - '{text}': only local model repositories are supported yet"
            );
        }
        let root = LocalRoot::at(path);
        match root.check() {
            Ok(()) => Ok(root),
            Err(error) => bail!("creating server: {} - {error}", error.code().as_str()),
        }
    });
    roots.collect()
}
