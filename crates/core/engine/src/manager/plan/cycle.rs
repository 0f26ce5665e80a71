//! Finds ensembles that need themselves.

use std::collections::BTreeMap;

use crate::model_id::ModelId;

/// The way in which an ensemble needs itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DependencyCycle {
    /// The model of its step that leads back to the ensemble.
    pub first: ModelId,
    /// The last model on the way back.
    pub last: ModelId,
}

/// Returns the ensembles that need themselves. `needs` has the models that each one needs.
pub(crate) fn cycles<'a>(
    needs: &BTreeMap<&'a ModelId, Vec<&'a ModelId>>,
) -> BTreeMap<&'a ModelId, DependencyCycle> {
    let mut found = BTreeMap::new();
    for id in needs.keys().copied() {
        if found.contains_key(id) {
            continue;
        }
        // Each model on the way back needs itself in the same way.
        let path = way_back(id, needs);
        let around =
            path.iter().cycle().skip(1).zip(path.iter().cycle().skip(path.len().max(1) - 1));
        for (at, (first, last)) in path.iter().zip(around) {
            let cycle = || DependencyCycle { first: (*first).clone(), last: (*last).clone() };
            found.entry(*at).or_insert_with(cycle);
        }
    }
    found
}

/// Returns the models on a way from one back to itself, which comes first. Empty if there is none.
fn way_back<'a>(
    id: &'a ModelId,
    needs: &BTreeMap<&'a ModelId, Vec<&'a ModelId>>,
) -> Vec<&'a ModelId> {
    // The models reached, each with the model it was reached from.
    let mut reached: BTreeMap<&ModelId, &ModelId> = BTreeMap::new();
    let mut pending = vec![id];
    while let Some(at) = pending.pop() {
        for next in needs.get(at).into_iter().flatten().copied() {
            if next == id {
                let from = |at: &&'a ModelId| reached.get(*at).copied();
                let mut path: Vec<&ModelId> = std::iter::successors(Some(at), from).collect();
                path.reverse();
                return path;
            }
            if !reached.contains_key(next) {
                reached.insert(next, at);
                pending.push(next);
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a` needs `b` and `c`: `a: b c`.
    #[track_caller]
    fn check(needs: &[&str], expected: &[(&str, &str, &str)]) {
        let ids: BTreeMap<ModelId, Vec<ModelId>> = needs
            .iter()
            .filter_map(|line| line.split_once(':'))
            .map(|(id, needed)| (id.into(), needed.split_whitespace().map(ModelId::from).collect()))
            .collect();
        let needs = ids.iter().map(|(id, needed)| (id, needed.iter().collect())).collect();
        let found = cycles(&needs);
        let found: Vec<_> =
            found.iter().map(|(id, c)| (&*id.name, &*c.first.name, &*c.last.name)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_cycle_is_found_with_its_path() {
        check(
            &["a: d b", "b: c", "c: a", "d:"],
            &[("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b")],
        );
        check(&["a: a"], &[("a", "a", "a")]);
        check(
            &["a: b", "b: a", "c: d", "d: c"],
            &[("a", "b", "b"), ("b", "a", "a"), ("c", "d", "d"), ("d", "c", "c")],
        );
    }

    #[test]
    fn a_model_that_leads_to_a_cycle_is_not_part_of_it() {
        check(&["a: b", "b: c", "c: b"], &[("b", "c", "c"), ("c", "b", "b")]);
        check(&["a: b", "b: c", "c:"], &[]);
    }
}
