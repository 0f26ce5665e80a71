//! Makes the library's errors readable.

/// Returns the messages without places. The library's texts are trees of places in its sources, one a line.
pub(super) fn readable(text: &str) -> String {
    let said: Vec<&str> = text.lines().filter_map(said).collect();
    match said.is_empty() {
        true => text.split_whitespace().collect::<Vec<_>>().join(" "),
        false => said.join("; "),
    }
}

/// Returns the message in a line, without the place in the sources.
fn said(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.is_empty() || is_place(line) {
        return None;
    }
    // "Check 'condition' failed at file.cpp:12:", with or without a message behind it.
    if let Some((_, behind)) = line.split_once("' failed at ")
        && line.starts_with("Check '")
    {
        let words = behind.split_once(": ").map(|(_, words)| words.trim());
        return words.filter(|words| !words.is_empty());
    }
    Some(line)
}

/// Matches "Exception from src/inference/src/cpp/core.cpp:84:".
fn is_place(line: &str) -> bool {
    line.starts_with("Exception from ") && line.ends_with(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_locations_are_removed_from_errors() {
        let text = "Exception from src/inference/src/cpp/core.cpp:84:\n\
                    Check 'util::file_exists(path)' failed at src/frontends/common/src/frontend.cpp:117:\n\
                    FrontEnd API failed with GeneralFailure:\nir: Could not open the file: \"/x.xml\"\n\n";
        assert_eq!(
            readable(text),
            "FrontEnd API failed with GeneralFailure:; ir: Could not open the file: \"/x.xml\""
        );
        assert_eq!(readable("Check 'a' failed at b.cpp:1: no such name"), "no such name");
        assert_eq!(readable("Exception from a.cpp:1:\n"), "Exception from a.cpp:1:");
    }
}
