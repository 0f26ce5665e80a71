//! The command line of `galatea top`.

use galatea_command_line::{Group, Kind, Occurrence, OptionRow, OptionSet, set};

use super::columns::Column;
use crate::{
    error::CommandError,
    options::{ServerOptions, server_rows},
};

#[derive(Debug)]
pub(crate) struct TopOptions {
    pub server: ServerOptions,
    pub metrics_url: Option<String>,
    /// Time between two looks, in seconds.
    pub interval: f64,
    pub is_once: bool,
    pub is_json: bool,
    pub sort: Column,
    /// Part of the names of models to show; empty: all are shown.
    pub filter: String,
}

impl Default for TopOptions {
    fn default() -> Self {
        Self {
            server: ServerOptions::default(),
            metrics_url: None,
            interval: 1.0,
            is_once: false,
            is_json: false,
            sort: Column::Requests,
            filter: String::new(),
        }
    }
}

pub(crate) const USAGE: &str = "Usage: galatea top [options]

Shows what the models of a running server do, again and again: requests, failures and inferences per second, batch
sizes, waiting requests, and times. Works with any server of the KServe v2 protocol: from its statistics, its
metrics, or both. Press h there for the keys. Where the output is no terminal, a table is printed for each interval.

";

impl OptionSet for TopOptions {
    type Error = CommandError;

    fn groups() -> &'static [Group<Self>] {
        const VIEW: &[OptionRow<TopOptions>] = &[
            OptionRow::new("interval", Kind::Number, "Seconds between two looks, 0.1 to 3600; 1 if it is not given.")
                .stores(set!(|o, v| o.interval = v.number()?.clamp(0.1, 3600.0))),
            OptionRow::new("once", Kind::Switch, "Measure one interval, print it, and end.")
                .stores(|o, v| v.put(&mut o.is_once)),
            OptionRow::new("sort", Kind::Choice(Column::WORDS), "The column to sort by: model, state, requests (if it is not given), failed, inferences, batch, pending, queue, compute, latency, p50, p99 or busy.")
                .stores(sort),
            OptionRow::new("filter", Kind::Text, "Only models with this text in their name.")
                .stores(|o, v| v.put(&mut o.filter)),
            OptionRow::new("metrics-url", Kind::Name, "Address of the metrics: http://host:port, with a path if it is not /metrics. Default: port 8002 of the same host.")
                .stores(|o, v| v.put(&mut o.metrics_url)),
        ];
        const SERVER: &[OptionRow<TopOptions>] = &server_rows!(
            "Seconds that one look may take; 10 if it is not given.",
            "Print a JSON object per interval, on a line of its own."
        );
        &[
            Group { title: "View", rows: VIEW, is_own: false },
            Group { title: "Server", rows: SERVER, is_own: false },
        ]
    }

    fn word(&mut self, word: String) -> Result<(), CommandError> {
        Err(CommandError::Words(format!(
            "unexpected word '{word}'; --filter {word} shows the models with that in their name, -u {word} asks that server"
        )))
    }
}

fn sort(options: &mut TopOptions, value: &Occurrence) -> Result<(), CommandError> {
    if let Some(column) = Column::named(&value.text) {
        options.sort = column;
    }
    Ok(())
}
