//! The contents that an environment depends on: the lines of a file, and the files that they name.

use std::{fs, os::unix::ffi::OsStrExt, path::Path};

use sha2::{Digest, Sha256};

/// Most levels of files that include others.
const MAX_DEPTH: usize = 8;

/// The lines of a file and of those it includes.
#[derive(Default)]
pub(super) struct RequirementLines {
    pub digest: Sha256,
    /// True if a requirement is numpy.
    pub has_numpy: bool,
    /// True if a requirement has a hash.
    pub has_hashes: bool,
}

impl RequirementLines {
    /// Adds a file. `depth`: the number of files that include each other down to it.
    pub fn add_file(&mut self, file: &Path, text: &str, depth: usize) {
        self.digest.update(text.len().to_le_bytes());
        self.digest.update(text);
        let folder = file.parent().unwrap_or(Path::new("."));
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            self.has_numpy |= names_numpy(line);
            self.has_hashes |= line.contains("--hash=");
            match included(line) {
                Some(name) => self.add_included(&folder.join(name), depth),
                None => self.add_local(folder, line),
            }
        }
    }

    /// Adds an included file. One that cannot be read is ignored here: pip reports it.
    fn add_included(&mut self, file: &Path, depth: usize) {
        if depth < MAX_DEPTH
            && let Ok(text) = fs::read_to_string(file)
        {
            self.add_file(file, &text, depth + 1);
        }
    }

    /// Adds a wheel or a folder named in the line: its path, size and time of change go into the digest.
    fn add_local(&mut self, folder: &Path, line: &str) {
        let paths = line.split([' ', '\t', '=', '@', '[', ';']).filter(|part| part.contains('/'));
        for path in paths.map(|path| path.strip_prefix("file://").unwrap_or(path)) {
            let path = folder.join(path);
            let Ok(metadata) = fs::metadata(&path) else { continue };
            let path = fs::canonicalize(&path).unwrap_or(path);
            self.digest.update(path.as_os_str().as_bytes());
            self.digest.update(metadata.len().to_le_bytes());
            self.digest.update(format!("{:?}", metadata.modified().ok()));
        }
    }
}

/// Returns the file of `-r FILE` and `-c FILE` in their forms.
fn included(line: &str) -> Option<&str> {
    let options = ["-r", "-c", "--requirement", "--constraint"];
    let rest = options.iter().find_map(|option| {
        let rest = line.strip_prefix(option)?;
        (rest.starts_with([' ', '\t', '=']) || option.len() == 2).then_some(rest)
    })?;
    let name = rest.trim_start_matches([' ', '\t', '=']);
    // A comment needs a space before it.
    Some(name.split(" #").next().unwrap_or(name).trim())
}

fn names_numpy(requirement: &str) -> bool {
    let file = requirement.rsplit('/').next().unwrap_or(requirement);
    let end = |text: &str| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        text.find(|c| !is_name(c)).unwrap_or(text.len())
    };
    let name = requirement.get(..end(requirement)).unwrap_or_default();
    name.eq_ignore_ascii_case("numpy") || (file.starts_with("numpy-") && file.contains(".whl"))
}
