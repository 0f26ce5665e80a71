//! What every page must be: well-formed, free of anything from outside, and true to names and numbers.

#[path = "../../examples/samples/mod.rs"]
mod samples;

use std::collections::BTreeSet;

use galatea_perf_types::summary::Summary;

use super::page;

fn pages() -> Vec<(&'static str, Vec<Summary>, String)> {
    samples::all()
        .into_iter()
        .map(|(name, runs)| {
            let html = page(&runs);
            (name, runs, html)
        })
        .collect()
}

/// An opening, empty or closing tag.
struct Tag<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
    is_closing: bool,
    is_empty: bool,
}

/// Reads the page as XML and fails where it is not. Gives all tags, and all text between them.
fn read(html: &str) -> (Vec<Tag<'_>>, String) {
    let mut rest = html.strip_prefix("<!DOCTYPE html>").expect("a document type");
    let (mut tags, mut text, mut open) = (Vec::new(), String::new(), Vec::new());
    while let Some(start) = rest.find('<') {
        let between = &rest[..start];
        check_text(between);
        text.push_str(between);
        text.push('\n');
        let end = start + rest[start..].find('>').expect("an end of the tag");
        let tag = tag(&rest[start + 1..end]);
        if tag.is_closing {
            assert_eq!(open.pop(), Some(tag.name), "closed in the order opened");
        } else if !tag.is_empty {
            open.push(tag.name);
        }
        tags.push(tag);
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.trim().is_empty());
    (tags, text)
}

fn tag(inside: &str) -> Tag<'_> {
    if let Some(name) = inside.strip_prefix('/') {
        return Tag { name, attributes: Vec::new(), is_closing: true, is_empty: false };
    }
    let is_empty = inside.ends_with('/');
    let inside = inside.trim_end_matches('/');
    let (name, mut rest) = inside.split_once(' ').unwrap_or((inside, ""));
    assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()), "tag {name}");
    let mut attributes = Vec::new();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").expect("a quoted value");
        let (value, more) = value.split_once('"').expect("the end of the value");
        check_text(value);
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "attribute {name}");
        attributes.push((name, value));
        rest = more.trim_start();
    }
    let names: BTreeSet<_> = attributes.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), attributes.len(), "each attribute once");
    Tag { name, attributes, is_closing: false, is_empty }
}

fn check_text(text: &str) {
    assert!(!text.contains(['\u{0}', '\u{202e}']));
    for entity in text.split('&').skip(1) {
        let name = entity.split_once(';').map(|(name, _)| name);
        assert!(matches!(name, Some("amp" | "lt" | "gt" | "quot" | "#39")), "&{entity:.12}");
    }
}

fn attribute<'a>(tag: &Tag<'a>, name: &str) -> Option<&'a str> {
    tag.attributes.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
}

#[test]
fn every_page_is_well_formed_and_its_ids_are_unique() {
    for (name, _, html) in pages() {
        let (tags, _) = read(&html);
        let ids: Vec<_> = tags.iter().filter_map(|tag| attribute(tag, "id")).collect();
        let unique: BTreeSet<_> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{name}");
    }
}

#[test]
fn every_chart_has_a_title_and_a_description() {
    for (name, _, html) in pages() {
        let (tags, _) = read(&html);
        let ids: BTreeSet<_> = tags.iter().filter_map(|tag| attribute(tag, "id")).collect();
        for svg in tags.iter().filter(|tag| tag.name == "svg" && !tag.is_closing) {
            let labels = attribute(svg, "aria-labelledby").unwrap_or_default();
            let is_hidden = attribute(svg, "aria-hidden") == Some("true");
            assert!(is_hidden || labels.split(' ').all(|id| ids.contains(id)), "{name}: {labels}");
        }
    }
}

#[test]
fn nothing_comes_from_outside() {
    for (name, _, html) in pages() {
        let (tags, _) = read(&html);
        for tag in &tags {
            assert!(!["img", "link", "a", "iframe", "use", "image"].contains(&tag.name), "{name}");
            for (attribute, value) in &tag.attributes {
                assert!(!["src", "href", "style"].contains(attribute), "{name}: {attribute}");
                assert!(*attribute == "xmlns" || !value.contains("http"), "{name}: {value}");
                assert!(!attribute.starts_with("on"), "{name}: {attribute}");
            }
        }
        let style = include_str!("style.css");
        assert!(!style.contains("url(") && !style.contains("@import"));
        assert_eq!(html.matches("<script").count(), 1, "{name}: only our own script");
    }
}

