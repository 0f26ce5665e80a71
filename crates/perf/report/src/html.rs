//! The page of one or several runs: one file that needs no network. It has the runs as JSON, and the scripts that draw them.
//! Parts of the charts are those of the server's console.

#[cfg(test)]
#[path = "../examples/samples/mod.rs"]
mod samples;

use galatea_perf_types::summary::Summary;

/// The scripts of the page. Each comes after those that it imports from.
const SCRIPTS: [&str; 14] = [
    include_str!("../../../front/console/page/dom.js"),
    include_str!("../../../front/console/page/scale.js"),
    include_str!("../../../front/console/page/charts.js"),
    include_str!("../page/numbers.js"),
    include_str!("../page/figures.js"),
    include_str!("../page/verdict.js"),
    include_str!("../page/tables.js"),
    include_str!("../page/head.js"),
    include_str!("../page/throughput.js"),
    include_str!("../page/compare.js"),
    include_str!("../page/percentiles.js"),
    include_str!("../page/breakdown.js"),
    include_str!("../page/windows.js"),
    include_str!("../page/report.js"),
];

/// The page around the parts. Its policy allows no network, whatever text a name in a summary has.
const FRAME: &str = r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Load test</title>
<style>
{style}</style>
</head>
<body>
<main><noscript><p>This page needs JavaScript to draw the figures that it carries.</p></noscript></main>
<script id="runs-data" type="application/json">{runs}</script>
<script type="module">
{script}</script>
</body>
</html>
"#;

/// Makes the page of these runs; the first is the one just measured, the others are for comparison.
///
/// # Errors
/// If the runs cannot be written as JSON.
pub fn page(runs: &[Summary]) -> serde_json::Result<String> {
    // In JSON this character occurs only within strings. Escaped, it cannot end the element.
    let runs = serde_json::to_string(runs)?.replace('<', "\\u003c");
    let frame = FRAME.replace("{style}", include_str!("../page/style.css"));
    Ok(frame.replace("{script}", &script()).replace("{runs}", &runs))
}

/// Joins the scripts into one: all names of a module are known in the later ones. Indentation and comment lines are removed;
/// no text in the scripts continues on the next line.
fn script() -> String {
    let lines = SCRIPTS.iter().flat_map(|script| script.lines()).map(str::trim_start);
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
