//! `galatea models`: lists, loads and unloads the models of a server.

use std::{collections::BTreeSet, time::Duration};

use galatea_client::{
    Admin, CountAndTime, ModelIndexEntry, ModelMetadata, ModelStatistics, Target, TensorMetadata,
};
use galatea_types::{DataType, Error, suggest};
use serde_json::{Value, json};

use crate::{
    error::CommandError, infer, input, options::ModelsOptions, printing, session, top::duration,
};

/// The action on a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Control {
    Load,
    Unload,
    Reload,
}

impl Control {
    const WORDS: [&str; 3] = ["load", "unload", "reload"];

    fn named(word: &str) -> Result<Self, CommandError> {
        match word {
            "load" => Ok(Self::Load),
            "unload" => Ok(Self::Unload),
            "reload" => Ok(Self::Reload),
            other => {
                let near = suggest::nearest(other, Self::WORDS);
                let hint = near.first().map(|near| format!(", did you mean '{near}'?"));
                Err(CommandError::Words(format!(
                    "'{other}' is not an action{}; the actions are load, unload and reload",
                    hint.unwrap_or_default()
                )))
            }
        }
    }
}

pub(crate) fn run(options: &ModelsOptions, width: Option<usize>) -> Result<String, CommandError> {
    let words: Vec<&str> = options.words.iter().map(String::as_str).collect();
    let change = match words[..] {
        [control, model] => Some((Control::named(control)?, model)),
        [_, _, more, ..] => {
            let text = format!("unexpected word '{more}' behind the model");
            return Err(CommandError::Words(text));
        }
        _ => None,
    };
    session::ask(&options.server, async |connector, target| {
        let mut admin = connector.admin().await?;
        match (words.first(), change) {
            (_, Some((control, model))) => {
                changed(&mut admin, control, model, options, width).await
            }
            (Some(model), None) => one(&mut admin, model, options, width).await,
            (None, None) => list(&mut admin, target, options.is_json, width).await,
        }
    })
}

/// Returns the names that a shell takes literally, each once, in alphabetical order.
pub(crate) fn names(mut options: ModelsOptions) -> Result<Vec<String>, CommandError> {
    /// Timeout in seconds. It is short, because somebody waits at a prompt.
    const SECONDS: f64 = 0.5;
    const MOST: usize = 1000;
    let timeout = options.server.timeout.map_or(SECONDS, |given| given.min(SECONDS));
    options.server.timeout = Some(timeout);
    let index = session::ask(&options.server, async |connector, _| {
        Ok(connector.admin().await?.repository_index().await?)
    })?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_typed_as_it_is =
        |name: &String| !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain);
    let names: BTreeSet<String> =
        index.into_iter().map(|entry| entry.name).filter(is_typed_as_it_is).collect();
    Ok(names.into_iter().take(MOST).collect())
}

/// Loads or unloads the model, and returns its entries in the index as text.
async fn changed(
    admin: &mut Admin,
    control: Control,
    model: &str,
    options: &ModelsOptions,
    width: Option<usize>,
) -> Result<String, CommandError> {
    if control != Control::Load {
        admin.unload_model(model, options.has_dependents).await.map_err(not_allowed)?;
        unloaded(admin, model).await;
    }
    if control != Control::Unload {
        admin.load_model(model, None).await.map_err(not_allowed)?;
    }
    // Without an index the action has succeeded all the same.
    let index = admin.repository_index().await.unwrap_or_default();
    let entries = index.into_iter().filter(|entry| entry.name == model);
    let entries: Vec<_> = entries.map(|entry| (entry, ModelMetadata::default())).collect();
    Ok(match (options.is_json, entries.is_empty()) {
        (true, _) => json_text(&entries.iter().map(|(e, m)| entry_json(e, m)).collect()),
        (false, true) => "Done.\n".to_owned(),
        (false, false) => table(&entries, width),
    })
}

/// Waits until the model is gone: servers answer while requests are still in flight. `--timeout` bounds this.
#[expect(
    clippy::disallowed_methods,
    reason = "a server reports nothing when a model has changed its state"
)]
async fn unloaded(admin: &mut Admin, model: &str) {
    const PAUSE: Duration = Duration::from_millis(50);
    let is_going = |entry: &ModelIndexEntry| entry.name == model && entry.state == "UNLOADING";
    while admin.repository_index().await.is_ok_and(|index| index.iter().any(is_going)) {
        tokio::time::sleep(PAUSE).await;
    }
}

