//! The table of threats is true: every row of `docs/security.md` names an existing test, and its flags are flags of the
//! server.

use super::source::{SourceFile, Workspace};

const PAGE: &str = "docs/security.md";
const FLAGS: &str = "crates/program/server/src/flags/";
const ATTACK: &str = "cargo xtask attack ";

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let page = workspace.files.iter().find(|file| file.path == PAGE);
    let rows = page.into_iter().flat_map(|page| page.text.lines().enumerate()).filter_map(row);
    rows.flat_map(|(line, cells)| row_faults(workspace, line, &cells)).collect()
}

/// Returns number and cells of a line that is a row, not a head or the rule below it.
fn row((number, line): (usize, &str)) -> Option<(usize, Vec<&str>)> {
    let inner = line.strip_prefix("| ")?.strip_suffix('|')?;
    let cells: Vec<&str> = inner.split(" | ").map(str::trim).collect();
    (cells[0] != "threat").then_some((number + 1, cells))
}

fn row_faults(workspace: &Workspace, line: usize, cells: &[&str]) -> Vec<String> {
    let [_, _, flags, _, tests] = cells else {
        return vec![format!("{PAGE}:{line}: {} cells, not 5", cells.len())];
    };
    let mut faults = Vec::new();
    if code_spans(tests).next().is_none() {
        faults.push(format!("{PAGE}:{line}: names no test"));
    }
    let absent = code_spans(tests).filter(|test| !exists(workspace, test));
    faults.extend(absent.map(|test| format!("{PAGE}:{line}: there is no test `{test}`")));
    let unknown = code_spans(flags).filter(|flag| !is_known(workspace, flag));
    faults.extend(unknown.map(|flag| format!("{PAGE}:{line}: the server has no `{flag}`")));
    faults
}

/// Returns the texts between backquotes.
fn code_spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Finds a test. It is named by its function, with or without module or file; an attack by its command.
fn exists(workspace: &Workspace, test: &str) -> bool {
    if let Some(attack) = test.strip_prefix(ATTACK) {
        return defines(workspace, "tests/attack/", &format!("@attack(\"{attack}\""));
    }
    let name = test.rsplit("::").next().unwrap_or(test).trim_end_matches("()");
    let python = format!("def {name}(");
    defines(workspace, "tests/", &python) || workspace.rust().any(|file| has_function(file, name))
}

fn defines(workspace: &Workspace, folder: &str, text: &str) -> bool {
    let mut files = workspace.files.iter().filter(|file| file.path.starts_with(folder));
    files.any(|file| file.text.contains(text))
}

/// Finds a function. Tests made by macros, such as proptest's, have `fn` and the name as well.
fn has_function(file: &SourceFile, name: &str) -> bool {
    let needle = format!("fn {name}");
    let mut rest = file.text.as_str();
    while let Some(at) = rest.find(&needle) {
        rest = &rest[at + needle.len()..];
        if !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_') {
            return true;
        }
    }
    false
}

/// Finds `--flag`, `--flag=value` or `--flag <value>`. For a backend's setting, such as `--backend-config=python,setting`, the
/// last part is searched in the backends.
fn is_known(workspace: &Workspace, flag: &str) -> bool {
    let Some(flag) = flag.strip_prefix("--") else { return true };
    let (name, value) = flag.split_once(['=', ' ']).unwrap_or((flag, ""));
    let has = |folder: &str, name: &str| {
        let mut files = workspace.rust().filter(|file| file.path.starts_with(folder));
        files.any(|file| file.text.contains(&format!("\"{name}\"")))
    };
    let setting = value.split(',').nth(1).and_then(|s| s.split('=').next());
    has(FLAGS, name) && (name != "backend-config" || setting.is_none_or(|s| has("crates/", s)))
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    fn faults_of(rows: &str) -> Vec<String> {
        let page =
            format!("| threat | limit | flag | default | test |\n|---|---|---|---|---|\n{rows}");
        faults(&made_up(&[
            (PAGE, &page),
            (
                "crates/program/server/src/flags/table.rs",
                "const A: &str = \"memory-budget\", \"backend-config\";",
            ),
            (
                "crates/a/src/a.rs",
                "fn f() { \"timeout-secs\" } #[test]\nfn too_long_is_refused() {}",
            ),
            ("tests/python/test_a.py", "def test_a(server):\n"),
            ("tests/attack/floods.py", "@attack(\"ping\", triton=True)\n"),
        ]))
    }

    #[test]
    fn existing_references_are_no_fault() {
        let rows = "| a | b | `--memory-budget` | 1 | `a::too_long_is_refused` (a), `test_a.py::test_a` |\n\
                    | a | b | `--backend-config=python,timeout-secs` | 1 | `cargo xtask attack ping` |\n\
                    | a | b | – | – | `test_a` |";
        assert_eq!(faults_of(rows), Vec::<String>::new());
    }

    #[test]
    fn missing_references_are_named() {
        assert_eq!(faults_of("| a | b | – | – | none |"), ["docs/security.md:3: names no test"]);
        assert_eq!(
            faults_of("| a | b | `--budget` | – | `too_long` `cargo xtask attack pong` |"),
            [
                "docs/security.md:3: there is no test `too_long`",
                "docs/security.md:3: there is no test `cargo xtask attack pong`",
                "docs/security.md:3: the server has no `--budget`",
            ]
        );
        let setting = "| a | b | `--backend-config=python,none` | – | `test_a` |";
        assert_eq!(
            faults_of(setting),
            ["docs/security.md:3: the server has no `--backend-config=python,none`"]
        );
        assert_eq!(faults_of("| a | b | c | `test_a` |"), ["docs/security.md:3: 4 cells, not 5"]);
    }
}
