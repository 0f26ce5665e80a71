//! Files are short enough to read, and no test is switched off.

use super::source::{SourceFile, Workspace};

const MAX_LINES: usize = 500;

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let is_code = |file: &&SourceFile| file.path.ends_with(".rs") || file.path.ends_with(".py");
    workspace.files.iter().filter(is_code).flat_map(file_faults).collect()
}

fn file_faults(file: &SourceFile) -> Vec<String> {
    let lines = file.text.lines().count();
    let mut faults = Vec::new();
    if lines > MAX_LINES && !file.is_generated() {
        faults.push(format!("{}: {lines} lines, at most {MAX_LINES}", file.path));
    }
    if file.text.lines().any(|line| line.trim_start().starts_with("#[ignore")) {
        faults.push(format!("{}: an ignored test", file.path));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    fn faults_of(text: &str) -> usize {
        faults(&made_up(&[("crates/a/src/a.rs", text)])).len()
    }

    #[test]
    fn long_files_and_ignored_tests_are_named() {
        assert_eq!(faults_of(&"x\n".repeat(MAX_LINES + 1)), 1);
        assert_eq!(faults_of("  #[ignore = \"slow\"]\n"), 1);
        assert_eq!(faults_of("// no #[ignore] here\n"), 0);
    }
}
