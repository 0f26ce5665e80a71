//! Lists the names in a folder, within limits.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use galatea_regular_files::is_loop;

/// The largest number of entries of one folder that are checked.
const MOST_ENTRIES: usize = 1000;
/// The largest number of names in a text, and of characters of each.
const MOST_NAMES: usize = 3;
const MOST_CHARACTERS: usize = 100;

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub name: String,
    pub kind: EntryKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryKind {
    File,
    Folder,
    /// A link to a missing file.
    LostLink,
    Other,
}

/// Returns the entries of a folder, by name, without hidden ones and names that are no text.
pub(super) fn entries(folder: &Path) -> Vec<Entry> {
    let Ok(listed) = fs::read_dir(folder) else { return Vec::new() };
    let named = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        (!name.starts_with('.')).then(|| Entry { kind: kind_of(&entry.path()), name })
    };
    let mut found: Vec<Entry> = listed.flatten().take(MOST_ENTRIES).filter_map(named).collect();
    found.sort();
    found
}

pub(super) fn kind_of(path: &Path) -> EntryKind {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => EntryKind::Folder,
        Ok(found) if found.is_file() => EntryKind::File,
        Ok(_) => EntryKind::Other,
        Err(error) if is_loop(&error) => EntryKind::LostLink,
        // An entry that may not be read is reported when it is opened.
        Err(_) if path.is_symlink() && fs::exists(path).is_ok_and(|there| !there) => {
            EntryKind::LostLink
        }
        Err(_) => EntryKind::Other,
    }
}

/// The number of bytes of a file that are read to find out its kind.
const LOOKED_AT: u64 = 1024;

/// Returns the first bytes of a file.
pub(super) fn read_start(path: &Path) -> io::Result<Vec<u8>> {
    let file: File = galatea_regular_files::open(path)?;
    let mut start = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut start)?;
    Ok(start)
}

/// Returns a name from the disk for a text: on one line, and of limited length.
pub(super) fn shown(name: &str) -> String {
    let mut escaped = name.chars().flat_map(char::escape_debug);
    let mut text: String = escaped.by_ref().take(MOST_CHARACTERS).collect();
    if escaped.next().is_some() {
        text.push_str("...");
    }
    text
}

/// Returns a list such as `'a', 'b' and 2 more`.
pub(super) fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> =
        names.iter().take(MOST_NAMES).map(|name| format!("'{}'", shown(name))).collect();
    match names.len().saturating_sub(MOST_NAMES) {
        0 => quoted.join(" and "),
        more => format!("{} and {more} more", quoted.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_shown_on_one_line_and_cut() {
        assert_eq!(shown("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(shown(&"x".repeat(300)).len(), MOST_CHARACTERS + 3);
        assert_eq!(listed(&["a", "b"]), "'a' and 'b'");
        assert_eq!(listed(&["a", "b", "c", "d", "e"]), "'a', 'b', 'c' and 2 more");
    }
}
