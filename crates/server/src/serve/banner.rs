//! The tables of the start, which people read and scripts search.

use galatea_engine::{ControlMode, Engine, IndexEntry};

use super::backends::Backends;
use crate::{options::ServeOptions, table::Table};

pub fn log_tables(engine: &Engine, backends: &Backends, options: &ServeOptions) {
    log::info!("{}", Table::new(["Repository Agent", "Path"]).message());
    log::info!("{}", backends.table().message());
    log::info!("{}", models(&engine.repository_index(false)).message());
    log::info!("{}", settings(engine, options).message());
}

fn models(index: &[IndexEntry]) -> Table {
    let mut table = Table::new(["Model", "Version", "Status"]);
    // A model nobody asked to load has no state, and no row.
    for entry in index {
        let Some(state) = entry.state else { continue };
        let version = entry.version.map_or_else(|| "-".to_owned(), |v| v.to_string());
        let status = match entry.reason.as_str() {
            "" => state.to_owned(),
            reason => format!("{state}: {reason}"),
        };
        table.row([entry.name.clone(), version, status]);
    }
    table
}

fn settings(engine: &Engine, options: &ServeOptions) -> Table {
    let mut table = Table::new(["Option", "Value"]);
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    let flag = |on: bool| u8::from(on).to_string();
    let o = &options.engine;
    row("server_id", o.server_id.clone());
    row("server_version", engine.version().to_owned());
    row("server_extensions", engine.extensions().join(" "));
    for (i, path) in o.repositories.iter().enumerate() {
        row(&format!("model_repository_path[{i}]"), path.display().to_string());
    }
    row("model_control_mode", control_mode(o.control_mode).to_owned());
    for (i, model) in o.startup_models.iter().enumerate() {
        row(&format!("startup_models_{i}"), model.clone());
    }
    row("strict_model_config", flag(!o.auto_completes_config));
    row("model_load_thread_count", o.load_thread_count.to_string());
    row("rate_limit", "OFF".to_owned());
    row("pinned_memory_pool_byte_size", o.metrics.pinned_memory_pool_bytes.to_string());
    row("strict_readiness", flag(o.has_strict_readiness));
    row("exit_timeout", o.exit_timeout.as_secs().to_string());
    row("cache_enabled", flag(false));
    row(
        "runtime_downloads",
        if options.runtimes.may_download { "auto" } else { "never" }.to_owned(),
    );
    table
}

fn control_mode(mode: ControlMode) -> &'static str {
    match mode {
        ControlMode::None => "MODE_NONE",
        ControlMode::Explicit => "MODE_EXPLICIT",
    }
}
