//! The sampled state of a running server that the console shows.

mod failure;
mod model;
mod models;
mod server;

use serde::Serialize;

use self::model::ModelRow;
pub(crate) use self::{failure::FailureRow, models::Models, server::ServerRow};
use crate::{about::About, history::HistoryRow};

/// The whole state, for a page that has none yet.
#[derive(Debug, Serialize)]
pub(crate) struct State<'a> {
    pub sequence: u64,
    pub time_ms: u64,
    pub interval_ms: u64,
    pub server: &'a ServerRow,
    pub about: &'a About,
    pub models: Vec<ModelRow<'a>>,
    /// The number of models beyond the limit of the page.
    pub models_left_out: usize,
    pub failures: Vec<FailureRow>,
    /// The number of failures older than the kept ones.
    pub failures_left_out: u64,
    pub history: HistoryRow,
}

/// The differences from the previous state or change.
#[derive(Debug, Serialize)]
pub(crate) struct Change<'a> {
    pub sequence: u64,
    pub time_ms: u64,
    pub server: &'a ServerRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<&'a About>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelRow<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub removed: &'a [String],
    pub models_left_out: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureRow>,
}
