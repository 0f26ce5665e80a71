//! From checked options to [`Settings`].

use std::time::Duration;

use galatea_client::{Protocol, Tls};
use galatea_perf_types::settings::{
    Calls, DataSettings, DataSource, Load, MetricsSettings, Search, Settings, TraceSettings,
    Verbosity, Window,
};

use super::{
    error::OptionError,
    given::{Given, GivenTls},
    intervals,
};

pub fn settings(given: Given) -> Result<Settings, OptionError> {
    let load = load(&given)?;
    let url = given.url.clone().unwrap_or_else(|| default_url(given.protocol));
    Ok(Settings {
        verbosity: verbosity(given.verbosity),
        search: search(&given),
        latency_limit: Some(given.latency_limit).filter(|&limit| limit > 0),
        window: window(&given),
        percentile: u8::try_from(given.percentile).ok(),
        request_count: Some(given.request_count).filter(|&count| count > 0),
        calls: Calls {
            asynchronous: given.asynchronous || given.streaming,
            forced_sync: given.forced_sync,
            streaming: given.streaming,
        },
        sequences: given.sequences,
        tls: tls(&url, given.protocol, &given.tls),
        metrics: metrics(&url, &given),
        trace: TraceSettings { fields: given.trace },
        data: DataSettings {
            source: source(given.zero_input, given.user_data),
            shapes: given.shapes,
            string_length: given.string_length,
            string_data: given.string_data,
            input_format: given.input_format,
            output_format: given.output_format,
        },
        model_name: given.model_name,
        model_version: given.model_version,
        url,
        protocol: given.protocol,
        batch_size: given.batch_size,
        load,
        stability: given.stability,
        max_trials: given.max_trials,
        warmup_request_count: given.warmup_request_count,
        max_threads: given.max_threads,
        shared_memory: given.shared_memory,
        output_region_size: given.output_region_size,
        request_parameters: given.request_parameters,
        headers: given.headers,
        compression: given.compression.unwrap_or_default(),
        bls_composing_models: given.bls_composing_models,
        csv_file: given.csv_file,
        verbose_csv: given.verbose_csv,
        profile_export_file: given.profile_export_file,
        json_file: given.json_file,
        html_file: given.html_file,
        compare: given.compare,
        label: given.label,
    })
}

fn load(given: &Given) -> Result<Load, OptionError> {
    if let Some(file) = &given.intervals_file {
        return Ok(Load::CustomIntervals(intervals::read(file)?));
    }
    Ok(match (given.periodic, given.rate) {
        (Some(range), _) => Load::PeriodicConcurrency { range, period: given.period },
        (None, Some(range)) => Load::RequestRate { range, distribution: given.distribution },
        (None, None) => Load::Concurrency(given.concurrency_range()),
    })
}

fn default_url(protocol: Protocol) -> String {
    format!("localhost:{}", protocol.default_port())
}

fn verbosity(count: u8) -> Verbosity {
    match count {
        0 => Verbosity::Quiet,
        1 => Verbosity::Verbose,
        _ => Verbosity::Extra,
    }
}

/// Intervals are one load: there is nothing to search.
fn search(given: &Given) -> Search {
    if given.intervals_file.is_some() { Search::Linear } else { given.search }
}

fn window(given: &Given) -> Window {
    match (given.request_count, given.counts_windows) {
        (0, true) => Window::Count(given.window_count),
        (0, false) => Window::Time(given.window),
        (count, _) => Window::Count(count),
    }
}

fn source(zero: bool, files: Vec<std::path::PathBuf>) -> DataSource {
    match (zero, files.is_empty()) {
        (true, _) => DataSource::Zero,
        (false, true) => DataSource::Random,
        (false, false) => DataSource::Files(files),
    }
}

/// HTTP by the URL's scheme, as libcurl does; gRPC when requested.
fn tls(url: &str, protocol: Protocol, given: &GivenTls) -> Option<Tls> {
    match protocol {
        Protocol::Http => has_https(url).then(|| Tls {
            roots: given.https_roots.clone(),
            certificate_chain: given.https_certificate.clone(),
            certificate_is_der: given.https_certificate_is_der,
            private_key: given.https_private_key.clone(),
            private_key_is_der: given.https_private_key_is_der,
            verify_peer: !given.https_skips_peer,
            verify_host: !given.https_skips_host,
        }),
        Protocol::Grpc => given.grpc.then(|| Tls {
            roots: given.grpc_roots.clone(),
            certificate_chain: given.grpc_certificate_chain.clone(),
            certificate_is_der: false,
            private_key: given.grpc_private_key.clone(),
            private_key_is_der: false,
            verify_peer: true,
            verify_host: true,
        }),
    }
}

fn has_https(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"))
}

fn metrics(url: &str, given: &Given) -> Option<MetricsSettings> {
    given.collects_metrics.then(|| MetricsSettings {
        url: given.metrics_url.clone().unwrap_or_else(|| format!("{}:8002/metrics", host(url))),
        interval: Duration::from_millis(given.metrics_interval.unwrap_or(1000)),
    })
}

/// The host of a URL, as it stands there: IPv6 with its brackets.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    match authority.rsplit_once(':') {
        Some((host, _)) if !host.starts_with('[') || host.ends_with(']') => host,
        _ => authority,
    }
}
