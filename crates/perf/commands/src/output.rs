//! The outputs of a response, printed for people or as JSON, and saved to files.

use std::{
    fs,
    io::{self, IsTerminal},
};

use galatea_client::{ModelMetadata, OutputTensor};
use galatea_types::DataType;
use serde_json::json;

use crate::{
    elements::Elements,
    npy::{self, NpyError},
    picture::{self, PictureError, PictureOptions},
    printing, shape,
};

/// Most numbers of a row that are shown, and most rows.
const SHOWN: usize = 16;
/// Most characters of a text that are shown.
const SHOWN_TEXT: usize = 400;
/// Length of the longest bar, in characters.
const BAR: f64 = 30.0;

/// The reason why an output cannot be saved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputFileError {
    #[error("--output-file: the model has no output '{name}'; it has {known}")]
    Unknown { name: String, known: String },
    #[error("--output-file: '{0}' must end in .npy, .bin, .json or .png, which tells the format")]
    Ending(String),
    #[error("--output-file: the response has no output '{0}'")]
    Missing(String),
    #[error("cannot write '{path}': {reason}")]
    Write { path: String, reason: io::Error },
    #[error("cannot save '{path}': {reason}")]
    Npy { path: String, reason: NpyError },
    #[error("cannot save '{path}': {reason}")]
    Picture { path: String, reason: PictureError },
}

/// Finds the errors that can be known before the request is sent.
pub(crate) fn check(
    files: &[(String, String)],
    metadata: &ModelMetadata,
) -> Result<(), OutputFileError> {
    for (name, path) in files {
        if metadata.outputs.iter().all(|output| output.name != *name) {
            let known: Vec<&str> = metadata.outputs.iter().map(|o| o.name.as_str()).collect();
            return Err(OutputFileError::Unknown { name: name.clone(), known: known.join(", ") });
        }
        if ending(path).is_none() {
            return Err(OutputFileError::Ending(path.clone()));
        }
    }
    Ok(())
}

fn ending(path: &str) -> Option<&'static str> {
    let (_, ending) = path.rsplit_once('.')?;
    ["npy", "bin", "json", "png"].into_iter().find(|known| known.eq_ignore_ascii_case(ending))
}

pub(crate) fn save(
    files: &[(String, String)],
    outputs: &[OutputTensor],
    options: &PictureOptions,
) -> Result<(), OutputFileError> {
    for (name, path) in files {
        let output = outputs.iter().find(|output| output.name == *name);
        let output = output.ok_or_else(|| OutputFileError::Missing(name.clone()))?;
        let bytes = match ending(path) {
            Some("npy") => npy::written(output)
                .map_err(|reason| OutputFileError::Npy { path: path.clone(), reason })?,
            Some("png") => picture::png(output, options)
                .map_err(|reason| OutputFileError::Picture { path: path.clone(), reason })?,
            Some("json") => printing::json(&(output_json(output) + "\n")).into_bytes(),
            _ => output.data.to_vec(),
        };
        fs::write(path, bytes)
            .map_err(|reason| OutputFileError::Write { path: path.clone(), reason })?;
    }
    Ok(())
}

/// The form in which outputs are printed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OutputForm {
    Json,
    /// For people. On a terminal, each class has a bar.
    Readable {
        is_classes: bool,
    },
}

/// Returns the outputs of one response as text.
pub(crate) fn text(model: &str, outputs: &[OutputTensor], form: OutputForm) -> String {
    let is_classes = matches!(form, OutputForm::Readable { is_classes: true });
    let has_bars = is_classes && io::stdout().is_terminal();
    let shown = |output: &OutputTensor| match classes(output).filter(|_| has_bars) {
        Some(classes) => bars(output, &classes),
        None => readable(output),
    };
    match form {
        OutputForm::Json => json_text(model, outputs),
        OutputForm::Readable { .. } => outputs.iter().map(shown).collect(),
    }
}

/// A class of a classification: `0.91:3:cat`.
struct Class {
    score: f64,
    name: String,
}

/// Returns the classes; `None`: the output is not a classification.
fn classes(output: &OutputTensor) -> Option<Vec<Class>> {
    if output.data_type != DataType::Bytes {
        return None;
    }
    let elements = Elements::of(output);
    let class = |at: usize| {
        let text: String = serde_json::from_str(&elements.json(at)).ok()?;
        let (score, rest) = text.split_once(':')?;
        let (index, label) = rest.split_once(':').unwrap_or((rest, ""));
        let name = if label.is_empty() { index.to_owned() } else { format!("{label} ({index})") };
        Some(Class { score: score.parse().ok()?, name: short(&name) })
    };
    (0..elements.len()).map(class).collect()
}

