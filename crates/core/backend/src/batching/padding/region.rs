//! Locates a tensor as the corner of a larger one: its own elements, and those around them.

/// Consecutive elements of the larger tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The next elements of the smaller tensor, by their number.
    Own(usize),
    /// Elements around it, by their number.
    Around(usize),
}

/// Returns the elements, in order, of a tensor of dimensions `outer` whose first corner is a tensor of dimensions `inner`.
/// Returns `None` if it does not fit, or if the elements cannot be counted.
pub(super) fn pieces(inner: &[i64], outer: &[i64]) -> Option<Vec<Piece>> {
    if inner.len() != outer.len() || inner.iter().zip(outer).any(|(i, o)| i > o) {
        return None;
    }
    let mut pieces = Vec::new();
    if count(outer)? == 0 {
        return Some(pieces);
    }
    walk(inner, outer, &mut pieces)?;
    Some(pieces)
}

fn walk(inner: &[i64], outer: &[i64], pieces: &mut Vec<Piece>) -> Option<()> {
    if inner == outer {
        add(pieces, Piece::Own(count(inner)?));
        return Some(());
    }
    let ((&own, inside), (&all, outside)) = (inner.split_first()?, outer.split_first()?);
    if inside == outside {
        add(pieces, Piece::Own(count(inner)?));
    } else {
        (0..own).try_for_each(|_| walk(inside, outside, pieces))?;
    }
    let missing = usize::try_from(all.checked_sub(own)?).ok()?;
    add(pieces, Piece::Around(missing.checked_mul(count(outside)?)?));
    Some(())
}

fn count(dims: &[i64]) -> Option<usize> {
    dims.iter().try_fold(1_usize, |n, &dim| n.checked_mul(usize::try_from(dim).ok()?))
}

/// Adds a piece: joins it to a last one of the same kind, and skips an empty one.
fn add(pieces: &mut Vec<Piece>, piece: Piece) {
    match (pieces.last_mut(), piece) {
        (_, Piece::Own(0) | Piece::Around(0)) => {}
        (Some(Piece::Own(before)), Piece::Own(more))
        | (Some(Piece::Around(before)), Piece::Around(more)) => *before += more,
        _ => pieces.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece::*, *};

    #[test]
    fn a_region_is_split_into_own_and_padding_pieces() {
        assert_eq!(pieces(&[2, 3], &[2, 3]), Some(vec![Own(6)]));
        assert_eq!(pieces(&[2, 3], &[2, 5]), Some(vec![Own(3), Around(2), Own(3), Around(2)]));
        assert_eq!(pieces(&[1, 2, 4], &[1, 3, 4]), Some(vec![Own(8), Around(4)]));
        let rows = vec![Own(1), Around(1), Own(1), Around(3)];
        assert_eq!(pieces(&[2, 1], &[3, 2]), Some(rows));
        assert_eq!(pieces(&[0, 2], &[2, 2]), Some(vec![Around(4)]));
        assert_eq!(pieces(&[2, 0], &[2, 1]), Some(vec![Around(2)]));
        assert_eq!(pieces(&[], &[]), Some(vec![Own(1)]));
    }

    #[test]
    fn a_region_that_is_not_a_corner_has_no_pieces() {
        assert_eq!(pieces(&[3], &[2]), None);
        assert_eq!(pieces(&[1, 1], &[1]), None);
        assert_eq!(pieces(&[-1], &[2]), None);
        assert_eq!(pieces(&[1, i64::MAX, 3], &[2, i64::MAX, 3]), None);
        assert_eq!(pieces(&[1 << 40, 2, 0], &[1 << 40, 3, 0]), Some(vec![]));
    }
}
