//! Options for files, metrics and traces.

use std::path::Path;

use galatea_command_line::{Occurrence, options, set};

use super::{
    super::{
        given_options::GivenOptions,
        readers::{at_least, choice, failed, file_name},
    },
    row::{Outcome, Row, switch, value},
};

pub const ROWS: &[Row] = options! {
    /// Write the results as CSV.
    "" => value("file", set!(|given, text| given.settings.csv_file = Some(file_name(text)?)))
        .short('f'),
    /// More columns in the CSV: average latency, the client's times, GPU metrics.
    "verbose-csv" => switch(|given, v| v.put(&mut given.settings.verbose_csv)),
    /// Write every request's timestamps and data as JSON. The file must not exist yet.
    "profile-export-file" => value("file", |given, text| {
        if Path::new(&text.text).exists() {
            return Err(failed(text, "Path must not already exist."));
        }
        given.settings.profile_export_file = Some(file_name(text)?);
        Ok(())
    }),
    /// Read the server's GPU metrics during the measurement; they appear with --verbose-csv in the CSV.
    "collect-metrics" => switch(|given, v| v.put(&mut given.collects_metrics)),
    /// Address of those metrics. Default: port 8002 of the server, path /metrics.
    "metrics-url" => value("url", |given, v| v.put(&mut given.metrics_url)),
    /// Time between two reads of them. Default 1000.
    "metrics-interval" => value("msec",
        set!(|given, text| given.metrics_interval = Some(at_least(text, 1, "be > 0 msecs.")?))),
    /// Set the server's tracing: level. TIMESTAMPS and TENSORS may be given both.
    "trace-level" => value("OFF|TIMESTAMPS|TENSORS", trace_level),
    /// Set the server's tracing: one request in so many. The server's default is 1000.
    "trace-rate" => value("n", |given, text| {
        let rate: u64 = at_least(text, 0, "be >= 0.")?;
        set_trace(given, "trace_rate", rate)
    }),
    /// Set the server's tracing: how many traces at most; -1 for no bound.
    "trace-count" => value("n", |given, text| {
        let count: i64 = at_least(text, -1, "be >= 0 or set to -1 (default).")?;
        set_trace(given, "trace_count", count)
    }),
    /// Set the server's tracing: a new trace file after so many traces; 0 for one file at exit.
    "log-frequency" => value("n", |given, text| {
        let frequency: u64 = at_least(text, 0, "be >= 0.")?;
        set_trace(given, "log_frequency", frequency)
    }),
};

/// Sets trace levels. They add up as in perf_analyzer's help (its program keeps only the last); OFF must be alone.
fn trace_level(given: &mut GivenOptions, text: &Occurrence) -> Outcome {
    let choices = [("OFF", "OFF"), ("TIMESTAMPS", "TIMESTAMPS"), ("TENSORS", "TENSORS")];
    let available = "The available options are 'OFF', 'TIMESTAMPS', or 'TENSORS'.";
    let level = choice(text, &choices, available)?;
    let levels = given.settings.trace.fields.entry("trace_level".to_owned()).or_default();
    levels.retain(|other| level != "OFF" && other != "OFF" && other != level);
    levels.push(level.to_owned());
    Ok(())
}

/// Sets a trace setting. The trace extension carries numbers as text.
fn set_trace(given: &mut GivenOptions, field: &str, value: impl ToString) -> Outcome {
    given.settings.trace.fields.insert(field.to_owned(), vec![value.to_string()]);
    Ok(())
}
