//! Converts checked options to [`Settings`].

use std::{path::PathBuf, time::Duration};

use galatea_client::Protocol;
use galatea_perf_types::settings::{
    Calls, DataSettings, DataSource, Load, MetricsSettings, Search, Settings, Window,
};

use super::{error::OptionError, given_options::GivenOptions, intervals};

pub fn settings(given: GivenOptions) -> Result<Settings, OptionError> {
    let Settings { protocol, calls, .. } = given.settings;
    let default_url = || format!("localhost:{}", protocol.default_port());
    let url = given.url.clone().unwrap_or_else(default_url);
    Ok(Settings {
        load: load(&given)?,
        search: search(&given),
        window: window(&given),
        metrics: metrics(&url, &given),
        percentile: given.percentile.and_then(|percentile| u8::try_from(percentile).ok()),
        calls: Calls { asynchronous: calls.asynchronous || calls.streaming, ..calls },
        tls: match protocol {
            // The URL decides, as in libcurl.
            Protocol::Http => has_https(&url).then_some(given.https),
            Protocol::Grpc => given.uses_grpc_tls.then_some(given.grpc_tls),
        },
        data: DataSettings {
            source: source(given.zero_input, given.user_data),
            ..given.settings.data
        },
        compression: given.compression.unwrap_or_default(),
        url,
        ..given.settings
    })
}

fn load(given: &GivenOptions) -> Result<Load, OptionError> {
    if let Some(file) = &given.intervals_file {
        return Ok(Load::CustomIntervals(intervals::read(file)?));
    }
    Ok(match (given.periodic, given.rate) {
        (Some(range), _) => Load::PeriodicConcurrency { range, period: given.period.unwrap_or(10) },
        (None, Some(range)) => Load::RequestRate { range, distribution: given.distribution },
        (None, None) => Load::Concurrency(given.concurrency_range()),
    })
}

/// Returns the search. Intervals are one load, so there is nothing to search.
fn search(given: &GivenOptions) -> Search {
    if given.intervals_file.is_some() { Search::Linear } else { given.settings.search }
}

fn window(given: &GivenOptions) -> Window {
    match (given.settings.request_count, given.counts_windows) {
        (Some(count), _) => Window::Count(count),
        (None, true) => Window::Count(given.window_count.unwrap_or(50)),
        (None, false) => given.window.map_or(given.settings.window, Window::Time),
    }
}

fn source(zero: bool, files: Vec<PathBuf>) -> DataSource {
    match (zero, files.is_empty()) {
        (true, _) => DataSource::Zero,
        (false, true) => DataSource::Random,
        (false, false) => DataSource::Files(files),
    }
}

fn has_https(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"))
}

fn metrics(url: &str, given: &GivenOptions) -> Option<MetricsSettings> {
    given.collects_metrics.then(|| MetricsSettings {
        url: given.metrics_url.clone().unwrap_or_else(|| format!("{}:8002/metrics", host(url))),
        interval: Duration::from_millis(given.metrics_interval.unwrap_or(1000)),
    })
}

/// Returns the host of a URL as written: IPv6 with its brackets. A Unix socket is on this one.
fn host(url: &str) -> &str {
    if url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("unix:")) {
        return "localhost";
    }
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    match authority.rsplit_once(':') {
        Some((host, _)) if !host.starts_with('[') || host.ends_with(']') => host,
        _ => authority,
    }
}
