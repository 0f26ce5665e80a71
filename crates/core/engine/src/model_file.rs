//! Reads files of a model that its configuration names, and makes the errors of unreadable ones.

use std::{
    io::{self, Read},
    path::Path,
};

use galatea_backend::relative_inside;
use galatea_config::{Diagnostic, Place};
use galatea_types::{AlignedBlock, Buffer, Error};

use crate::repository::{system_words, text_file_advice};

/// A file of tensor data that the configuration of a model names.
pub(crate) struct DataFile<'a> {
    pub model: &'a str,
    pub model_dir: &'a Path,
    /// The folder of the model that has such files.
    pub folder: &'static str,
    /// The path in that folder, as the configuration writes it.
    pub name: &'a str,
    /// Advice if the file is missing.
    pub missing: &'static str,
}

/// The bytes of a file to read.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// This many first bytes.
    First(usize),
    /// All bytes, unless there are more than this.
    AllUpTo(usize),
}

impl DataFile<'_> {
    /// Reads a part of it, if it is a regular file in the model's folder. If it is too short or too long for that, returns its
    /// length.
    pub fn read(&self, part: Part) -> Result<Result<Buffer, u64>, ModelFileError> {
        // Paths out of the folder were refused before; this is a second check.
        let inside = relative_inside(self.name).ok_or(io::ErrorKind::InvalidFilename.into());
        let opened = inside.and_then(|path| {
            galatea_regular_files::open(&self.model_dir.join(self.folder).join(path))
        });
        let done = opened.and_then(|mut opened| {
            let length = opened.metadata()?.len();
            let size = match (part, usize::try_from(length)) {
                (Part::First(size), _) if length >= size as u64 => size,
                (Part::AllUpTo(most), Ok(length)) if length <= most => length,
                _ => return Ok(Err(length)),
            };
            let mut block = zeroed(size)?;
            opened.read_exact(block.as_mut_slice())?;
            Ok(Ok(block.freeze()))
        });
        done.map_err(|source| ModelFileError {
            model: self.model.to_owned(),
            path: format!("{}/{}", self.folder, self.name),
            missing: self.missing,
            source,
        })
    }
}

/// Returns a block of `size` bytes, all 0.
pub(crate) fn zeroed(size: usize) -> io::Result<AlignedBlock> {
    let mut block = AlignedBlock::try_with_capacity(size)?;
    block.extend_zeroed(size);
    Ok(block)
}

/// An unreadable file. The text is Triton's, with the model's name instead of its folder, because clients read it.
#[derive(Debug, thiserror::Error)]
#[error("failed to open text file for read {model}/{path}: {}", system_words(source))]
pub(crate) struct ModelFileError {
    pub model: String,
    /// The path in the model's folder, as the configuration writes it.
    pub path: String,
    /// Advice if the file is missing.
    pub missing: &'static str,
    pub source: io::Error,
}

impl From<ModelFileError> for Error {
    fn from(error: ModelFileError) -> Self {
        let advice = match error.source.kind() {
            io::ErrorKind::NotFound => Some(error.missing),
            _ => text_file_advice(&error.source),
        };
        let place = Place::file(format!("{}/{}", error.model, error.path));
        let mut found = Diagnostic::error(error.to_string()).at(place);
        found.advice = advice.map(str::to_owned);
        Self::internal(format!("{error}{}", found.appendix())).with_source(found)
    }
}
