//! Pages of one file that need no network: the data as JSON, and the scripts that draw it. Parts of the charts are those of the
//! server's console. [`page`] makes the page of one or several runs.

#[cfg(test)]
#[path = "../examples/samples/mod.rs"]
mod samples;

use galatea_perf_types::summary::Summary;

/// Scripts with the parts of charts, which the server's console draws with too.
pub const CHART_SCRIPTS: [&str; 3] = [
    include_str!("../../../front/console/page/dom.js"),
    include_str!("../../../front/console/page/scale.js"),
    include_str!("../../../front/console/page/charts.js"),
];

/// The script that draws requests over time, which the console draws with too. It needs [`CHART_SCRIPTS`].
pub const TIMELINE_SCRIPT: &str = include_str!("../../../front/console/page/timeline.js");

/// Scripts that write figures and tables, and that follow the pointer. They need [`CHART_SCRIPTS`].
pub const FIGURE_SCRIPTS: [&str; 3] = [
    include_str!("../page/numbers.js"),
    include_str!("../page/tables.js"),
    include_str!("../page/page.js"),
];

/// The style of charts, figures and tables, for light and dark, phones and paper.
pub const FIGURE_STYLE: &str = include_str!("../page/style.css");

/// The scripts that draw runs. Each comes after those that it imports from.
const RUN_SCRIPTS: [&str; 9] = [
    include_str!("../page/figures.js"),
    include_str!("../page/verdict.js"),
    include_str!("../page/head.js"),
    include_str!("../page/throughput.js"),
    include_str!("../page/compare.js"),
    include_str!("../page/percentiles.js"),
    include_str!("../page/breakdown.js"),
    include_str!("../page/windows.js"),
    include_str!("../page/report.js"),
];

/// The page around the parts. Its policy allows no network, whatever text a name in the data has.
const FRAME: &str = r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main><noscript><p>This page needs JavaScript to draw the figures that it carries.</p></noscript></main>
<script id="{id}" type="application/json">{data}</script>
<script type="module">
{script}</script>
</body>
</html>
"#;

/// The parts of a page that is one file and needs no network.
#[derive(Debug)]
pub struct PageParts<'a> {
    /// The title until the scripts set another.
    pub title: &'a str,
    /// The id of the element with the data.
    pub data_id: &'a str,
    /// The data that the scripts draw, as JSON.
    pub data: String,
    /// Style sheets.
    pub styles: &'a [&'a str],
    /// Scripts. Each comes after those that it imports from.
    pub scripts: Vec<&'a str>,
}

impl PageParts<'_> {
    /// Assembles the page.
    pub fn assemble(&self) -> String {
        // In JSON this character occurs only within strings. Escaped, it cannot end the element.
        let data = self.data.replace('<', "\\u003c");
        let frame = FRAME.replace("{title}", self.title).replace("{id}", self.data_id);
        let frame = frame.replace("{style}", &self.styles.concat());
        frame.replace("{script}", &joined(&self.scripts)).replace("{data}", &data)
    }
}

/// Makes the page of these runs; the first is the one just measured, the others are for comparison.
///
/// # Errors
/// If the runs cannot be written as JSON.
pub fn page(runs: &[Summary]) -> serde_json::Result<String> {
    let page = PageParts {
        title: "Load test",
        data_id: "runs-data",
        data: serde_json::to_string(runs)?,
        styles: &[FIGURE_STYLE],
        scripts: [&CHART_SCRIPTS[..], &FIGURE_SCRIPTS, &RUN_SCRIPTS].concat(),
    };
    Ok(page.assemble())
}

/// Joins scripts into one: all names of a module are known in the later ones. Indentation and comment lines are removed;
/// no text in the scripts continues on the next line.
fn joined(scripts: &[&str]) -> String {
    let lines = scripts.iter().flat_map(|script| script.lines()).map(str::trim_start);
    let own = lines.filter(|line| !line.starts_with("import ") && !line.starts_with("//"));
    own.flat_map(|line| [line.strip_prefix("export ").unwrap_or(line), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing_external_and_contains_the_runs() {
        for (name, runs) in samples::all() {
            let page = page(&runs).expect("a page");
            let (_, data) = page.split_once("type=\"application/json\">").expect("the runs");
            let (data, script) = data.split_once("</script>").expect("their end");
            let written = serde_json::to_string(&runs).expect("JSON");
            assert!(data.replace("\\u003c", "<") == written && !data.contains('<'), "{name}");
            assert_eq!(page.matches("<script").count(), 2, "{name}: only our own scripts");
            assert_eq!(page.matches("</script").count(), 2, "{name}");
            assert!(!script.contains("import ") && !script.contains("fetch("));
        }
        let style = include_str!("../page/style.css");
        assert!(!style.contains("url(") && !style.contains("@import"));
    }
}
