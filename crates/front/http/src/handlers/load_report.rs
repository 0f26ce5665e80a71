//! Load reports for load balancers (ORCA): the use of a language model's key-value cache, added to an answer of
//! `generate` if the request asks for it.

use galatea_engine::Engine;
use galatea_http1::RequestHead;

use crate::response::Response;

const ASKED: &str = "endpoint-load-metrics-format";
const REPORT: &str = "Endpoint-Load-Metrics";

/// The metric family that a report is made of, as backends of language models define it. The label below names the figure.
const FAMILY: &str = "nv_trt_llm_kv_cache_block_metrics";
const TYPE: &str = "kv_cache_block_type";
/// The most series that are read. A model has a few.
const MAX_SERIES: usize = 256;

/// Adds a report to the response, if the request asks for one and a model has the figures.
pub(crate) fn added_to(mut response: Response, engine: &Engine, headers: &RequestHead) -> Response {
    let format = headers.get(ASKED).and_then(Format::named);
    let report = format.and_then(|format| Some(CacheLoad::of(engine)?.report(format)));
    if let Some(report) = report {
        response.head.set(REPORT, report);
    }
    response
}

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

    fn report(self, format: Format) -> String {
        let utilization = if self.most > 0.0 { self.used / self.most } else { 0.0 };
        // `as` to an integer saturates.
        let capacity = (self.most * self.tokens_per_block) as u64;
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
