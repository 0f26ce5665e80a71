//! `--metrics-config`.

use galatea_command_line::{Notice, Occurrence, ValueError, parse_bool};

use super::super::{error::StoreResult, serve_flags::ServeFlags};

const KNOWN: &str =
    "the settings are counter_latencies, histogram_latencies, summary_latencies, summary_quantiles";

pub(in super::super) fn metrics_config(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    let malformed = || given.malformed("<setting>=<value>");
    let (key, value) = given.text.split_once('=').ok_or_else(malformed)?;
    if key.is_empty() || key.contains(',') || value.is_empty() {
        return Err(malformed().into());
    }
    let metrics = &mut flags.serve.engine.metrics;
    let switch = match key {
        "counter_latencies" => &mut metrics.has_counter_latencies,
        "histogram_latencies" => &mut metrics.has_histogram_latencies,
        "summary_latencies" => &mut metrics.has_summary_latencies,
        "summary_quantiles" => {
            summary_quantiles(flags, given, value);
            return Ok(());
        }
        _ => {
            let (option, given) = (given.names.plain(), &given.text);
            let text = format!("{option}={given} has no effect: {KNOWN}");
            flags.notices.push(Notice::Warning(text));
            return Ok(());
        }
    };
    let not_bool = || given.bad(ValueError::NotBool(value.to_owned()));
    *switch = parse_bool(value).ok_or_else(not_bool)?;
    Ok(())
}

/// Reads `0.5:0.05,0.99:0.001`: quantiles with their allowed error. Other parts are skipped with a warning, as in Triton. If
/// none is valid, the quantiles stay as they were.
fn summary_quantiles(flags: &mut ServeFlags, given: &Occurrence, value: &str) {
    let mut quantiles = Vec::new();
    for part in value.split(',') {
        match quantile(part) {
            Some(quantile) => quantiles.push(quantile),
            None => flags.notices.push(Notice::Warning(format!(
                "{}: '{part}' of summary_quantiles is left out: <quantile>:<error> is expected, a quantile from 0 \
                 to 1, such as 0.99:0.001",
                given.names.plain()
            ))),
        }
    }
    if !quantiles.is_empty() {
        flags.serve.engine.metrics.summary_quantiles = quantiles;
    }
}

/// Reads a quantile. Its error has no effect: quantiles are as exact as most users want. Triton reads only the number at the
/// start of the error, so `0.0.1` is accepted.
fn quantile(part: &str) -> Option<f64> {
    let (quantile, error) = part.split_once(':')?;
    let quantile = quantile.trim().parse().ok()?;
    let is_number = error.trim().starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (is_number && (0.0..=1.0).contains(&quantile)).then_some(quantile)
}
