//! A type is a noun of the field: words that say nothing to a stranger are refused as its whole name.

use super::source::{SourceFile, Workspace};

/// Participles, adverbs and figures of speech that were names of types here.
const REFUSED: &[&str] = &[
    "Answering",
    "Announced",
    "Around",
    "Asking",
    "Back",
    "Begun",
    "Caught",
    "Changed",
    "Chosen",
    "Collected",
    "Continue",
    "Counted",
    "Course",
    "Crowd",
    "Current",
    "Described",
    "Done",
    "Due",
    "Elsewhere",
    "Entered",
    "Executed",
    "Explained",
    "Farewell",
    "Follow",
    "Followed",
    "Found",
    "Given",
    "Granted",
    "Guarded",
    "Hall",
    "HandedOver",
    "Held",
    "Here",
    "InUse",
    "Joining",
    "Keep",
    "Kept",
    "Known",
    "Lack",
    "Large",
    "Last",
    "Left",
    "Looker",
    "Looks",
    "Made",
    "MadeUp",
    "Meaning",
    "Measured",
    "Metered",
    "Moment",
    "Named",
    "Needs",
    "NobodyWaits",
    "NotYet",
    "Noted",
    "Nowhere",
    "Oddity",
    "OfSequence",
    "Ordered",
    "Outgoing",
    "Overdue",
    "Padded",
    "Pass",
    "Patience",
    "Placed",
    "Polled",
    "Preparing",
    "Printed",
    "Pushed",
    "Reach",
    "Recorded",
    "Remembered",
    "Rendered",
    "Rest",
    "Running",
    "Saved",
    "Seen",
    "Sendable",
    "Sent",
    "Served",
    "Situation",
    "Stored",
    "Switches",
    "Taken",
    "TakenBack",
    "Takes",
    "Tell",
    "Then",
    "Timed",
    "Told",
    "Treatment",
    "Turns",
    "Unknown",
    "Unread",
    "Unsigned",
    "Wake",
    "Wakes",
    "Wanted",
    "Watched",
    "Weight",
    "Whose",
];

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let is_product = |file: &&SourceFile| {
        let is_test = file.path.contains("/tests/") || file.path.ends_with("/tests.rs");
        file.krate.starts_with("crates/") && file.is_in_src() && !is_test
    };
    let found = workspace.rust().filter(is_product).flat_map(|file| {
        let names = file.before_tests().lines().filter_map(type_name);
        names.filter(|name| REFUSED.contains(name)).map(|name| {
            format!(
                "{}: `{name}` is no noun that a stranger would search for: name the thing",
                file.path
            )
        })
    });
    found.collect()
}

/// Returns the name of the type that a line declares.
fn type_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line,
    };
    let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
    let name = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    Some(&name[..name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len())])
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn refused_words_in_type_names_are_found() {
        let text =
            "pub(crate) struct Told<'a> {}\nenum ToldOutputs {}\n/// Told\ntype Elsewhere = u8;\n";
        let found = faults(&made_up(&[("crates/a/src/a.rs", text)]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`Told`") && found[1].contains("`Elsewhere`"));
    }
}
