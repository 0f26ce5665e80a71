//! The tables of the start, which people read and scripts search.

use galatea_engine::{Engine, IndexEntry};
use galatea_types::product;

use super::backends::Backends;
use crate::{options::ServeOptions, table::Table};

pub fn log_tables(engine: &Engine, backends: &Backends, options: &ServeOptions) {
    log::info!("{}", Table::new(["Repository Agent", "Path"]).message());
    log::info!("{}", backends.table().message());
    log::info!("{}", models(&engine.repository_index(false).unwrap_or_default()).message());
    log::info!("{}", settings(engine, options).message());
}

fn models(index: &[IndexEntry]) -> Table {
    let mut table = Table::new(["Model", "Version", "Status"]);
    // A model that was never to be loaded has no state, and no row.
    for entry in index {
        let Some(state) = entry.state else { continue };
        let version = entry.version.map_or_else(|| "-".to_owned(), |v| v.to_string());
        let status = match entry.reason.as_str() {
            "" => state.to_owned(),
            // The log above has all of it.
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
    table.row(["cache_enabled".to_owned(), "0".to_owned()]);
    table
}
