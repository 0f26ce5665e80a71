//! Only the program, its server library and the tasks read the environment of the process; other code receives variables as
//! arguments.

use super::source::{SourceFile, Workspace};

/// The program, its server library, and the tasks.
const READERS: [&str; 3] = ["crates/program/server", "crates/program/serve", "xtask"];

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let is_bound = |file: &&SourceFile| file.is_in_src() && !READERS.contains(&file.krate.as_str());
    let readers = workspace.rust().filter(is_bound).filter(|file| reads(file));
    let is_test =
        |file: &SourceFile| file.path.contains("/tests/") || workspace.is_test_module(file);
    let readers = readers.filter(|file| !is_test(file));
    readers
        .map(|file| format!("{}: reads the process's environment; have it given", file.path))
        .collect()
}

fn reads(file: &SourceFile) -> bool {
    let functions = ["var", "var_os", "vars", "vars_os"];
    functions.iter().any(|function| file.has_tokens(&["env", ":", ":", function]))
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn environment_readers_outside_the_program_are_named() {
        let found = faults(&made_up(&[
            ("crates/core/engine/src/a.rs", "fn f() { std::env::var_os(\"A\"); }"),
            ("crates/core/engine/src/b.rs", "fn f() { env!(\"A\"); env::temp_dir(); }"),
            ("crates/core/engine/tests/it.rs", "fn f() { env::var(\"A\"); }"),
            ("crates/core/engine/src/parts/mod.rs", "#[cfg(test)]\nmod golden;"),
            ("crates/core/engine/src/parts/golden.rs", "fn f() { env::var(\"A\"); }"),
            ("crates/program/server/src/main.rs", "fn f() { env::var(\"A\"); }"),
        ]));
        assert_eq!(
            found,
            ["crates/core/engine/src/a.rs: reads the process's environment; have it given"]
        );
    }
}
