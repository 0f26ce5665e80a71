//! Types and files are nouns of the field: words that say nothing to a stranger are refused as their whole name.

use super::source::{SourceFile, Workspace};

/// Participles, adverbs and figures of speech that were names of types or files here.
const REFUSED: &[&str] = &[
    "Accepted",
    "Ahead",
    "Announced",
    "Answering",
    "Around",
    "Asking",
    "Back",
    "Begun",
    "Beyond",
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
    "Early",
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
    "Interruptible",
    "Invitation",
    "Joined",
    "Joining",
    "Keep",
    "Kept",
    "Known",
    "Lack",
    "Large",
    "Last",
    "Later",
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
    "Packed",
    "Padded",
    "PanicWall",
    "Panicked",
    "Pass",
    "Patience",
    "Pipelined",
    "Placed",
    "Polled",
    "Preparing",
    "Printed",
    "Pushed",
    "Queued",
    "Reach",
    "Recorded",
    "Remembered",
    "Rendered",
    "Rest",
    "Running",
    "Saved",
    "Seen",
    "Sendable",
    "Sending",
    "Sent",
    "Served",
    "Situation",
    "Stored",
    "Streamed",
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
    "Unstable",
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
        let types = file.before_tests().lines().filter_map(type_name);
        let names = types.map(str::to_owned).chain(file_name(&file.path));
        names.filter(|name| REFUSED.contains(&name.as_str())).map(|name| {
            format!(
                "{}: `{name}` is no noun that a stranger would search for: name the thing",
                file.path
            )
        })
    });
    found.collect()
}

/// Returns the name of a file, or of its folder for a `mod.rs`, as a type would have it.
fn file_name(path: &str) -> Option<String> {
    let stem = path.strip_suffix("/mod.rs").unwrap_or(path).rsplit('/').next()?;
    let words = stem.trim_end_matches(".rs").split('_').filter_map(|word| word.split_at_checked(1));
    Some(words.map(|(first, rest)| first.to_uppercase() + rest).collect())
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

    #[test]
    fn refused_words_are_found_as_names_of_files_and_folders() {
        let names = ["told", "told_outputs", "made_up/mod", "made_up/request"];
        let paths = names.map(|name| format!("crates/a/src/{name}.rs"));
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        let found = faults(&made_up(&files));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`Told`") && found[1].contains("`MadeUp`"));
    }
}
