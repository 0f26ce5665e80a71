//! Sets of CPUs: in the form of the command line, in the system's lists of NUMA nodes, and those that may be used.

use std::collections::BTreeSet;

use crate::system::MOST_CPUS;

/// Parses ranges with commas between, both ends included. Returns `None` for other texts, for a single number unless
/// `allows_single`, and for CPUs that no machine has.
pub(crate) fn parse(text: &str, allows_single: bool) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for range in text.trim().split(',') {
        let (first, last) = match range.split_once('-') {
            Some(ends) => ends,
            None if allows_single => (range, range),
            None => return None,
        };
        let (first, last): (usize, usize) = (number(first)?, number(last)?);
        if first > last || last >= MOST_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

fn number(text: &str) -> Option<usize> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Formats ranges for messages.
pub(crate) fn listed(cpus: &BTreeSet<usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let text = ranges.iter().map(|(first, last)| format!("{first}-{last}"));
    text.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_ranges_are_parsed() {
        let parsed = parse("0-1,4-5,5-6", false).expect("valid");
        assert_eq!(parsed, BTreeSet::from([0, 1, 4, 5, 6]));
        assert_eq!(listed(&parsed), "0-1,4-6");
        assert_eq!(parse("0-1,8\n", true), Some(BTreeSet::from([0, 1, 8])));
    }

    #[test]
    fn invalid_ranges_are_refused() {
        for text in
            ["", "3", "a-b", "2-1", "-1-2", "0-", "0-99999999999", "0-1024", "0-1,,2-3", "0x1-2"]
        {
            assert_eq!(parse(text, false), None, "{text}");
        }
    }
}
