//! Lists of faults that are still allowed, with a count for each file. No change may raise a count.

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result, bail};

use crate::process;

/// Number of faults in each file.
pub type Counts = BTreeMap<String, usize>;

/// A file with the number of faults of one kind that each source file may still have.
pub struct Ratchet {
    /// Path of the list below the root of the checkout. Each line is a count, a space and a path.
    pub list: &'static str,
    /// The comment at the top of the list, lines that begin with `#`.
    pub head: &'static str,
    /// The noun of the faults within a sentence, as in "3 waits by real time".
    pub faults: &'static str,
    /// Advice for correcting one.
    pub advice: &'static str,
}

impl Ratchet {
    /// Compares the counts of today with the list. More faults than listed are a fault, and so are fewer, because the list must
    /// fall too.
    pub fn compare(&self, found: &Counts) -> Vec<String> {
        match self.read() {
            Ok(listed) => self.differences(found, &listed),
            Err(error) => vec![format!("{error:#}")],
        }
    }

    /// Writes the counts of today, which must not be higher than the list allows. Makes the list if there is none.
    pub fn record(&self, found: &Counts) -> Result<()> {
        let path = process::root().join(self.list);
        if path.exists() {
            let listed = self.read()?;
            let raised: Vec<String> = self.raised(found, &listed).collect();
            if !raised.is_empty() {
                bail!("{} stays as it is:\n  {}", self.list, raised.join("\n  "));
            }
        }
        fs::write(&path, self.text_of(found)).with_context(|| self.list.to_owned())?;
        let sum: usize = found.values().sum();
        println!("tidy: {} has {sum} {} in {} files", self.list, self.faults, found.len());
        Ok(())
    }

    fn read(&self) -> Result<Counts> {
        let text = fs::read_to_string(process::root().join(self.list));
        self.parse(&text.with_context(|| self.list.to_owned())?)
    }

    fn parse(&self, text: &str) -> Result<Counts> {
        let entry = |line: &str| {
            let (count, path) = line.split_once(' ')?;
            Some((path.to_owned(), count.parse().ok()?))
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| entry(line).with_context(|| format!("{}: no count in {line:?}", self.list)))
            .collect()
    }

    fn text_of(&self, counts: &Counts) -> String {
        let lines = counts.iter().map(|(path, count)| format!("{count} {path}\n"));
        self.head.to_owned() + &lines.collect::<String>()
    }

    fn differences(&self, found: &Counts, listed: &Counts) -> Vec<String> {
        let fallen = listed.iter().filter_map(|(path, count)| {
            let now = found.get(path).copied().unwrap_or_default();
            let Self { list, faults, .. } = self;
            (now < *count).then(|| {
                format!("{path}: {list} allows {count} {faults}, and there are {now}: run `cargo xtask tidy --record`")
            })
        });
        self.raised(found, listed).chain(fallen).collect()
    }

    fn raised(&self, found: &Counts, listed: &Counts) -> impl Iterator<Item = String> {
        found.iter().filter_map(|(path, count)| {
            let allowed = listed.get(path).copied().unwrap_or_default();
            let Self { list, faults, advice, .. } = self;
            (*count > allowed)
                .then(|| format!("{path}: {count} {faults}, and {list} allows {allowed}: {advice}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATCHET: Ratchet = Ratchet {
        list: "tests/list.txt",
        head: "# Why.\n",
        faults: "waits by real time",
        advice: "wait with `eventually`",
    };

    #[test]
    fn a_count_that_rises_or_falls_is_reported() {
        let listed = RATCHET.parse("# why\n2 a.py\n1 b.rs\n1 gone.py\n").expect("a list");
        let found = RATCHET.parse("3 a.py\n1 b.rs\n1 new.py\n").expect("a list");
        let texts = RATCHET.differences(&found, &listed);
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts[0].starts_with("a.py: 3 waits") && texts[0].contains("allows 2"));
        assert!(texts[1].starts_with("new.py: 1 waits") && texts[1].contains("allows 0"));
        assert!(texts[2].starts_with("gone.py:") && texts[2].contains("--record"));
        assert!(RATCHET.differences(&listed, &listed).is_empty());
    }

    #[test]
    fn a_written_list_is_read_back() {
        let counts = RATCHET.parse("12 tests/a b.py\n").expect("a list");
        assert_eq!(RATCHET.parse(&RATCHET.text_of(&counts)).expect("a list"), counts);
        assert!(RATCHET.parse("tests/a.py\n").is_err());
    }
}
