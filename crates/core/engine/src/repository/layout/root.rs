//! Checks a repository's own folder.

use std::path::Path;

use super::{
    file_type::{FileType, file_type},
    files::{EntryKind, entries, shown},
    mistake::{LayoutMistake, PlacedMistake},
};
use crate::repository::version_number;

/// Returns true if a folder is that of a model and not a repository: it has a configuration of its own.
pub(crate) fn is_model_folder(folder: &Path) -> bool {
    folder.join("config.pbtxt").is_file()
}

/// Returns the oddities of a repository itself.
pub(crate) fn inspect_root(folder: &Path) -> Vec<PlacedMistake> {
    if is_model_folder(folder) {
        return vec![PlacedMistake::new("", LayoutMistake::OneModel)];
    }
    let entries = entries(folder);
    let mut found = Vec::new();
    for entry in &entries {
        let mistake = match (entry.kind, file_type(&entry.name)) {
            (EntryKind::LostLink, _) => LayoutMistake::LostLink,
            (EntryKind::File, FileType::Model { filename, .. }) => {
                let name = entry.name.rsplit_once('.').map_or(&*entry.name, |(name, _)| name);
                LayoutMistake::FileInRoot { target: format!("{}/1/{filename}", shown(name)) }
            }
            (EntryKind::Folder, _)
                if version_number(&entry.name).is_some()
                    && holds_model(&folder.join(&entry.name)) =>
            {
                LayoutMistake::VersionInRoot
            }
            _ => continue,
        };
        found.push(PlacedMistake::new(shown(&entry.name), mistake));
    }
    if !entries.iter().any(|entry| entry.kind == EntryKind::Folder) {
        found.insert(0, PlacedMistake::new("", LayoutMistake::Nothing));
    }
    found
}

/// Returns true if a folder contains the file of a model, like a version folder.
fn holds_model(folder: &Path) -> bool {
    entries(folder).iter().any(|entry| matches!(file_type(&entry.name), FileType::Model { .. }))
}
