//! A directory with one file for each input: raw elements, or lines of text for strings.

use std::{fs, path::Path};

use bytes::Bytes;
use galatea_perf_types::model::{InputInfo, ModelInfo};
use galatea_types::byte_strings;

use super::{
    dataset::{Step, TensorData},
    generate::open_shape,
    size::{byte_size, element_count},
};

/// Files named after outputs are allowed and not read, as in perf_analyzer: only JSON data is validated.
pub(super) fn read_directory(model: &ModelInfo, directory: &Path) -> Result<Step, String> {
    check_names(model, directory)?;
    let inputs = model.inputs.iter().map(|input| read_input(input, directory).map(Some));
    Ok(Step { inputs: inputs.collect::<Result<_, _>>()?, expected: Vec::new() })
}

fn check_names(model: &ModelInfo, directory: &Path) -> Result<(), String> {
    let unreadable = |error| format!("failed to read '{}': {error}", directory.display());
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
        Some(name) => Err(format!(
            "Provided data file '{}' does not correspond to a valid model input or output.",
            name.display()
        )),
        None => Ok(()),
    }
}

fn read_input(input: &InputInfo, directory: &Path) -> Result<TensorData, String> {
    let path = directory.join(&input.name);
    let content =
        fs::read(&path).map_err(|_| format!("failed to open file '{}'", path.display()))?;
    if content.is_empty() {
        return Err(format!("file '{}' is empty", path.display()));
    }
    let count = element_count(&input.shape).ok_or_else(|| open_shape(&input.name))?;
    let data = match byte_size(&input.shape, input.data_type) {
        Some(expected) if content.len() != expected => {
            let (name, size) = (&input.name, content.len());
            return Err(format!(
                "provided data for input {name} has byte size {size}, expect {expected}"
            ));
        }
        Some(_) => content,
        None => read_lines(&input.name, &content, count)?,
    };
    Ok(TensorData { shape: input.shape.clone(), data: Bytes::from(data) })
}

fn read_lines(name: &str, content: &[u8], expected: usize) -> Result<Vec<u8>, String> {
    let lines = content.strip_suffix(b"\n").unwrap_or(content).split(|&byte| byte == b'\n');
    let count = lines.clone().count();
    if count != expected {
        return Err(format!(
            "provided data for input {name} has {count} elements, expect {expected}"
        ));
    }
    let mut data = Vec::new();
    for line in lines {
        byte_strings::push(&mut data, line)
            .map_err(|_| format!("a line for input {name} is too long"))?;
    }
    Ok(data)
}

#[cfg(test)]
mod tests;
