//! `galatea infer`: one request, and its answer.

use galatea_client::{
    Admin, InferMark, InferTemplate, Keep, ModelMetadata, OutputTensor, PreparedInfer,
    RequestedOutput, TensorFormat,
};
use galatea_types::{Error, suggest};
use serde_json::json;

use crate::{
    elements::Elements, error::CommandError, input, options::InferOptions, printing, session, shape,
};

/// Of a row of numbers, and of the rows, so many are shown.
const SHOWN: usize = 16;
/// Of a text so many characters are shown.
const SHOWN_TEXT: usize = 400;

pub(crate) fn run(options: &InferOptions) -> Result<String, CommandError> {
    let missing = || CommandError::Words("which model? `galatea models` lists them".to_owned());
    let model = options.model.as_deref().ok_or_else(missing)?;
    let outputs = session::ask(&options.server, async |connector, target| {
        let mut admin = connector.admin().await?;
        let metadata = metadata(&mut admin, model, &options.version).await?;
        // A server that does not tell its configurations has no inputs that may be left out.
        let config = admin.model_config(model, &options.version).await.unwrap_or_default();
        let inputs = input::inputs(&options.inputs, &metadata.inputs, &config.optional_inputs)?;
        let template = InferTemplate {
            model: model.to_owned(),
            version: options.version.clone(),
            inputs,
            outputs: requested(options, &metadata)?,
            parameters: Vec::new(),
            input_format: TensorFormat::Binary,
            output_format: TensorFormat::Binary,
        };
        let request = PreparedInfer::new(target, &template)?;
        let mut caller = connector.caller().await?;
        let reply = caller.infer(&request, InferMark::default(), Keep::Outputs).await?;
        Ok(reply.outputs)
    })?;
    Ok(match options.is_json {
        true => json_text(model, &outputs),
        false => outputs.iter().map(readable).collect(),
    })
}

/// What the server says of a model; of one that it has not, the nearest name.
pub(crate) async fn metadata(
    admin: &mut Admin,
    model: &str,
    version: &str,
) -> Result<ModelMetadata, CommandError> {
    match admin.model_metadata(model, version).await {
        Ok(metadata) => Ok(metadata),
        Err(reason) => Err(not_there(admin, model, reason).await),
    }
}

async fn not_there(admin: &mut Admin, model: &str, reason: Error) -> CommandError {
    let index = admin.repository_index().await.unwrap_or_default();
    let hint = match index.iter().find(|entry| entry.name == model && !entry.reason.is_empty()) {
        Some(entry) => format!(" ({}: {})", entry.state, entry.reason),
        None if index.iter().any(|entry| entry.name == model) => String::new(),
        None => {
            let near = suggest::nearest(model, index.iter().map(|entry| entry.name.as_str()));
            near.first().map(|near| format!("; did you mean '{near}'?")).unwrap_or_default()
        }
    };
    CommandError::Server { reason, hint }
}

fn requested(
    options: &InferOptions,
    metadata: &ModelMetadata,
) -> Result<Vec<RequestedOutput>, CommandError> {
    let known: Vec<&str> = metadata.outputs.iter().map(|output| output.name.as_str()).collect();
    if let Some(name) = options.outputs.iter().find(|name| !known.contains(&name.as_str())) {
        let near = suggest::nearest(name, known.iter().copied());
        let hint = near.first().map(|near| format!(", did you mean '{near}'?")).unwrap_or_default();
        let known = known.join(", ");
        return Err(CommandError::Words(format!(
            "the model has no output '{name}'{hint}; it has {known}"
        )));
    }
    let names: Vec<&str> = match options.outputs.is_empty() {
        true if options.classes == 0 => Vec::new(),
        true => known,
        false => options.outputs.iter().map(String::as_str).collect(),
    };
    let output = |name: &str| RequestedOutput {
        name: name.to_owned(),
        region: None,
        classes: options.classes,
    };
    Ok(names.into_iter().map(output).collect())
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
    use galatea_types::DataType;

    use super::*;

    #[test]
    fn big_tensors_are_shortened_and_json_is_whole() {
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
