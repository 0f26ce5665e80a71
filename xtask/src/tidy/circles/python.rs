//! Imports between the files of a Python package.

use std::collections::BTreeSet;

use super::{super::source::Workspace, Graph};

pub fn graph(workspace: &Workspace) -> Graph {
    let files = workspace.files.iter().filter(|file| file.path.ends_with(".py"));
    let paths: BTreeSet<&str> = files.clone().map(|file| file.path.as_str()).collect();
    let edges = files.map(|file| {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let names = file.text.lines().flat_map(|line| imported(line.trim()));
        let of = names.map(|name| format!("{folder}/{name}.py"));
        let of = of.filter(|path| paths.contains(path.as_str()) && *path != file.path);
        (file.path.clone(), of.collect())
    });
    edges.collect()
}

/// Returns modules of the same folder that a line may import: relatively, or by the bare name as a script does with its
/// neighbours.
fn imported(line: &str) -> Vec<&str> {
    if let Some(names) = line.strip_prefix("from . import ") {
        return listed(names);
    }
    if let Some((module, _)) =
        line.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
    {
        return vec![module.trim_start_matches('.')];
    }
    line.strip_prefix("import ").map(listed).unwrap_or_default()
}

/// Splits `a, b as c` into names, without aliases and comments.
fn listed(names: &str) -> Vec<&str> {
    let names = names.split('#').next().unwrap_or_default();
    names.split(',').filter_map(|name| name.split_whitespace().next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_python_import_is_read() {
        assert_eq!(imported("from . import codec, wire as w  # both"), ["codec", "wire"]);
        assert_eq!(imported("from .link import Body"), ["link"]);
        assert_eq!(imported("from servers import galatea"), ["servers"]);
        assert_eq!(imported("import json, servers as s"), ["json", "servers"]);
        assert_eq!(imported("value = 1"), [""; 0]);
    }
}
