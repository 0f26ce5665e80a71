//! The rows of the table of options in the log at start, as in Triton.

use std::path::Path;

use galatea_engine::ControlMode;

use crate::flags::ServeFlags;

/// Returns names and values in force: 0 and 1 for no and yes, modes in capitals.
pub(super) fn rows(flags: &ServeFlags) -> Vec<(String, String)> {
    let engine = &flags.serve.engine;
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push((name.to_owned(), value));
    row("server_id", engine.server_id.clone());
    row("exit_timeout", engine.exit_timeout.as_secs().to_string());
    for (index, path) in flags.serve.repositories.iter().chain(&flags.serve.paths).enumerate() {
        row(&format!("model_repository_path[{index}]"), shown(path));
    }
    row("strict_model_config", digit(!engine.auto_completes_config));
    row("strict_readiness", digit(engine.has_strict_readiness));
    row("model_control_mode", mode(engine.control_mode).to_owned());
    for (index, model) in engine.startup_models.iter().enumerate() {
        row(&format!("startup_models_{index}"), model.clone());
    }
    row("model_config_name", engine.model_config_name.clone());
    row("model_load_thread_count", engine.load_thread_count.to_string());
    row("rate_limit", flags.rate_limit.to_ascii_uppercase());
    row("pinned_memory_pool_byte_size", engine.metrics.pinned_memory_pool_bytes.to_string());
    // Always with a fraction.
    let capability = engine.gpus.min_compute_capability;
    row("min_supported_compute_capability", format!("{capability:?}"));
    row(
        "runtime_downloads",
        if flags.serve.runtimes.may_download { "AUTO" } else { "NEVER" }.to_owned(),
    );
    rows
}

/// Returns the path as given; of a web address without the part after `?`, which may be a signature.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    match text.split_once('?') {
        Some((address, _)) if address.starts_with("http") && address.contains("://") => {
            address.to_owned()
        }
        _ => text,
    }
}

fn digit(yes: bool) -> String {
    u8::from(yes).to_string()
}

fn mode(mode: ControlMode) -> &'static str {
    match mode {
        ControlMode::None => "MODE_NONE",
        ControlMode::Poll => "MODE_POLL",
        ControlMode::Explicit => "MODE_EXPLICIT",
    }
}
