//! The OpenAPI document of the HTTP routes, with entries for the inputs and outputs of each ready model.
//!
//! The part for every server is in `openapi/base.json`, beside the sources.

mod model;

use std::{borrow::Cow, sync::Arc};

use galatea_engine::{Engine, ServedModel};
use galatea_types::{Error, Result, product};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

/// The part of the document that does not depend on models.
pub const BASE: &str = include_str!("../../openapi/base.json");
/// The routes that only a server with a console has.
const OF_CONSOLE: [&str; 4] = ["/", "/docs", "/console/events", "/console/traces"];

/// The most models with entries, if the client asks for no particular one.
const MOST_MODELS: usize = 100;
/// The number of inputs and outputs after which no further models are added.
const MOST_TENSORS: usize = 2000;

/// The models that have their own entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Models {
    /// The first hundred models, by name.
    First,
    /// The model with this name.
    Named(String),
}

impl Models {
    /// Reads the query of a URL: `model=NAME`, with percent escapes.
    ///
    /// # Errors
    /// `InvalidArg` for a name that is not text.
    pub fn of_query(query: &str) -> Result<Self> {
        Ok(model_of_query(query)?.map_or(Self::First, Self::Named))
    }
}

/// Reads the name of a model in the query of a URL: `model=NAME`, with percent escapes.
///
/// # Errors
/// `InvalidArg` for a name that is not text.
pub(crate) fn model_of_query(query: &str) -> Result<Option<String>> {
    let named = query.split('&').find_map(|pair| pair.strip_prefix("model="));
    named.map(unescaped).transpose()
}

/// Returns the document as JSON. `has_console`: the routes include those of the console.
///
/// # Errors
/// Those of [`Engine::model`], for a requested model that is not ready.
pub fn document(engine: &Engine, models: &Models, has_console: bool) -> Result<Vec<u8>> {
    let mut document = base()?;
    document["info"]["version"] = json!(product::VERSION);
    let ready = match models {
        Models::Named(name) => vec![engine.model(name, None)?],
        Models::First => highest_versions(engine),
    };
    let count = ready.len();
    let Some(paths) = document["paths"].as_object_mut() else { return Err(broken_base("paths")) };
    if !has_console {
        OF_CONSOLE.iter().for_each(|path| drop(paths.remove(*path)));
    }
    let shown = add_models(paths, &ready);
    document["x-galatea-models"] = json!({ "ready": count, "shown": shown });
    serde_json::to_vec(&document).map_err(broken_base)
}

fn base() -> Result<Value> {
    serde_json::from_str(BASE).map_err(broken_base)
}

fn broken_base(what: impl std::fmt::Display) -> Error {
    Error::internal(format!("cannot make the description of the routes: {what}"))
}

/// Returns each ready model, in the version that answers requests without a version.
fn highest_versions(engine: &Engine) -> Vec<Arc<ServedModel>> {
    let mut ready = engine.ready_models();
    ready.dedup_by(|a, b| a.config().name() == b.config().name());
    let highest = |model: &Arc<ServedModel>| engine.model(model.config().name(), None).ok();
    ready.iter().filter_map(highest).collect()
}

/// Adds entries for models. Returns the number of models.
fn add_models(paths: &mut Map<String, Value>, ready: &[Arc<ServedModel>]) -> usize {
    let (mut shown, mut tensors) = (0, 0);
    for model in ready.iter().filter(|model| is_plain(model.config().name())) {
        if shown >= MOST_MODELS || tensors >= MOST_TENSORS {
            break;
        }
        tensors += model.config().inputs().len() + model.config().outputs().len();
        shown += 1;
        paths.extend(model::entries(model.config()));
    }
    shown
}

/// Returns `true` if a path can contain the name as it is, without a meaning in a template. The server resolves no
/// percent escapes, so clients that escape a name do not find its model.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte))
}

/// Resolves the percent escapes of a text.
fn unescaped(text: &str) -> Result<String> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8();
    let no_text = |_| Error::invalid_arg("the name of the model in the query is not text");
    decoded.map(Cow::into_owned).map_err(no_text)
}

#[cfg(test)]
mod tests;
