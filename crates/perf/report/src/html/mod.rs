//! The picture of one or several runs: one page that needs nothing else, neither a network nor a script.
//!
//! Everything is drawn here as SVG; colours and sizes are in the style sheet, which follows the reader's choice of
//! light or dark. The page is well-formed XML, so that tests can read it as such.

mod axis;
mod breakdown;
mod compare;
mod figures;
mod format;
mod head;
mod headline;
mod line_chart;
mod markup;
mod percentiles;
mod scale;
mod stacked_bars;
mod style;
mod table;
#[cfg(test)]
mod tests;
mod throughput;
mod times_table;
mod unstable;
mod verdict;
mod windows;

use galatea_perf_types::summary::Summary;

use markup::Markup;

/// Name of SVG's elements; nothing is ever fetched from there.
const SVG: &str = "http://www.w3.org/2000/svg";

/// No network, whatever a name in a summary may hold.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The page of these runs; the first is the one that was just measured, the others are what it is compared with.
pub fn page(runs: &[Summary]) -> String {
    let names = figures::names(runs);
    let title = runs.first().map_or("", |run| run.model.as_str());
    let mut html = Markup::default();
    html.verbatim("<!DOCTYPE html>\n");
    html.element("html", &[("lang", &"en")], |html| {
        html.element("head", &[], |html| {
            html.empty("meta", &[("charset", &"utf-8")]);
            html.empty("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &POLICY)]);
            let scale = "width=device-width, initial-scale=1";
            html.empty("meta", &[("name", &"viewport"), ("content", &scale)]);
            html.empty("meta", &[("name", &"color-scheme"), ("content", &"light dark")]);
            html.leaf("title", &[], format_args!("{title} – load test"));
            html.element("style", &[], |html| html.verbatim(include_str!("style.css")));
        });
        html.element("body", &[], |html| {
            html.element("main", &[], |html| sections(html, runs, &names));
            html.element("script", &[], |html| html.verbatim(include_str!("tips.js")));
        });
    });
    html.line();
    html.finish()
}

fn sections(html: &mut Markup, runs: &[Summary], names: &[String]) {
    head::draw(html, runs, names);
    if runs.iter().any(|run| !figures::points(run).is_empty()) {
        pictures(html, runs, names);
    }
    head::draw_runs(html, runs, names);
}

fn pictures(html: &mut Markup, runs: &[Summary], names: &[String]) {
    unstable::draw(html, runs, names);
    throughput::draw(html, runs, names);
    compare::draw(html, runs, names);
    percentiles::draw(html, runs, names);
    breakdown::draw(html, runs, names);
    windows::draw(html, runs, names);
}
