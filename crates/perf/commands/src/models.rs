//! `galatea models`: what a server has.

use galatea_client::{Admin, ModelIndexEntry, ModelMetadata, Target, TensorMetadata};
use galatea_types::DataType;
use serde_json::{Value, json};

use crate::{error::CommandError, infer, input, options::ModelsOptions, printing, session};

pub(crate) fn run(options: &ModelsOptions) -> Result<String, CommandError> {
    session::ask(&options.server, async |connector, target| {
        let mut admin = connector.admin().await?;
        match &options.model {
            None => list(&mut admin, target, options.is_json).await,
            Some(model) => one(&mut admin, model, options).await,
        }
    })
}

async fn list(admin: &mut Admin, target: &Target, is_json: bool) -> Result<String, CommandError> {
    let index = index(admin, target).await?;
    let mut models = Vec::with_capacity(index.len());
    for entry in index {
        let is_ready = entry.state == "READY";
        // One that has just been unloaded is shown without its tensors.
        let metadata = match is_ready {
            true => admin.model_metadata(&entry.name, &entry.version).await.unwrap_or_default(),
            false => ModelMetadata::default(),
        };
        models.push((entry, metadata));
    }
    Ok(match is_json {
        true => json_text(&Value::Array(models.iter().map(|(e, m)| entry_json(e, m)).collect())),
        false => table(&models),
    })
}

async fn index(admin: &mut Admin, target: &Target) -> Result<Vec<ModelIndexEntry>, CommandError> {
    let reason = match admin.repository_index().await {
        Ok(index) => return Ok(index),
        Err(reason) => reason,
    };
    match admin.server_metadata().await {
        Ok(server) if !server.extensions.iter().any(|e| e == "model_repository") => {
            Err(CommandError::NoIndex { url: target.url() })
        }
        _ => Err(reason.into()),
    }
}

fn table(models: &[(ModelIndexEntry, ModelMetadata)]) -> String {
    if models.is_empty() {
        return "The server has no models.\n".to_owned();
    }
    let heads = ["NAME", "VERSION", "STATE", "PLATFORM", "INPUTS → OUTPUTS, OR REASON"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for (entry, metadata) in models {
        let last = match metadata.inputs.is_empty() && metadata.outputs.is_empty() {
            true => entry.reason.clone(),
            false => format!("{} → {}", tensors(&metadata.inputs), tensors(&metadata.outputs)),
        };
        let row = [&entry.name, &entry.version, &entry.state, &metadata.platform, &last];
        rows.push(row.map(|cell| printing::line(cell)).to_vec());
    }
    printing::table(&rows)
}

fn tensors(tensors: &[TensorMetadata]) -> String {
    tensors.iter().map(input::describe).collect::<Vec<_>>().join(", ")
}

async fn one(
    admin: &mut Admin,
    model: &str,
    options: &ModelsOptions,
) -> Result<String, CommandError> {
    let metadata = infer::metadata(admin, model, "").await?;
    if options.is_json {
        return Ok(json_text(&model_json(&metadata)));
    }
    let row = |name: &str, text: &str| vec![name.to_owned(), printing::line(text)];
    let mut rows =
        vec![row("model", &metadata.name), row("versions", &metadata.versions.join(", "))];
    rows.push(row("platform", &metadata.platform));
    rows.extend(metadata.inputs.iter().map(|tensor| row("input", &input::describe(tensor))));
    rows.extend(metadata.outputs.iter().map(|tensor| row("output", &input::describe(tensor))));
    Ok(format!(
        "{}\nTo ask it:\n  {}\n",
        printing::table(&rows),
        command(model, &metadata, options)
    ))
}

/// A command line that works as it stands.
fn command(model: &str, metadata: &ModelMetadata, options: &ModelsOptions) -> String {
    let mut words = vec!["galatea".to_owned(), "infer".to_owned(), model.to_owned()];
    for tensor in &metadata.inputs {
        let takes_one = tensor.shape.iter().all(|&size| size == 1 || size < 0);
        let value =
            if tensor.data_type == DataType::Bytes && takes_one { "some text" } else { "zeros" };
        words.extend(["--input".to_owned(), format!("{}={value}", tensor.name)]);
    }
    for (option, value) in [("-u", &options.server.url), ("-i", &options.server.protocol)] {
        words.extend(value.iter().flat_map(|value| [option.to_owned(), value.clone()]));
    }
    words.iter().map(|word| printing::shell_word(word)).collect::<Vec<_>>().join(" ")
}

fn json_text(value: &Value) -> String {
    printing::json(&format!("{value:#}\n"))
}

fn entry_json(entry: &ModelIndexEntry, metadata: &ModelMetadata) -> Value {
    json!({
        "name": entry.name, "version": entry.version, "state": entry.state, "reason": entry.reason,
        "platform": metadata.platform,
        "inputs": tensors_json(&metadata.inputs), "outputs": tensors_json(&metadata.outputs),
    })
}

fn model_json(metadata: &ModelMetadata) -> Value {
    json!({
        "name": metadata.name, "versions": metadata.versions, "platform": metadata.platform,
        "inputs": tensors_json(&metadata.inputs), "outputs": tensors_json(&metadata.outputs),
    })
}

fn tensors_json(tensors: &[TensorMetadata]) -> Value {
    let tensor = |t: &TensorMetadata| json!({"name": t.name, "datatype": t.data_type.protocol_name(), "shape": t.shape});
    tensors.iter().map(tensor).collect()
}
