//! Load reports for load balancers (ORCA) in the answers to inference requests that ask for one.
//!
//! `generate` has Triton's own report too: the use of a language model's key-value cache, for the names that Triton knows.

use galatea_engine::Engine;
use galatea_protocol::{LoadReport, ReportForm, ReportPlace};

use crate::{request::received_request::Sender, response::Response, state::ServerState};

const ASKED: &str = "endpoint-load-metrics-format";
const REPORT: &str = "Endpoint-Load-Metrics";

/// The metric family of a cache, as backends of language models define it. The label below names the figure.
const FAMILY: &str = "nv_trt_llm_kv_cache_block_metrics";
const TYPE: &str = "kv_cache_block_type";
/// The most series that are read. A model has a few.
const MAX_SERIES: usize = 256;

/// Adds a report to the response of `infer`, if the request asks for one or every answer has one.
pub(crate) fn added_to(
    mut response: Response,
    state: &ServerState,
    sender: &Sender<'_>,
) -> Response {
    if let Some(form) = wanted(state, sender.head.get(ASKED)) {
        response.head.set(REPORT, report(&state.engine, sender, form));
    }
    response
}

/// Adds a report to the response of `generate`: Triton's, if the request asks as clients of Triton do and a model has the figures.
pub(crate) fn added_to_generated(
    mut response: Response,
    state: &ServerState,
    sender: &Sender<'_>,
) -> Response {
    let format = sender.head.get(ASKED).and_then(Format::named);
    let of_cache = format.and_then(|format| Some(CacheLoad::of(&state.engine)?.report(format)));
    match of_cache {
        Some(report) => {
            response.head.set(REPORT, report);
            response
        }
        None => added_to(response, state, sender),
    }
}

fn wanted(state: &ServerState, asked: Option<&[u8]>) -> Option<ReportForm> {
    let form = asked.and_then(ReportForm::named);
    form.or(state.options.always_reports_load.then_some(ReportForm::Text))
}

fn report(engine: &Engine, sender: &Sender<'_>, form: ReportForm) -> String {
    let (load, cache) = (engine.server_load(), CacheLoad::of(engine));
    if cache.is_none() && sender.caller.may_read_all() {
        return LoadReport::shared_header(&load, form);
    }
    let may_know = |model: &str| sender.caller.may_read(model);
    let mut report = LoadReport::new(&load, ReportPlace::Answer, may_know);
    if let Some(cache) = cache {
        report.add_named("kv_cache_utilization", cache.utilization());
        report.add_named("max_token_capacity", cache.capacity() as f64);
    }
    report.to_header(form)
}

/// The forms of Triton's report, by the names that it knows.
#[derive(Clone, Copy, Debug)]
enum Format {
    Text,
    Json,
}

impl Format {
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"text" => Some(Self::Text),
            b"json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// The load of a cache, in blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CacheLoad {
    used: f64,
    most: f64,
    tokens_per_block: f64,
}

impl CacheLoad {
    /// Returns `None` unless all three figures are known.
    fn of(engine: &Engine) -> Option<Self> {
        let (mut used, mut most, mut tokens_per_block) = (None, None, None);
        for series in engine.custom_metrics(FAMILY, MAX_SERIES) {
            let value = series.value().ok().filter(|value| value.is_finite() && *value >= 0.0);
            match series.labels().get(TYPE).map(String::as_str) {
                Some("used") => used = value,
                Some("max") => most = value,
                Some("tokens_per") => tokens_per_block = value,
                _ => {}
            }
        }
        Some(Self { used: used?, most: most?, tokens_per_block: tokens_per_block? })
    }

    fn utilization(self) -> f64 {
        if self.most > 0.0 { self.used / self.most } else { 0.0 }
    }

    fn capacity(self) -> u64 {
        // `as` to an integer saturates.
        (self.most * self.tokens_per_block) as u64
    }

    fn report(self, format: Format) -> String {
        let (utilization, capacity) = (self.utilization(), self.capacity());
        match format {
            Format::Text => format!(
                "TEXT named_metrics.kv_cache_utilization={utilization:.6}, \
                 named_metrics.max_token_capacity={capacity}"
            ),
            Format::Json => format!(
                r#"JSON {{"named_metrics":{{"kv_cache_utilization":{utilization:?},"max_token_capacity":{capacity}}}}}"#
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_report_is_written_as_text_and_json() {
        let report = |used: f64, most: f64, format: Format| {
            let load = CacheLoad { used, most, tokens_per_block: 64.0 };
            load.report(format)
        };
        assert_eq!(
            report(3.0, 8.0, Format::Text),
            "TEXT named_metrics.kv_cache_utilization=0.375000, named_metrics.max_token_capacity=512"
        );
        assert_eq!(
            report(3.0, 8.0, Format::Json),
            r#"JSON {"named_metrics":{"kv_cache_utilization":0.375,"max_token_capacity":512}}"#
        );
        assert_eq!(
            report(0.0, 0.0, Format::Json),
            r#"JSON {"named_metrics":{"kv_cache_utilization":0.0,"max_token_capacity":0}}"#
        );
        assert!(report(1.0, f64::MAX, Format::Text).ends_with("=18446744073709551615"));
    }
}
