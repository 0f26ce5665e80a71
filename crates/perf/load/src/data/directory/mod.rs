//! A directory with one file for each input: raw elements, or lines of text for strings.

use std::{fs, path::Path};

use bytes::Bytes;
use galatea_perf_types::model::{InputInfo, ModelInfo};
use galatea_types::{Shape, byte_strings};

use super::{
    dataset::{Step, TensorData},
    error::{DirectoryError, OpenShape},
};

/// Reads a directory. Files named after outputs are allowed and ignored, as in perf_analyzer: only JSON data is validated.
pub(super) fn read_directory(model: &ModelInfo, directory: &Path) -> Result<Step, DirectoryError> {
    check_names(model, directory)?;
    let inputs = model.inputs.iter().map(|input| read_input(input, directory).map(Some));
    Ok(Step { inputs: inputs.collect::<Result<_, _>>()?, expected: Vec::new() })
}

fn check_names(model: &ModelInfo, directory: &Path) -> Result<(), DirectoryError> {
    let unreadable = |error| DirectoryError::Unreadable { directory: directory.to_owned(), error };
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        names.push(entry.map_err(unreadable)?.file_name());
    }
    names.sort();
    let is_known = |name: &str| {
        model.inputs.iter().any(|input| input.name == name)
            || model.outputs.iter().any(|output| output.name == name)
    };
    match names.iter().find(|name| !name.to_str().is_some_and(is_known)) {
        Some(name) => Err(DirectoryError::UnknownFile(name.display().to_string())),
        None => Ok(()),
    }
}

fn read_input(input: &InputInfo, directory: &Path) -> Result<TensorData, DirectoryError> {
    let path = directory.join(&input.name);
    let content = match fs::read(&path) {
        Ok(content) => content,
        Err(error) => return Err(DirectoryError::CannotOpen { file: path, error }),
    };
    if content.is_empty() {
        return Err(DirectoryError::Empty(path));
    }
    let shape = Shape::from(&input.shape[..]);
    let count = shape.element_count().ok_or_else(|| OpenShape(input.name.clone()))?;
    let data = match shape.byte_size(input.data_type) {
        Some(expected) if content.len() != expected => {
            let (input, size) = (input.name.clone(), content.len());
            return Err(DirectoryError::WrongSize { input, size, expected });
        }
        Some(_) => content,
        None => read_lines(&input.name, &content, count)?,
    };
    Ok(TensorData { shape: input.shape.clone(), data: Bytes::from(data) })
}

fn read_lines(name: &str, content: &[u8], expected: usize) -> Result<Vec<u8>, DirectoryError> {
    let lines = content.strip_suffix(b"\n").unwrap_or(content).split(|&byte| byte == b'\n');
    let count = lines.clone().count();
    if count != expected {
        return Err(DirectoryError::WrongCount { input: name.to_owned(), count, expected });
    }
    let mut data = Vec::new();
    for line in lines {
        byte_strings::push(&mut data, line)
            .map_err(|_| DirectoryError::LineTooLong(name.to_owned()))?;
    }
    Ok(data)
}

#[cfg(test)]
mod tests;
