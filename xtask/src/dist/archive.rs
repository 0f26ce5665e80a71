//! Compressed tar archives whose bytes do not depend on the time or the machine.

use std::{collections::BTreeSet, io::Write};

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};
use tar::{Builder, EntryType, Header};

use super::contents::{Content, Entry};

/// Time of the last change in a release, and the level of compression.
#[derive(Clone, Copy)]
pub struct Form {
    /// Seconds since 1970.
    pub time: u64,
    /// From 0 (none) to 9.
    pub compression: u32,
}

/// Makes an archive. Entries, with their folders, are sorted by name and belong to root. `top` precedes the paths.
pub fn tar_gz(top: &str, entries: &[Entry], form: Form) -> Result<Vec<u8>> {
    let mut entries: Vec<&Entry> = entries.iter().collect();
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let mut archive = Builder::new(Vec::new());
    for folder in folders(top, &entries) {
        let mut header = header(EntryType::Directory, 0o755, form);
        archive.append_data(&mut header, folder, std::io::empty())?;
    }
    for entry in entries {
        let path = format!("{top}{}", entry.path);
        match &entry.content {
            Content::File(bytes) => {
                let mut header = header(EntryType::Regular, entry.mode, form);
                header.set_size(bytes.len() as u64);
                archive.append_data(&mut header, path, &**bytes)?;
            }
            Content::Link(to) => {
                archive.append_link(&mut header(EntryType::Symlink, entry.mode, form), path, to)?;
            }
        }
    }
    gz(&archive.into_inner()?, form)
}

/// Compresses without a name and a time.
pub fn gz(bytes: &[u8], form: Form) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(form.compression));
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn folders(top: &str, entries: &[&Entry]) -> BTreeSet<String> {
    let paths = entries.iter().map(|entry| format!("{top}{}", entry.path));
    paths
        .flat_map(|path| {
            path.match_indices('/').map(|(at, _)| path[..=at].to_owned()).collect::<Vec<_>>()
        })
        .collect()
}

fn header(kind: EntryType, mode: u32, form: Form) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(form.time);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}
