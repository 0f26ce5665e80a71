//! The arguments of `cargo xtask test`.

use anyhow::{Result, bail};

use crate::setup::Tier;

#[derive(Debug, PartialEq, Eq)]
pub enum What {
    Tiers(Vec<Tier>),
    /// One test, in Rust or Python.
    Test(String),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub what: What,
    /// Further arguments, for pytest.
    pub pytest: Vec<String>,
}

impl Options {
    pub fn parse(args: &[String]) -> Result<Self> {
        let (mut tiers, mut test, mut pytest) = (Vec::new(), None, Vec::new());
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--commit" => tiers.push(Tier::Commit),
                "--peers" => tiers.push(Tier::Peers),
                "--measure" => tiers.push(Tier::Measure),
                "--all" => tiers.extend([Tier::Commit, Tier::Peers, Tier::Measure]),
                "--only" => match args.next() {
                    Some(name) => test = Some(name.clone()),
                    None => bail!(
                        "--only needs the name of a test, as in `cargo xtask test --only NAME`"
                    ),
                },
                other => pytest.push(other.to_owned()),
            }
        }
        tiers.sort_unstable();
        tiers.dedup();
        let what = match (test, tiers.is_empty()) {
            (Some(_), false) => {
                bail!("--only runs one test, whatever its tier: leave out the tiers")
            }
            (Some(name), true) => What::Test(name),
            (None, true) => What::Tiers(vec![Tier::Commit]),
            (None, false) => What::Tiers(tiers),
        };
        Ok(Self { what, pytest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&args)
    }

    #[test]
    fn without_arguments_the_commit_tier_runs() {
        let options = parsed("").unwrap();
        assert_eq!(options.what, What::Tiers(vec![Tier::Commit]));
    }

    #[test]
    fn tiers_run_once_each_in_their_order() {
        let options = parsed("--measure --all -k load").unwrap();
        assert_eq!(options.what, What::Tiers(vec![Tier::Commit, Tier::Peers, Tier::Measure]));
        assert_eq!(options.pytest, ["-k", "load"]);
    }

    #[test]
    fn a_single_test_excludes_a_tier() {
        assert_eq!(parsed("--only a_test").unwrap().what, What::Test("a_test".into()));
        assert!(parsed("--only").unwrap_err().to_string().contains("name of a test"));
        assert!(parsed("--peers --only a_test").is_err());
    }
}
