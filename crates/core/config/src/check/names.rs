//! Checks name, platform and backend of a model.

use super::{
    context::CheckContext,
    mistake::{Result, refuse},
};
use crate::{
    RawModelConfig,
    backend_advice::{NAME_A_BACKEND, backend_of, platform_advice},
    backend_table::{ENSEMBLE_PLATFORM, backend_for_platform, platforms_of},
};

pub(super) fn check(raw: &RawModelConfig, context: &CheckContext<'_>) -> Result<()> {
    let RawModelConfig { name: model, platform, backend, .. } = raw;
    let directory = context.directory_name;
    if model.is_empty() {
        let text = "model configuration must specify 'name'";
        return refuse("name", text, "write `name: \"...\"`: the name of the folder");
    }
    if model != directory {
        let text = format!(
            "unexpected directory name '{directory}' for model '{model}', directory name must equal model name"
        );
        let advice = format!(
            "write `name: \"{directory}\"`, leave out `name`, or call the folder `{model}`"
        );
        return refuse("name", text, advice);
    }
    let is_ensemble = platform == ENSEMBLE_PLATFORM;
    match (backend.is_empty(), is_ensemble) {
        (true, false) if platform.is_empty() => {
            let text = format!("must specify 'platform' or 'backend' for '{model}'");
            refuse("", text, NAME_A_BACKEND)
        }
        (true, false) => {
            let text = format!("unexpected platform type '{platform}' for {model}");
            refuse("platform", text, platform_advice(platform))
        }
        (false, true) => {
            let text = format!(
                "Ensemble model '{model}' must have platform type 'ensemble' and empty backend type"
            );
            refuse("backend", text, "remove `backend`")
        }
        (true, true) => Ok(()),
        (false, false) => check_pair(platform, backend),
    }
}

/// Checks platform and backend together. A backend with platforms of its own takes only these; any other takes all.
fn check_pair(platform: &str, backend: &str) -> Result<()> {
    let mut platforms = platforms_of(backend).peekable();
    if platforms.peek().is_none() || backend_for_platform(platform) == Some(backend) {
        return Ok(());
    }
    let advice = backend_of(backend).unwrap_or_else(|| {
        if platform.is_empty() {
            let platforms = platforms.map(|known| format!("`platform: \"{known}\"`"));
            return format!("write {}", platforms.collect::<Vec<_>>().join(" or "));
        }
        match backend_for_platform(platform) {
            Some(other) => format!(
                "`{platform}` is a platform of backend `{other}`: remove `platform`, or write `backend: \"{other}\"`"
            ),
            None => format!("remove `platform`: `backend: \"{backend}\"` says enough"),
        }
    });
    let field = if platform.is_empty() { "backend" } else { "platform" };
    let text = format!("unexpected 'platform' and 'backend' pair, got:{platform}, {backend}");
    refuse(field, text, advice)
}
