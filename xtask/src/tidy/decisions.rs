//! Every decision record begins with its status and a summary of two lines.

use super::source::{SourceFile, Workspace};

const FOLDER: &str = "docs/adr/";
const SUMMARY_LINES: usize = 2;
/// The longest line of a summary, in characters.
const MOST_CHARACTERS: usize = 125;

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let records = workspace.files.iter().filter(|file| is_record(&file.path));
    let found = records
        .filter_map(|file| fault(file, workspace).map(|fault| format!("{}: {fault}", file.path)));
    found.collect()
}

/// Returns true for the file of a record: its name begins with a number.
fn is_record(path: &str) -> bool {
    let name = path.strip_prefix(FOLDER).unwrap_or_default();
    name.ends_with(".md") && name.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns the first thing that is wrong with the beginning of a record.
fn fault(file: &SourceFile, workspace: &Workspace) -> Option<String> {
    let mut blocks = file.text.split("\n\n");
    let [title, status, summary] = [(); 3].map(|()| blocks.next().unwrap_or_default());
    if !title.starts_with("# ") {
        return Some("the first line is no title".to_owned());
    }
    let Some(status) = status.strip_prefix("Status: ") else {
        return Some("the line under the title is no 'Status: accepted'".to_owned());
    };
    status_fault(status, workspace).or_else(|| summary_fault(summary))
}

/// Returns the fault of a status: it is `accepted`, perhaps with an exception, or `superseded by` a link to another record.
fn status_fault(status: &str, workspace: &Workspace) -> Option<String> {
    let is_superseded = status.starts_with("superseded by [");
    if !is_superseded && status != "accepted" && !status.starts_with("accepted; ") {
        return Some(format!(
            "the status '{status}' is neither 'accepted' nor 'superseded by [...](...)'"
        ));
    }
    let is_there =
        |name: &str| workspace.files.iter().any(|file| file.path == format!("{FOLDER}{name}"));
    let links: Vec<&str> =
        status.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let missing = links.iter().find(|name| !is_there(name));
    let has_exception = status != "accepted";
    match missing {
        Some(name) => Some(format!("there is no record {name}")),
        None if has_exception && links.is_empty() => Some("the status links no record".to_owned()),
        None => None,
    }
}

fn summary_fault(summary: &str) -> Option<String> {
    let lines: Vec<&str> = summary.lines().collect();
    let is_text =
        lines.iter().all(|line| !line.starts_with(['#', '-', '|']) && !line.starts_with("```"));
    let is_short = lines.iter().all(|line| line.chars().count() <= MOST_CHARACTERS);
    let is_summary = lines.len() == SUMMARY_LINES && is_text && is_short;
    (!is_summary).then(|| {
        format!(
            "the summary below the status has two lines of at most {MOST_CHARACTERS} characters: the decision and its reason"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    fn faults_of(status: &str, summary: &str) -> Vec<String> {
        let text = format!("# 1. A\n\n{status}\n\n{summary}\n\n## Reasons\n");
        let other = "# 2. B\n\nStatus: accepted\n\nDecision.\nReason.\n";
        let index = ("docs/adr/index.md", "# Decisions\n");
        faults(&made_up(&[("docs/adr/0001-a.md", &text), ("docs/adr/0002-b.md", other), index]))
    }

    #[test]
    fn a_record_has_a_status_and_a_summary() {
        let good = ["Status: accepted", "Status: superseded by [decision 2](0002-b.md)"];
        let partly = "Status: accepted; [decision 2](0002-b.md) replaces a part";
        for status in good.into_iter().chain([partly]) {
            assert_eq!(faults_of(status, "Decision.\nReason."), Vec::<String>::new());
        }
    }

    #[test]
    fn faults_of_status_and_summary_are_found() {
        for (status, summary, fault) in [
            ("Text.", "Decision.\nReason.", "no 'Status: accepted'"),
            ("Status: proposed", "Decision.\nReason.", "is neither"),
            ("Status: superseded by [3](0003-c.md)", "Decision.\nReason.", "no record 0003-c.md"),
            ("Status: accepted; but not all", "Decision.\nReason.", "links no record"),
            ("Status: accepted", "One line.", "has two lines"),
            ("Status: accepted", "## Heading\nText.", "has two lines"),
            (
                "Status: accepted",
                format!("{}\nReason.", "long ".repeat(30)).as_str(),
                "has two lines",
            ),
        ] {
            let found = faults_of(status, summary);
            assert!(found.len() == 1 && found[0].contains(fault), "{status}: {found:?}");
        }
    }
}
