//! Files of a crate do not use each other in a circle: to understand one of them a reader would have to read all. Names from a
//! folder's `mod.rs`, or from the root of the crate, do not count: those are the folder's own vocabulary.

mod components;
mod python;
mod rust;

use std::collections::{BTreeMap, BTreeSet};

use super::source::{SourceFile, Workspace};

/// Files by the file that takes names from them.
type Graph = BTreeMap<String, BTreeSet<String>>;

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let named = |circle: Vec<String>| {
        format!("these files use each other in a circle: {}", circle.join(", "))
    };
    circles(workspace).into_iter().map(named).collect()
}

/// Returns all circles, each sorted by path.
fn circles(workspace: &Workspace) -> Vec<Vec<String>> {
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in workspace.rust().filter(|file| file.is_in_src()) {
        crates.entry(file.krate.as_str()).or_default().push(file);
    }
    let mut graph: Graph = crates.values().flat_map(|files| rust::graph(files)).collect();
    graph.extend(python::graph(workspace));
    components::circles(&graph)
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn circles_of_rust_and_python_files_are_named() {
        let found = faults(&made_up(&[
            ("crates/a/src/lib.rs", "mod one; mod two;"),
            ("crates/a/src/one.rs", "use crate::two::Two; pub struct One;"),
            ("crates/a/src/two.rs", "use crate::one::One; pub struct Two;"),
            ("crates/b/work/first.py", "from .second import go\n"),
            ("crates/b/work/second.py", "def go():\n    from . import first\n"),
        ]));
        assert_eq!(
            found,
            [
                "these files use each other in a circle: crates/a/src/one.rs, crates/a/src/two.rs",
                "these files use each other in a circle: crates/b/work/first.py, crates/b/work/second.py",
            ]
        );
    }
}
