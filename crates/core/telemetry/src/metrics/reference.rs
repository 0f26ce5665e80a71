//! `docs/metrics.md`, made from the table of families.

use std::fmt::Write;

use crate::families::{Family, SECTIONS};

const HEAD: &str = "\
# Metrics

Made from the program's own table by `galatea manual metrics`; a test compares. They are served as Prometheus text at
`/metrics` of the metrics port (`--metrics-port`, 8002 by default), unless `--allow-metrics=false`.

Families with `nv_` are Triton's, with its names, help texts and units; those with `galatea_` are this server's own. The
differences from Triton are in [compat.md](compat.md).

- Those of a model have the labels `model` and `version`; `namespace` with `--model-namespacing`; and a label `_key` for each
  of `metric_tags` in its configuration. They begin at zero when the version is loaded.
- A histogram has a sample for each bucket (label `le`), `_sum` and `_count`. Buckets of other bounds, of any histogram
  below: `model_metrics { metric_control { metric_identifier { family: \"galatea_inference_request_duration_seconds\" }
  histogram_options { buckets: [ 0.001, 0.01, 0.1 ] } } }` in the model's configuration, 200 at most.
- A summary has a sample for each quantile (label `quantile`; `--metrics-config=summary_quantiles=0.5:0.05,0.99:0.001`),
  `_sum` and `_count`. Quantiles are of the last 48 to 60 seconds, `Nan` where nothing happened in them, and at most 1/64 of
  their value away from the exact ones, whatever error is asked for (the number behind the colon). Sum and count go back
  to the load. Summaries cannot be added over servers; histograms can.
- The figures of one model in one answer fit each other: what a histogram counts is what the counters count.
";

/// Returns the reference of all metrics as Markdown.
pub fn reference() -> String {
    let mut page = String::from(HEAD);
    for section in SECTIONS {
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## {}\n\n", section.title);
        page.push_str("| name | type | labels | what it says | shown |\n|---|---|---|---|---|\n");
        for family in section.families {
            row(&mut page, family);
        }
    }
    page
}

fn row(page: &mut String, family: &Family) {
    let Family { name, kind, help, labels, shown } = family;
    let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
    let shown = if shown.is_empty() { "always" } else { shown };
    let _ =
        writeln!(page, "| `{name}` | {} | {} | {help} | {shown} |", kind.name(), labels.join(", "));
}
