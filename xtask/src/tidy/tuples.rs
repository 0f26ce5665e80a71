//! Arguments have their own types: no parameter of a function is a destructured tuple.

use super::source::Workspace;

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let product = workspace.rust().filter(|file| file.is_in_src());
    let found = product.flat_map(|file| {
        let lines = file.before_tests().lines().enumerate();
        lines.filter(|(_, line)| is_tuple_argument(line)).map(|(number, _)| {
            format!("{}:{}: a parameter is a tuple: which type is missing?", file.path, number + 1)
        })
    });
    found.collect()
}

/// Returns true if a line is a parameter of a function, and that parameter is a tuple of names.
fn is_tuple_argument(line: &str) -> bool {
    let Some(names) = line.trim_start().strip_prefix('(') else { return false };
    let Some((names, kind)) = names.split_once("): (") else { return false };
    let is_name = |name: &str| {
        let name = name.trim().trim_start_matches("mut ");
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    kind.ends_with(',') && names.split(',').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn a_tuple_among_the_parameters_is_a_fault() {
        let text = "fn f(\n    (received, exchange): (&Received<'_>, &mut Exchange),\n    (a): (u8),\n    pair: (u8, u8),\n) {\n}\n";
        let found = faults(&made_up(&[("crates/a/src/a.rs", text)]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/a.rs:2: "));
    }
}
