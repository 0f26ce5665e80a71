//! Ensembles that need themselves.

use std::collections::{BTreeMap, BTreeSet};

use crate::model_id::ModelId;

/// How an ensemble needs itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cycle<'a> {
    /// The model of its step that leads back to it.
    pub first: &'a ModelId,
    /// The last model on the way back.
    pub last: &'a ModelId,
}

/// Whether an ensemble needs itself. `needs`: the models that each one needs.
pub(crate) fn cycle<'a>(
    id: &ModelId,
    needs: &BTreeMap<&'a ModelId, Vec<&'a ModelId>>,
) -> Option<Cycle<'a>> {
    let mut seen = BTreeSet::new();
    let mut pending: Vec<(&'a ModelId, Option<&'a ModelId>)> =
        needs.get_key_value(id).map(|(id, _)| (*id, None)).into_iter().collect();
    while let Some((at, first)) = pending.pop() {
        for next in needs.get(at).into_iter().flatten().copied() {
            let first = first.unwrap_or(next);
            if next == id {
                return Some(Cycle { first, last: at });
            }
            if seen.insert(next) {
                pending.push((next, Some(first)));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(ModelId::from);
        let needs =
            BTreeMap::from([(&a, vec![&d, &b]), (&b, vec![&c]), (&c, vec![&a]), (&d, vec![])]);
        assert_eq!(cycle(&a, &needs), Some(Cycle { first: &b, last: &c }));
        assert_eq!(cycle(&d, &needs), None);
        let itself = BTreeMap::from([(&a, vec![&a])]);
        assert_eq!(cycle(&a, &itself), Some(Cycle { first: &a, last: &a }));
    }

    #[test]
    fn what_only_leads_to_a_cycle_is_none() {
        let [a, b, c] = ["a", "b", "c"].map(ModelId::from);
        let needs = BTreeMap::from([(&a, vec![&b]), (&b, vec![&c]), (&c, vec![&b])]);
        assert_eq!(cycle(&a, &needs), None);
        assert_eq!(cycle(&b, &needs), Some(Cycle { first: &c, last: &c }));
    }
}
