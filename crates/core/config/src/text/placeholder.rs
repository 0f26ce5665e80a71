//! Recognizes unfilled placeholders of templates.

use crate::{Diagnostic, Place};

/// The signs around placeholders.
const FORMS: [(&str, &str); 6] =
    [("${", "}"), ("{{", "}}"), ("{%", "%}"), ("<", ">"), ("@", "@"), ("%", "%")];
/// The forms that are searched for inside strings, where the other signs are common.
const IN_STRINGS: [(&str, &str); 2] = [("${", "}"), ("{{", "}}")];
/// Most characters of a placeholder.
const LONGEST: usize = 60;

/// Adds the advice to fill in the placeholder at the finding's place, if there is one.
pub(crate) fn explained(found: Diagnostic) -> Diagnostic {
    match found.place.as_ref().and_then(at) {
        Some(placeholder) => {
            let advice = format!(
                "`{placeholder}` is a placeholder of a template: fill in its value before the model is served"
            );
            found.with_advice(advice)
        }
        None => found,
    }
}

fn at(place: &Place) -> Option<&str> {
    let before = place.caret_indent()?.chars().count();
    let (start, _) = place.line_text()?.char_indices().nth(before)?;
    let rest = place.line_text()?.get(start..)?;
    match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let string = rest.get(1..)?.split(quote).next()?;
            let starts = string.char_indices().filter_map(|(start, _)| string.get(start..));
            starts
                .take(LONGEST)
                .find_map(|rest| IN_STRINGS.iter().find_map(|form| of_form(rest, form)))
        }
        Some('$') if !rest.starts_with("${") => {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.get(1..)?.find(|c| !is_name(c)).map_or(rest.len(), |end| end + 1);
            rest.get(..end).filter(|name| name.len() > 1)
        }
        _ => FORMS.iter().find_map(|form| of_form(rest, form)),
    }
}

/// Returns the placeholder of this form at the start of a text: a name or a short expression between the signs.
fn of_form<'a>(text: &'a str, (open, close): &(&str, &str)) -> Option<&'a str> {
    let inner = text.strip_prefix(open)?;
    let end = inner.find(close)?;
    let name = inner.get(..end)?;
    let begins = name.trim_start().starts_with(|c: char| c.is_alphabetic() || c == '_');
    (begins && end <= LONGEST).then(|| text.get(..open.len() + end + close.len())).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, column: usize, expected: Option<&str>) {
        let place = Place::in_text("config.pbtxt", line, (1, column));
        assert_eq!(at(&place), expected, "{line}");
    }

    #[test]
    fn template_placeholders_are_recognized() {
        check("max_batch_size: ${MAX_BATCH}", 17, Some("${MAX_BATCH}"));
        check("max_batch_size: $MAX # $", 17, Some("$MAX"));
        check("max_batch_size: {{ max_batch }}", 17, Some("{{ max_batch }}"));
        check("{% if gpu %}", 1, Some("{% if gpu %}"));
        check("dims: [ <SIZE> ]", 9, Some("<SIZE>"));
        check("dims: [ @SIZE@ ]", 9, Some("@SIZE@"));
        check("dims: [ %SIZE% ]", 9, Some("%SIZE%"));
        check("name: \"a_${model}\"", 7, Some("${model}"));
        check("name: '{{ name }}'", 7, Some("{{ name }}"));
    }

    #[test]
    fn other_signs_are_no_placeholders() {
        for line in [
            "$",
            "$$",
            "${",
            "${}",
            "{",
            "{{ }}",
            "{ { a } }",
            "<",
            "< 1 >",
            "@",
            "%%",
            "\"a\" ${b}",
            "\"$$A/env\"",
            "é",
            "",
        ] {
            check(line, 1, None);
        }
        check("name: é", 99, None);
        check(&format!("<{}>", "x".repeat(100)), 1, None);
    }
}
