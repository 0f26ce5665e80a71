//! `docs/metrics.md`, made from the table of families.

use std::fmt::Write;

use crate::families::{Family, SECTIONS};

const HEAD: &str = "\
# Metrics

Made from the program's own table by `galatea manual metrics`; a test compares. They are served as Prometheus text at
`/metrics` of the metrics port (`--metrics-port`, 8002 by default), unless `--allow-metrics=false`. Each is always shown,
unless its section or row says when.

Families with `nv_` are Triton's, with its names, help texts and units; those with `galatea_` are this server's own. What
differs from Triton is in [compat.md](compat.md).

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
        write_section(&mut page, section.families);
    }
    page
}

/// Writes labels and condition of a section as a sentence if all its families have the same, else as columns.
fn write_section(page: &mut String, families: &[Family]) {
    let labels = common(families, labels_of);
    let shown = common(families, |family| family.shown.to_owned());
    let about_labels = labels.iter().filter(|labels| !labels.is_empty());
    let about_shown = shown.iter().filter(|shown| !shown.is_empty());
    let about: Vec<String> = about_labels
        .map(|labels| format!("Labels: {labels}."))
        .chain(about_shown.map(|shown| format!("Shown {shown}.")))
        .collect();
    if !about.is_empty() {
        let _ = write!(page, "{}\n\n", about.join(" "));
    }
    let (has_labels, has_shown) = (labels.is_none(), shown.is_none());
    let columns = |cells: [&str; 3]| {
        let [labels, help, shown] = cells.map(|cell| format!(" {cell} |"));
        let labels = if has_labels { labels } else { String::new() };
        let shown = if has_shown { shown } else { String::new() };
        labels + &help + &shown
    };
    let _ = writeln!(page, "| name | type |{}", columns(["labels", "what it says", "shown"]));
    let _ = writeln!(page, "|---|---|{}", columns(["---"; 3]).replace(' ', ""));
    for family in families {
        let shown = if family.shown.is_empty() { "always" } else { family.shown };
        let more = columns([&labels_of(family), family.help, shown]);
        let _ = writeln!(page, "| `{}` | {} |{more}", family.name, family.kind.name());
    }
}

fn labels_of(family: &Family) -> String {
    let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
    labels.join(", ")
}

/// Returns what is the same for all families, if it is.
fn common(families: &[Family], of: impl Fn(&Family) -> String) -> Option<String> {
    let mut all = families.iter().map(of);
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}
