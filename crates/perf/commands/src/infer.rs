//! `galatea infer`: one request, and its response or responses.

use std::io::{self, Write};

use galatea_client::{
    Admin, InferMark, InferTemplate, KeepResponse, ModelConfigFacts, ModelMetadata, PreparedInfer,
    RequestedOutput, Responses,
};
use galatea_types::{Error, suggest};

use crate::{
    error::CommandError,
    input::{self, ModelInput},
    options::InferOptions,
    output::{self, OutputForm},
    printing, session,
};

pub(crate) fn run(options: &InferOptions) -> Result<String, CommandError> {
    let missing =
        || CommandError::Words("a model is missing; `galatea models` lists them".to_owned());
    let model = options.model.as_deref().ok_or_else(missing)?;
    session::ask(&options.server, async |connector, target| {
        let mut admin = connector.admin().await?;
        let metadata = metadata(&mut admin, model, &options.version).await?;
        // A server that does not report its configurations has no optional inputs.
        let config = admin.model_config(model, &options.version).await.unwrap_or_default();
        let template = template(options, model, &metadata, &config)?;
        output::check(&options.files, &metadata)?;
        let is_stream = options.is_stream || config.decoupled;
        let id = options.request_id.as_deref();
        if is_stream {
            let responses = connector.responses(&template, id, &metadata.outputs).await?;
            return streamed(responses, model, options).await;
        }
        let request = PreparedInfer::with_id(target, &template, id)?;
        let mut caller = connector.caller().await?;
        let reply = caller.infer(&request, InferMark::default(), KeepResponse::Outputs).await?;
        output::save(&options.files, &reply.outputs, &options.picture)?;
        Ok(output::text(model, &reply.outputs, form(options)))
    })
}

fn form(options: &InferOptions) -> OutputForm {
    match options.is_json {
        true => OutputForm::Json,
        false => OutputForm::Readable { is_classes: options.classes > 0 },
    }
}

fn template(
    options: &InferOptions,
    model: &str,
    metadata: &ModelMetadata,
    config: &ModelConfigFacts,
) -> Result<InferTemplate, CommandError> {
    let taken = ModelInput {
        inputs: &metadata.inputs,
        optional: &config.optional_inputs,
        formats: &config.image_formats,
        picture: options.picture,
    };
    let (inputs, notes) = input::inputs(&options.inputs, &taken)?;
    notes.iter().for_each(|note| eprintln!("{}", printing::line(note)));
    Ok(InferTemplate {
        model: model.to_owned(),
        version: options.version.clone(),
        inputs,
        outputs: requested(options, metadata)?,
        parameters: options.parameters.clone(),
        ..InferTemplate::default()
    })
}

/// Prints each response as it arrives; a file holds the last one.
async fn streamed(
    mut responses: Responses,
    model: &str,
    options: &InferOptions,
) -> Result<String, CommandError> {
    let mut count = 0;
    while let Some(outputs) = responses.next().await? {
        output::save(&options.files, &outputs, &options.picture)?;
        let head = match (options.is_json, count) {
            (true, _) => "",
            (false, 0) => "",
            (false, _) => "\n",
        };
        count += 1;
        let text = format!("{head}{}", output::text(model, &outputs, form(options)));
        let mut out = io::stdout();
        // If the reader is gone (`| head`), it needs no more.
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    match (count, options.is_json) {
        (0, false) => Ok("The model gave no response.\n".to_owned()),
        _ => Ok(String::new()),
    }
}

/// Returns the server's metadata of a model. If the model does not exist, the error has the nearest name.
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
