//! "Did you mean": the nearest known names to an unknown one, for options, commands and fields of a configuration.

/// Longest name to compare, in bytes: the time grows with the square of the length.
const LONGEST: usize = 64;

/// Returns the closest names, all at the same distance, in their order, at most three; none when no name is near. Letters may be
/// swapped, and case does not count.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if name.len() > LONGEST {
        return Vec::new();
    }
    let name = name.to_ascii_lowercase();
    let length = name.chars().count();
    let limit = (length / 3).clamp(1, 3);
    // Names with a larger difference in length are further away.
    let may_be_near = |known: &&str| known.chars().count().abs_diff(length) <= limit;
    let distances: Vec<(usize, &str)> = known
        .into_iter()
        .filter(may_be_near)
        .map(|known| (distance(&name, &known.to_ascii_lowercase(), limit), known))
        .collect();
    let Some(best) = distances.iter().map(|&(d, _)| d).min().filter(|&best| best <= limit) else {
        return Vec::new();
    };
    distances.iter().filter(|&&(d, _)| d == best).map(|&(_, known)| known).take(3).collect()
}

/// Returns the edits (insert, delete, replace, swap neighbours) that turn `a` into `b`; a number above `limit` if there are more.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let a = a.chars().collect::<Vec<_>>();
    let b = b.chars().collect::<Vec<_>>();
    let width = b.len() + 1;
    let mut before = vec![0; width];
    let mut previous = (0..width).collect::<Vec<_>>();
    for (i, &x) in a.iter().enumerate() {
        let mut current = vec![i + 1; width];
        for (j, &y) in b.iter().enumerate() {
            let replaced = previous[j] + usize::from(x != y);
            let mut best = replaced.min(previous[j + 1] + 1).min(current[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                best = best.min(before[j - 1] + 1);
            }
            current[j + 1] = best;
        }
        // Later rows can only be further away: they come from these two rows.
        let is_far = |row: &[usize]| row.iter().all(|&distance| distance > limit);
        if is_far(&previous) && is_far(&current) {
            return limit.saturating_add(1);
        }
        before = std::mem::replace(&mut previous, current);
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances_are_computed() {
        let cases = [
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("dim", "dims", 1),
            ("knid", "kind", 1),
            ("ab", "xy", 2),
        ];
        assert!(distance("a name", "of other letters", 2) > 2);
        for (a, b, expected) in cases {
            assert_eq!(distance(a, b, 5), expected, "{a} {b}");
            assert_eq!(distance(b, a, 5), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_nearest_names_are_sorted_by_distance() {
        let known = ["serve", "perf", "runtime"];
        assert_eq!(nearest("Sevre", known), ["serve"]);
        assert_eq!(nearest("runtimes", known), ["runtime"]);
        assert!(nearest("bench", known).is_empty());
        assert_eq!(nearest("ba", ["b", "bat", "bar", "baz", "bag"]), ["b", "bat", "bar"]);
        assert!(nearest(&"x".repeat(LONGEST + 1), ["x"]).is_empty());
    }
}
