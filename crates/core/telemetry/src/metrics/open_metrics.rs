//! The page as OpenMetrics 1.0, for scrapers that ask for it: the same names and values.
//!
//! A counter of that format has samples that end with `_total`. Triton's counters with other names keep their names, because
//! dashboards rely on them, and have the type `unknown`.

use std::fmt::Write;

/// Converts the page of [`render`](super::render) and the families of models to the other format.
pub fn to_open_metrics(page: &str) -> String {
    let mut out = String::with_capacity(page.len() + page.len() / 8);
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some((name, help)) =
            line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '))
        {
            let kind = lines.peek().and_then(|next| kind_of(next, name));
            let (family, _) = renamed(name, kind.unwrap_or("unknown"));
            let _ = writeln!(out, "# HELP {family} {help}");
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|t| t.split_once(' '))
        {
            let (family, kind) = renamed(name, kind);
            let _ = writeln!(out, "# TYPE {family} {kind}");
        } else if let Some(sample) = line.strip_suffix(" Nan") {
            let _ = writeln!(out, "{sample} NaN");
        } else if !line.is_empty() {
            let _ = writeln!(out, "{line}");
        }
    }
    out.push_str("# EOF\n");
    out
}

/// Returns the type of a family, from the line behind its help text.
fn kind_of<'l>(line: &'l str, family: &str) -> Option<&'l str> {
    line.strip_prefix("# TYPE ")?.strip_prefix(family)?.strip_prefix(' ')
}

/// Returns name and type of a family in OpenMetrics.
fn renamed<'f>(name: &'f str, kind: &'f str) -> (&'f str, &'f str) {
    match (kind, name.strip_suffix("_total")) {
        ("counter", Some(family)) => (family, kind),
        ("counter", None) => (name, "unknown"),
        _ => (name, kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_metrics_format_keeps_names_and_values() {
        let page = "# HELP nv_inference_count Number\n# TYPE nv_inference_count counter\n\
                    nv_inference_count{model=\"m\"} 3\n\
                    # HELP galatea_x_total Some\n# TYPE galatea_x_total counter\ngalatea_x_total 4\n\
                    # HELP nv_s A\n# TYPE nv_s summary\nnv_s{quantile=\"0.5\"} Nan\nnv_s_count 0\n";
        let expected = "# HELP nv_inference_count Number\n# TYPE nv_inference_count unknown\n\
                        nv_inference_count{model=\"m\"} 3\n\
                        # HELP galatea_x Some\n# TYPE galatea_x counter\ngalatea_x_total 4\n\
                        # HELP nv_s A\n# TYPE nv_s summary\nnv_s{quantile=\"0.5\"} NaN\nnv_s_count 0\n# EOF\n";
        assert_eq!(to_open_metrics(page), expected);
        assert_eq!(to_open_metrics(""), "# EOF\n");
    }
}
