//! Reader of the Prometheus text format: samples with their labels.

use std::borrow::Cow;

/// Most labels of a sample; one with more is skipped.
const MOST_LABELS: usize = 64;

/// One sample of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSample<'a> {
    /// The name, with the suffix after the family's name: `_bucket`, `_sum`, `_count`.
    pub name: &'a str,
    /// Labels in the order of the page.
    pub labels: Vec<(&'a str, Cow<'a, str>)>,
    /// The value; may be infinite or NaN.
    pub value: f64,
}

impl MetricSample<'_> {
    /// Returns the value of the label with this name.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(found, _)| *found == name).map(|(_, value)| &**value)
    }
}

/// Returns the samples of a page. Other lines are skipped.
pub fn metric_samples(page: &str) -> impl Iterator<Item = MetricSample<'_>> {
    page.lines().filter_map(sample)
}

fn sample(line: &str) -> Option<MetricSample<'_>> {
    let line = line.trim_start();
    let end = line.find(|c: char| c == '{' || c.is_whitespace()).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if name.is_empty() || name.starts_with('#') {
        return None;
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    // A timestamp may follow, and an exemplar. A value may be `+Inf` or `Nan`, in any case.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(MetricSample { name, labels, value })
}

type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// Returns the labels up to the closing brace, and the text after it.
fn labels(mut rest: &str) -> Option<(Labels<'_>, &str)> {
    let mut found = Labels::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((found, behind));
        }
        if found.len() == MOST_LABELS {
            return None;
        }
        let (name, behind) = rest.split_once('=')?;
        let (value, behind) = quoted(behind.trim_start().strip_prefix('"')?)?;
        found.push((name.trim(), value));
        rest = behind;
    }
}

/// Returns the text up to the closing quotation mark, and the text after it.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(['"', '\\'])?;
    if text[end..].starts_with('"') {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((Cow::Owned(value), &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = (String, Vec<(String, String)>, f64);

    fn read(line: &str) -> Option<Read> {
        let sample = metric_samples(line).next()?;
        let labels =
            sample.labels.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Some((sample.name.to_owned(), labels.collect(), sample.value))
    }

    #[test]
    fn samples_are_parsed() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for (line, name, labels, value) in [
            ("up 1", "up", vec![], 1.0),
            ("a{} 2 1700000000", "a", vec![], 2.0),
            (r#"a{x="1",y="b c"} 6.5e+07"#, "a", vec![pair("x", "1"), pair("y", "b c")], 6.5e7),
            (r#"a { x = "}{" , } -1"#, "a", vec![], f64::NAN),
            (r#"a{ x = "}{" , } -1"#, "a", vec![pair("x", "}{")], -1.0),
            (r#"a{x="q\"s\\l\nn"}+Inf"#, "a", vec![pair("x", "q\"s\\l\nn")], f64::INFINITY),
            (
                r#"a_bucket{le="+Inf"} 3 # {trace="1"} 0.5"#,
                "a_bucket",
                vec![pair("le", "+Inf")],
                3.0,
            ),
        ] {
            match read(line) {
                Some(found) => assert_eq!(found, (name.to_owned(), labels, value), "{line}"),
                None => assert!(value.is_nan(), "{line}"),
            }
        }
        assert!(read("a{q=\"0.5\"} Nan").is_some_and(|(_, _, value)| value.is_nan()));
    }

    #[test]
    fn lines_that_are_not_samples_are_skipped() {
        let many = format!("a{{{}}} 1", "x=\"\",".repeat(MOST_LABELS + 1));
        for line in [
            "",
            "# TYPE a counter",
            "a",
            "a{",
            "a{x}",
            "a{x=1} 1",
            "a{x=\"1} 1",
            "a{x=\"\\",
            "a b",
            &many,
        ] {
            assert_eq!(read(line), None, "{line}");
        }
        assert_eq!(metric_samples("x\n\ny 1\r\nz{\n").count(), 1);
    }
}
