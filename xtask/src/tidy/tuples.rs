//! Arguments have types of their own: few parameters of functions are taken apart as tuples.

use anyhow::Result;

use super::{
    ratchet::{Counts, Ratchet},
    source::Workspace,
};

const LIST: Ratchet = Ratchet {
    list: "tests/tuples-allowed.txt",
    head: "\
# How many parameters of functions of each file may be tuples. The numbers only fall: give the type that is missing a name.
# `cargo xtask tidy --record` writes this file after some have gone.
",
    faults: "parameters that are tuples",
    advice: "which type is missing?",
};

pub fn faults(workspace: &Workspace) -> Vec<String> {
    LIST.compare(&counts(workspace))
}

/// Lowers the allowed counts to those of today.
pub fn record(workspace: &Workspace) -> Result<()> {
    LIST.record(&counts(workspace))
}

fn counts(workspace: &Workspace) -> Counts {
    let product = workspace.rust().filter(|file| file.is_in_src());
    let counted = product.map(|file| {
        let lines = file.before_tests().lines();
        (file.path.clone(), lines.filter(|line| is_tuple_argument(line)).count())
    });
    counted.filter(|(_, count)| *count > 0).collect()
}

/// Returns true if a line is a parameter of a function or the head of one, and a parameter is a tuple of names.
fn is_tuple_argument(line: &str) -> bool {
    let line = line.trim_start();
    let is_parameter = line.starts_with('(') && line.ends_with(',');
    if !is_parameter && !line.contains("fn ") {
        return false;
    }
    let is_name = |name: &str| {
        let name = name.trim().trim_start_matches("mut ");
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    line.match_indices("): (").any(|(end, _)| {
        let start = line[..end].rfind('(').map_or(0, |start| start + 1);
        line[start..end].split(',').all(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn tuples_among_the_parameters_are_counted() {
        let text = "fn f(\n    (received, exchange): (&Received<'_>, &mut Exchange),\n    (a): (u8),\n    pair: (u8, u8),\n) {\n}\n\
                    fn g(a: u8, (b, c): (u8, u8)) {}\nlet h = |(b, c): (u8, u8)| b;\n";
        let found = counts(&made_up(&[("crates/a/src/a.rs", text)]));
        assert_eq!(found.get("crates/a/src/a.rs"), Some(&3));
    }
}