/// Draws a bar for each class, in proportion to the highest score.
fn bars(output: &OutputTensor, classes: &[Class]) -> String {
    let most = classes.iter().map(|class| class.score).fold(0.0, f64::max);
    let bar = |score: f64| match most > 0.0 && score > 0.0 {
        true => "█".repeat((score / most * BAR).round() as usize),
        false => String::new(),
    };
    let row =
        |class: &Class| vec![format!("  {}", class.score), class.name.clone(), bar(class.score)];
    let rows: Vec<Vec<String>> = classes.iter().take(SHOWN * SHOWN).map(row).collect();
    format!("{}\n{}", printing::line(&output.name), printing::table(&rows, None))
}

fn readable(output: &OutputTensor) -> String {
    let elements = Elements::of(output);
    let (name, shape) = (printing::line(&output.name), shape::text(&output.shape));
    let mut text = format!("{name}  {} {shape}\n", output.data_type);
    let last = output.shape.last().and_then(|&last| usize::try_from(last).ok()).unwrap_or(1);
    let width = last.clamp(1, elements.len().max(1));
    let rows = elements.len().div_ceil(width);
    for row in 0..rows.min(SHOWN) {
        let length = width.min(elements.len() - row * width);
        let shown = (0..length.min(SHOWN)).map(|at| short(&elements.json(row * width + at)));
        let mut cells: Vec<String> = shown.collect();
        if length > SHOWN {
            cells.push(format!("… {} more", length - SHOWN));
        }
        text.push_str(&format!("  {}\n", cells.join(", ")));
    }
    if rows > SHOWN {
        text.push_str(&format!("  … {} more rows; --json prints all\n", rows - SHOWN));
    }
    text
}

fn short(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_TEXT).collect();
    let dots = if shown.len() < text.len() { "…" } else { "" };
    printing::line(&shown) + dots
}

fn json_text(model: &str, outputs: &[OutputTensor]) -> String {
    let outputs: Vec<String> = outputs.iter().map(output_json).collect();
    let text = format!("{{\"model_name\":{},\"outputs\":[{}]}}\n", json!(model), outputs.join(","));
    printing::json(&text)
}

fn output_json(output: &OutputTensor) -> String {
    let elements = Elements::of(output);
    let data: Vec<String> = (0..elements.len()).map(|at| elements.json(at)).collect();
    format!(
        "{{\"name\":{},\"datatype\":\"{}\",\"shape\":{},\"data\":[{}]}}",
        json!(output.name),
        output.data_type,
        shape::text(&output.shape),
        data.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classification_is_printed_as_bars() {
        let mut data = Vec::new();
        for text in ["4:2:cat\x1b", "2:0:dog", "-1:7"] {
            galatea_types::byte_strings::push(&mut data, text.as_bytes()).expect("short");
        }
        let (name, data_type) = ("o".to_owned(), DataType::Bytes);
        let output = OutputTensor { name, data_type, shape: vec![1, 3], data: data.into() };
        let text = bars(&output, &classes(&output).expect("classes"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], format!("  4   cat\\u{{1b}} (2)  {}", "█".repeat(30)));
        assert_eq!((lines[2].matches('█').count(), lines[3]), (15, "  -1  7"));
        assert!(classes(&OutputTensor { data: vec![1, 0, 0, 0, b'x'].into(), ..output }).is_none());
    }

    #[test]
    fn output_files_are_checked_before_sending() {
        let metadata = ModelMetadata {
            outputs: vec![galatea_client::TensorMetadata {
                name: "o".to_owned(),
                data_type: DataType::Fp32,
                shape: vec![1],
            }],
            ..ModelMetadata::default()
        };
        let check =
            |name: &str, path: &str| check(&[(name.to_owned(), path.to_owned())], &metadata);
        assert!(check("o", "a.NPY").is_ok());
        assert!(check("x", "a.npy").is_err_and(|error| error.to_string().contains("it has o")));
        assert!(check("o", "npy").is_err_and(|error| error.to_string().contains("must end in")));
    }

    #[test]
    fn big_tensors_are_shortened_but_json_is_complete() {
        let (name, shape) = ("o\x1b".to_owned(), vec![20, 18]);
        let output =
            OutputTensor { name, data_type: DataType::Uint8, shape, data: vec![7; 360].into() };
        let text = readable(&output);
        assert!(
            text.starts_with("o\\u{1b}  UINT8 [20,18]\n  7, 7,") && text.contains("… 2 more\n")
        );
        assert!(text.ends_with("… 4 more rows; --json prints all\n"), "{text}");
        let value: serde_json::Value =
            serde_json::from_str(&json_text("m", &[output])).expect("JSON");
        assert_eq!(value["outputs"][0]["data"].as_array().map(Vec::len), Some(360));
    }
}