fn not_allowed(reason: Error) -> CommandError {
    let hint = match reason.message().contains("explicit model") {
        true => "; the server must be started with --model-control-mode=explicit",
        false => "",
    };
    CommandError::Server { reason, hint: hint.to_owned() }
}

async fn list(
    admin: &mut Admin,
    target: &Target,
    is_json: bool,
    width: Option<usize>,
) -> Result<String, CommandError> {
    let index = index(admin, target).await?;
    let mut models = Vec::with_capacity(index.len());
    for entry in index {
        let is_ready = entry.state == "READY";
        // A model that has just been unloaded is shown without its tensors.
        let metadata = match is_ready {
            true => admin.model_metadata(&entry.name, &entry.version).await.unwrap_or_default(),
            false => ModelMetadata::default(),
        };
        models.push((entry, metadata));
    }
    Ok(match is_json {
        true => json_text(&Value::Array(models.iter().map(|(e, m)| entry_json(e, m)).collect())),
        false => table(&models, width),
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

fn table(models: &[(ModelIndexEntry, ModelMetadata)], width: Option<usize>) -> String {
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
    printing::table(&rows, width)
}

fn tensors(tensors: &[TensorMetadata]) -> String {
    tensors.iter().map(input::describe).collect::<Vec<_>>().join(", ")
}

async fn one(
    admin: &mut Admin,
    model: &str,
    options: &ModelsOptions,
    width: Option<usize>,
) -> Result<String, CommandError> {
    let metadata = infer::metadata(admin, model, "").await?;
    // Without statistics from the server none are shown.
    let statistics = admin.statistics(model, "").await.unwrap_or_default();
    if options.is_json {
        return Ok(json_text(&model_json(&metadata, &statistics)));
    }
    let row = |name: &str, text: &str| vec![name.to_owned(), printing::line(text)];
    let mut rows =
        vec![row("model", &metadata.name), row("versions", &metadata.versions.join(", "))];
    rows.push(row("platform", &metadata.platform));
    rows.extend(metadata.inputs.iter().map(|tensor| row("input", &input::describe(tensor))));
    rows.extend(metadata.outputs.iter().map(|tensor| row("output", &input::describe(tensor))));
    rows.extend(statistics.iter().flat_map(statistics_rows));
    Ok(format!(
        "{}\nTo ask it:\n  {}\n",
        printing::table(&rows, width),
        command(model, &metadata, options)
    ))
}

/// Returns a command line that works as it is.
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

/// Returns the counts and times of a version since it was loaded.
fn statistics_rows(version: &ModelStatistics) -> [Vec<String>; 2] {
    let average = |time: CountAndTime| match time.count {
        0 => "-".to_owned(),
        count => duration(time.ns as f64 / count as f64),
    };
    let counts = format!(
        "{} successful, {} failed; {} inferences in {} executions",
        version.success.count, version.fail.count, version.inference_count, version.execution_count
    );
    let times = format!(
        "{} on average: queue {}, input {}, infer {}, output {}",
        average(version.success),
        average(version.queue),
        average(version.compute_input),
        average(version.compute_infer),
        average(version.compute_output)
    );
    let version = printing::line(&version.version);
    [vec![format!("requests to {version}"), counts], vec![format!("times of {version}"), times]]
}

fn statistics_json(version: &ModelStatistics) -> Value {
    let time = |time: CountAndTime| json!({"count": time.count, "ns": time.ns});
    json!({
        "version": version.version,
        "inference_count": version.inference_count, "execution_count": version.execution_count,
        "success": time(version.success), "fail": time(version.fail), "queue": time(version.queue),
        "compute_input": time(version.compute_input),
        "compute_infer": time(version.compute_infer),
        "compute_output": time(version.compute_output),
    })
}

fn model_json(metadata: &ModelMetadata, statistics: &[ModelStatistics]) -> Value {
    json!({
        "name": metadata.name, "versions": metadata.versions, "platform": metadata.platform,
        "inputs": tensors_json(&metadata.inputs), "outputs": tensors_json(&metadata.outputs),
        "statistics": statistics.iter().map(statistics_json).collect::<Vec<_>>(),
    })
}

fn tensors_json(tensors: &[TensorMetadata]) -> Value {
    let tensor = |t: &TensorMetadata| json!({"name": t.name, "datatype": t.data_type.protocol_name(), "shape": t.shape});
    tensors.iter().map(tensor).collect()
}
