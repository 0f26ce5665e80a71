//! What the console shows of a running server, sampled.

mod failure;
mod model;
mod models;
mod server;

use serde::Serialize;

use self::model::ModelRow;
pub(crate) use self::{failure::FailureRow, models::Models, server::ServerRow};
use crate::{about::About, history::HistoryRow};

/// Everything: what a page that knows nothing needs.
#[derive(Debug, Serialize)]
pub(crate) struct State<'a> {
    pub sequence: u64,
    pub time_ms: u64,
    pub interval_ms: u64,
    pub server: &'a ServerRow,
    pub about: &'a About,
    pub models: Vec<ModelRow<'a>>,
    /// Beyond the most that are shown.
    pub models_left_out: usize,
    pub failures: Vec<FailureRow>,
    /// Older than those that are kept.
    pub failures_left_out: u64,
    pub history: HistoryRow,
}

/// What is different from the state or change before.
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
