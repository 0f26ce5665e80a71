//! The tables in the log at start, which people read and scripts search.

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
};

use galatea_engine::Engine;
use galatea_telemetry::logger;
use galatea_types::product;

use crate::{backends::Backends, options::ServeOptions, table::Table};

/// Logs the tables. `agents` are names and libraries. If the start `failed` and that ends the server, a person at a terminal gets only the table of models: the
/// others would push the reasons off the screen.
pub fn log_tables(
    engine: &Engine,
    backends: &Backends,
    agents: &[(String, PathBuf)],
    options: &ServeOptions,
    failed: bool,
) {
    if failed && options.exits_on_error && io::stdout().is_terminal() {
        return log_table(&models(engine));
    }
    for table in [agent_table(agents), backends.table(), models(engine), settings(engine, options)]
    {
        log_table(&table);
    }
}

fn agent_table(agents: &[(String, PathBuf)]) -> Table {
    let mut table = Table::new(["Repository Agent", "Path"]);
    for (name, path) in agents {
        table.row([name.clone(), path.display().to_string()]);
    }
    table
}

fn log_table(table: &Table) {
    let shown = terminal_width().map(|width| table.text(width));
    log::info!(target: logger::TABLE, shown; "{}", table.text(usize::MAX));
}

/// Returns the columns of the terminal, if stdout is one and knows its size.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

fn models(engine: &Engine) -> Table {
    let mut table = Table::new(["Model", "Version", "Status"]);
    // A model that should not be loaded has no state, and no row.
    for entry in engine.repository_index(false).unwrap_or_default() {
        let Some(state) = entry.state else { continue };
        let version = entry.version.map_or_else(|| "-".to_owned(), |v| v.to_string());
        let status = match entry.reason.as_str() {
            "" => state.to_owned(),
            // The log above has the whole reason.
            reason => format!("{state}: {}", reason.lines().next().unwrap_or_default()),
        };
        let model = match &*entry.namespace {
            "" => entry.name.clone(),
            namespace => format!("{namespace}::{}", entry.name),
        };
        table.row([model, version, status]);
    }
    table
}

fn settings(engine: &Engine, options: &ServeOptions) -> Table {
    let mut table = Table::new(["Option", "Value"]);
    for (name, value) in &options.rows {
        table.row([name.clone(), value.clone()]);
        if name == "server_id" {
            table.row(["server_version".to_owned(), engine.version().to_owned()]);
            table.row([product::NAME.to_owned(), product::VERSION.to_owned()]);
            table.row(["server_extensions".to_owned(), engine.extensions().join(" ")]);
        }
    }
    let is_cached = u8::from(options.engine.response_cache.is_some());
    table.row(["cache_enabled".to_owned(), is_cached.to_string()]);
    table
}
