//! Refuses codes of a list that a reader does not have, such as two letters, a hyphen and a number: the text belongs there
//! instead. `docs/compat.md` may name its rows so.

use super::source::{SourceFile, Workspace};

/// The table of features, whose rows have names.
const TABLE: &str = "docs/compat.md";

pub fn faults(workspace: &Workspace) -> Vec<String> {
    workspace.files.iter().filter(|file| file.path != TABLE).flat_map(file_faults).collect()
}

fn file_faults(file: &SourceFile) -> Vec<String> {
    let numbered = file.text.lines().zip(1..);
    let fault = |(line, number): (&str, usize)| {
        let code = code_in(line)?;
        Some(format!(
            "{}:{number}: '{code}' refers to a list outside: say what it means",
            file.path
        ))
    };
    numbered.filter_map(fault).collect()
}

/// Returns the first code in a line: one or two capital letters, a hyphen, two or three digits. No part of a word precedes or
/// follows it.
fn code_in(line: &str) -> Option<&str> {
    line.match_indices('-').find_map(|(hyphen, _)| code_around(line, hyphen))
}

fn code_around(line: &str, hyphen: usize) -> Option<&str> {
    let (before, after) = (line.get(..hyphen)?, line.get(hyphen + 1..)?);
    let letters = before.len() - before.trim_end_matches(|c: char| c.is_ascii_uppercase()).len();
    let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let start = hyphen - letters;
    let end = hyphen + 1 + digits;
    let goes_on = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let is_word = !line.get(..start)?.ends_with(goes_on) && !line.get(end..)?.starts_with(goes_on);
    ((1..=2).contains(&letters) && (2..=3).contains(&digits) && is_word)
        .then(|| line.get(start..end))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn error_codes_are_found_and_other_names_are_not() {
        let id = |letters: &str, digits: &str| format!("{letters}-{digits}");
        let (short, long) = (id("H", "07"), id("AB", "123"));
        for (line, code) in [
            (format!("/// Order of checks ({short})."), Some(&short)),
            (format!("// {long}"), Some(&long)),
            (format!("{short}, {long}"), Some(&short)),
        ] {
            assert_eq!(code_in(&line), code.map(String::as_str), "{line}");
        }
        for line in
            ["UTF-16", "SHA-256", "X-1", "H-1234", "IEEE-754", "2026-11-22", "f-16", "Ü-16b"]
        {
            assert_eq!(code_in(line), None, "{line}");
        }
    }

    #[test]
    fn the_line_of_a_code_is_named_and_the_table_is_exempt() {
        let text = format!("//! Fine.\n// {}-{}\n", 'H', "07");
        let files = [("crates/a/src/a.rs", text.as_str()), (TABLE, text.as_str())];
        let found = faults(&made_up(&files));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/a/src/a.rs:2: "), "{found:?}");
    }
}
