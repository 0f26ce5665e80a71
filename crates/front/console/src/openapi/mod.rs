//! The OpenAPI document of the HTTP routes, with entries for each model that is ready: what it takes and what it returns.
//!
//! What holds for every server stands in `openapi/base.json`, beside the sources.

mod model;

use std::{borrow::Cow, sync::Arc};

use galatea_engine::{Engine, ServedModel};
use galatea_types::{Error, Result, product};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

/// What it says whatever models there are.
pub const BASE: &str = include_str!("../../openapi/base.json");
/// Routes that only a server with a console has.
const OF_CONSOLE: [&str; 3] = ["/", "/docs", "/console/events"];

/// Most models that have entries where none is asked for.
const MOST_MODELS: usize = 100;
/// No more models follow once those before have so many inputs and outputs.
const MOST_TENSORS: usize = 2000;

/// Which models have entries of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Models {
    /// The first hundred, by name.
    First,
    /// This one.
    Named(String),
}

impl Models {
    /// As the query of an address says it: `model=NAME`, with percent escapes.
    ///
    /// # Errors
    /// `InvalidArg` for a name that is no text.
    pub fn of_query(query: &str) -> Result<Self> {
        let named = query.split('&').find_map(|pair| pair.strip_prefix("model="));
        named.map_or(Ok(Self::First), |name| Ok(Self::Named(unescaped(name)?)))
    }
}

/// The document as JSON. `has_console`: whether the page of the console is among the routes.
///
/// # Errors
/// As [`Engine::model`] where a model is asked for that is not ready.
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
    Error::internal(format!("the description of the routes cannot be made: {what}"))
}

/// Each model that is ready under its name, in the version that answers who names none.
fn highest_versions(engine: &Engine) -> Vec<Arc<ServedModel>> {
    let mut ready = engine.ready_models();
    ready.dedup_by(|a, b| a.config().name() == b.config().name());
    let highest = |model: &Arc<ServedModel>| engine.model(model.config().name(), None).ok();
    ready.iter().filter_map(highest).collect()
}

/// How many have got entries.
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

/// Whether a name stands in a path as it is, and means nothing in a template. The server resolves no percent escapes, so
/// clients that write others with escapes do not find them.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte))
}

/// Without its percent escapes.
fn unescaped(text: &str) -> Result<String> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8();
    let no_text = |_| Error::invalid_arg("the name of the model in the query is no text");
    decoded.map(Cow::into_owned).map_err(no_text)
}

#[cfg(test)]
mod tests;
