//! The report as a page of one file for browsers. It has the report as JSON, and the scripts that draw it.

use galatea_perf_report::html::{
    CHART_SCRIPTS, FIGURE_SCRIPTS, FIGURE_STYLE, PageParts, TIMELINE_SCRIPT,
};

use crate::report::Report;

/// Makes the page.
///
/// # Errors
/// If the report cannot be written as JSON.
pub(crate) fn page(report: &Report) -> serde_json::Result<String> {
    let scripts = [TIMELINE_SCRIPT, include_str!("../page/trace.js")];
    let page = PageParts {
        title: "Traced requests",
        data_id: "trace-data",
        data: serde_json::to_string(report)?,
        styles: &[FIGURE_STYLE, include_str!("../page/style.css")],
        scripts: [&CHART_SCRIPTS[..], &FIGURE_SCRIPTS, &scripts].concat(),
    };
    Ok(page.assemble())
}
