//! Environment variables are read by the program alone and handed down from there: a library that reads them by
//! itself has an option that no caller sees and no test can set.

/// Where they may be read: the program, the tasks, and what is no part of a library.
const READERS: [&str; 6] =
    ["crates/server/", "xtask/", "tests/", "examples/", "/tests/", "/examples/"];
const CALLS: [&str; 4] = ["env::var(", "env::var_os(", "env::vars(", "env::vars_os("];
/// Read by golden tests, to write what they expect.
const OF_TESTS: &str = "\"UPDATE_GOLDEN\"";

/// `shown`: path of a source file from the root of the repository.
pub(super) fn faults(shown: &str, text: &str) -> Vec<String> {
    let may_read = READERS.iter().any(|part| match part.strip_prefix('/') {
        Some(_) => shown.contains(part),
        None => shown.starts_with(part),
    });
    if may_read || !shown.ends_with(".rs") {
        return Vec::new();
    }
    let reads = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        CALLS.iter().any(|call| code.contains(call)) && !code.contains(OF_TESTS)
    };
    let lines = text.lines().enumerate().filter(|(_, line)| reads(line));
    lines
        .map(|(index, _)| {
            format!("{shown}:{}: reads the environment; only crates/server does", index + 1)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_program_reads_the_environment() {
        let text = "fn home() {\n    std::env::var_os(\"HOME\");\n}\n";
        assert_eq!(
            faults("crates/engine/src/a.rs", text),
            ["crates/engine/src/a.rs:2: reads the environment; only crates/server does"]
        );
        for reader in ["crates/server/src/a.rs", "crates/engine/tests/a.rs", "xtask/src/a.rs"] {
            assert!(faults(reader, text).is_empty(), "{reader}");
        }
        for harmless in
            ["env!(\"HOME\")", "// env::var(\"HOME\")", "env::var_os(\"UPDATE_GOLDEN\")"]
        {
            assert!(faults("crates/engine/src/a.rs", harmless).is_empty(), "{harmless}");
        }
    }
}
