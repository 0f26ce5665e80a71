//! The options as given, before they are checked against each other.

use std::path::PathBuf;

use galatea_client::{Compression, Tls};
use galatea_perf_types::settings::{Distribution, Range, Settings};

/// The options as given, before they are checked against each other.
#[derive(Default)]
pub struct GivenOptions {
    /// Options that are stored directly. Settings that depend on several options are added last.
    pub settings: Settings,
    /// Warnings for the console, in order; emptied once reported.
    pub warnings: Vec<String>,
    /// The first word that belongs to no option.
    pub stray: Option<String>,
    pub url: Option<String>,
    pub concurrency: Option<Range<u64>>,
    pub old: OldOptions,
    pub rate: Option<Range<f64>>,
    pub periodic: Option<Range<u64>>,
    pub period: Option<u64>,
    pub intervals_file: Option<PathBuf>,
    pub distribution: Distribution,
    pub counts_windows: bool,
    /// Length of a window in milliseconds.
    pub window: Option<u64>,
    pub window_count: Option<u64>,
    /// The percentile; -1: the average.
    pub percentile: Option<i64>,
    pub zero_input: bool,
    pub user_data: Vec<PathBuf>,
    pub compression: Option<Compression>,
    /// TLS settings of HTTP, for URLs that begin with https.
    pub https: Tls,
    pub uses_grpc_tls: bool,
    pub grpc_tls: Tls,
    pub collects_metrics: bool,
    pub metrics_url: Option<String>,
    /// Interval in milliseconds.
    pub metrics_interval: Option<u64>,
}

/// `-t`, `-c` and `-d`, which are older than ranges.
#[derive(Default)]
pub struct OldOptions {
    pub are_used: bool,
    pub concurrency: Option<u64>,
    pub max_concurrency: u64,
    pub is_dynamic: bool,
}

impl GivenOptions {
    pub fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// Returns the range of the concurrency mode, even if another mode is in use.
    pub fn concurrency_range(&self) -> Range<u64> {
        let old = &self.old;
        let end = if old.is_dynamic { old.max_concurrency } else { 1 };
        let by_old = Range { start: old.concurrency.unwrap_or(1), end, step: 1 };
        self.concurrency.unwrap_or(by_old)
    }

    /// Returns the range of the rate mode, even if another mode is in use.
    pub fn rate_range(&self) -> Range<f64> {
        self.rate.unwrap_or(Range { start: 1.0, end: 1.0, step: 1.0 })
    }
}
