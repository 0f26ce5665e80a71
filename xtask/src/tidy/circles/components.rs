//! The strongly connected components of a graph of files.

use std::collections::{BTreeMap, BTreeSet};

use super::Graph;

/// Returns sets of two or more files that all reach each other. The graphs are small, so each file's reach is computed.
pub fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|file| (file.as_str(), reached_from(file, graph))).collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
    let mut circles = BTreeSet::new();
    for file in reached.keys().filter(|file| reaches(file, file)) {
        let others = reached.keys().filter(|other| reaches(file, other) && reaches(other, file));
        circles.insert(others.map(|other| (*other).to_owned()).collect::<Vec<_>>());
    }
    circles.into_iter().filter(|circle| circle.len() > 1).collect()
}

fn reached_from<'a>(file: &str, graph: &'a Graph) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = graph.get(file).into_iter().flatten().map(String::as_str).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(graph.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        graph
    }

    #[test]
    fn each_circle_is_reported_once() {
        let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d")];
        assert_eq!(circles(&graph(&edges)), [vec!["a", "b", "c"], vec!["d", "e"]]);
    }

    #[test]
    fn a_chain_and_a_file_that_uses_itself_are_no_circles() {
        assert!(circles(&graph(&[("a", "b"), ("b", "c"), ("c", "c"), ("a", "c")])).is_empty());
    }
}