#[test]
fn no_page_shows_what_is_not_a_number() {
    for (name, _, html) in pages() {
        let (tags, text) = read(&html);
        let values = tags.iter().flat_map(|tag| &tag.attributes).map(|(_, value)| *value);
        for words in values.chain([text.as_str()]) {
            let mut words = words.split(|c: char| !c.is_alphanumeric());
            let bad = words.find(|word| ["NaN", "inf", "Infinity"].contains(word));
            assert_eq!(bad, None, "{name}");
        }
    }
}

#[test]
fn coordinates_are_inside_their_chart() {
    for (name, _, html) in pages() {
        let (tags, _) = read(&html);
        let mut size = (f64::MAX, f64::MAX);
        for tag in &tags {
            if let Some(view) = attribute(tag, "viewBox") {
                let numbers: Vec<f64> = view.split(' ').map(|n| n.parse().unwrap()).collect();
                size = (numbers[2], numbers[3]);
            }
            for (attribute, value) in &tag.attributes {
                let limit = match *attribute {
                    "x" | "x1" | "x2" | "cx" => size.0,
                    "y" | "y1" | "y2" | "cy" => size.1,
                    _ => continue,
                };
                let value: f64 = value.parse().unwrap();
                assert!((0.0..=limit).contains(&value), "{name}: {attribute}={value} of {limit}");
            }
        }
    }
}

#[test]
fn every_name_is_shown_and_escaped() {
    let (_, runs, html) = pages().into_iter().find(|(name, ..)| *name == "hostile").unwrap();
    let (_, text) = read(&html);
    let shown = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    let shown = shown.replace("&#39;", "'").replace("&amp;", "&");
    let wanted = |name: &str| name.replace(['\u{0}', '\u{202e}'], "\u{fffd}");
    let first = &runs[0];
    let names = [
        &first.model,
        &first.label,
        &first.model_version,
        &first.protocol,
        &first.server_name,
        &first.warnings[0],
        &first.warnings[1],
    ];
    for name in names {
        assert!(shown.contains(&wanted(name)), "{name}");
    }
    assert!(!html.contains("<img") && !html.contains("<![CDATA"));
}

#[test]
fn numbers_are_those_of_the_runs() {
    let runs = [
        samples::run("ours 1", samples::QUICK, &[4.0]),
        samples::run("theirs 2", samples::SLOW, &[4.0, 8.0]),
    ];
    let mut runs = runs.to_vec();
    runs[0].points[0].throughput = 12_400.0;
    runs[0].points[0].throughput_ci95 = Some([12_300.0, 12_500.0]);
    runs[0].points[0].latency.percentiles_us.insert("99".into(), 820.0);
    runs[1].points[0].throughput = 10_000.0;
    runs[1].points[0].throughput_ci95 = Some([9_900.0, 10_100.0]);
    runs[1].points[0].latency.percentiles_us.insert("99".into(), 1000.0);
    let html = page(&runs);
    let (_, text) = read(&html);
    for wanted in [
        "12,400",
        "Throughput: ×1.24 at concurrency 4. The 95 % confidence intervals do not overlap: 12,300 – 12,500 inferences/s against 9,900 – 10,100 inferences/s.",
        "×1.24 the best of theirs 2",
        "−18.0 %",
        "95 % CI 12,300 – 12,500",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in the page");
    }
    assert!(html.contains("class=\"better\">×1.24"));
}

#[test]
fn runs_without_a_common_load_are_not_compared_load_by_load() {
    let runs = [
        samples::run("ours", samples::QUICK, &[4.0]),
        samples::run("theirs", samples::SLOW, &[8.0]),
    ];
    let html = page(&runs);
    assert!(html.contains("no load in common") && html.contains("best of each"));
}

#[test]
fn a_rate_is_not_compared_with_a_concurrency() {
    let mut rate = samples::run("rate", samples::QUICK, &[4.0]);
    rate.points[0].mode = "request_rate".into();
    let html = page(&[rate, samples::run("closed loop", samples::SLOW, &[4.0])]);
    assert!(html.contains("no load in common") && !html.contains("best of each"));
    assert!(!html.contains("the best of"));
}

#[test]
fn steps_of_steps_have_bars_and_rows() {
    let (_, _, html) = pages().into_iter().find(|(name, ..)| *name == "ensemble").unwrap();
    for step in ["embed_text", "tokenizer", "rank_candidates"] {
        assert!(html.contains(&format!("{step}</text>")), "a bar of {step}");
        assert!(html.contains(&format!("{step}</td>")), "a row of {step}");
    }
}

#[test]
fn the_schedule_has_lines_of_its_own() {
    let (_, _, html) = pages().into_iter().find(|(name, ..)| *name == "rate").unwrap();
    assert!(html.contains("p99 from the schedule") && html.contains("stroke-dasharray=\"5 4\""));
    assert!(html.contains(">schedule</td>"));
}

#[test]
fn an_unstable_point_is_marked_and_not_the_best_one() {
    let mut run = samples::run("galatea 0.1.0", samples::QUICK, &[1.0, 8.0]);
    let html = page(std::slice::from_ref(&run));
    assert!(!html.contains("unstable"));
    run.points[1].unstable = true;
    let html = page(&[run]);
    assert!(html.contains("8, unstable") && !html.contains("1, unstable"), "{html}");
}

#[test]
fn runs_whose_intervals_overlap_have_no_headline() {
    let mut runs = [
        samples::run("ours 1", samples::QUICK, &[4.0]),
        samples::run("theirs 2", samples::QUICK, &[4.0]),
    ];
    runs[0].points[0].throughput_ci95 = Some([5_000.0, 7_000.0]);
    runs[0].points[0].latency_ci95 = Some([800.0, 1_200.0]);
    runs[1].points[0].throughput *= 0.8;
    runs[1].points[0].throughput_ci95 = Some([4_000.0, 6_000.0]);
    runs[1].points[0].latency_ci95 = Some([900.0, 1_500.0]);
    let page = page(&runs);
    let (_, text) = read(&page);
    for wanted in [
        "Throughput: no difference was shown. The 95 % confidence intervals overlap: 5,000 – 7,000 inferences/s against 4,000 – 6,000 inferences/s at concurrency 4.",
        "P95 latency: no difference was shown.",
        "no difference shown from the best of theirs 2, at concurrency 4 (95 % CI 4,000 – 6,000)",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in the page");
    }
    assert!(!text.contains("the best of theirs 2, at concurrency 4\n"));
    assert!(!page.contains("class=\"better\"") && !page.contains("class=\"worse\""));
}

#[test]
fn a_load_is_the_best_only_where_its_interval_is_apart() {
    let mut run = samples::run("galatea 0.1.0", samples::QUICK, &[1.0, 8.0]);
    let best = page(std::slice::from_ref(&run));
    assert!(best.contains(">Best throughput<") && best.contains(">Lowest latency<"));
    let wide = Some([100.0, 90_000.0]);
    run.points[0].throughput_ci95 = wide;
    run.points[0].latency_ci95 = wide;
    let tied = page(std::slice::from_ref(&run));
    assert!(tied.contains(">Highest throughput measured<"), "{tied}");
    assert!(tied.contains("no difference shown from concurrency 1 (95 % CI 100 – 90,000)"));
    assert!(tied.contains(">Lowest latency measured<"));
    run.points[0].throughput_ci95 = None;
    assert!(page(&[run]).contains("not every load has a confidence interval"));
}

#[test]
fn an_unstable_point_shows_every_window_and_why() {
    let html = page(&[samples::unstable()]);
    let (_, text) = read(&html);
    for wanted in [
        "Unstable because the last 3 windows differ by 42% in throughput",
        "Window 1: 9,000 inferences/s. ",
        "Window 5: 6,200 inferences/s, merged. ",
        "failed",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in the page");
    }
    assert_eq!(html.matches("merged</td>").count(), 3);
    assert!(html.contains("id=\"unstable\""));
}

#[test]
fn charts_are_drawn_for_wide_and_for_narrow_screens() {
    for (name, _, html) in pages() {
        let wide = html.matches("class=\"chart for-wide\"").count();
        assert_eq!(wide, html.matches("class=\"chart for-narrow\"").count(), "{name}");
    }
}
