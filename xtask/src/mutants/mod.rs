//! `cargo xtask mutants`: applies each fault in `tests/mutants` and reports whether its named test fails.

mod order;
mod patch;
mod test_run;
mod tree;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use anyhow::{Result, bail};

use self::{
    patch::{NamedTest, Patch},
    test_run::Outcome,
    tree::Tree,
};

/// The result for a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Caught,
    Survived,
    /// The code that it changes no longer exists.
    DoesNotApply,
    DoesNotCompile,
    /// The compiler warns about it, so nobody would make the mistake.
    Warns,
    /// The named test fails without the fault, or does not exist.
    TestFails,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::Survived => "SURVIVED",
            Self::DoesNotApply => "does not apply",
            Self::DoesNotCompile => "does not compile",
            Self::Warns => "compiles with a warning",
            Self::TestFails => "its test does not pass without it",
        }
    }
}

/// `[--check] [NAME...]`: runs the faults whose file name, crate or tier contains one of the names, by default all. `--check`
/// only checks that each patch applies.
#[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
pub fn run(args: &[String]) -> Result<()> {
    let is_check = args.iter().any(|arg| arg == "--check");
    let names: Vec<&String> = args.iter().filter(|arg| *arg != "--check").collect();
    let mut patches = patch::all()?;
    patches.retain(|patch| names.is_empty() || names.iter().any(|name| patch.is_named(name)));
    if patches.is_empty() {
        bail!("no fault in {} has a name like {names:?}", patch::folder().display());
    }
    let tree = Tree::prepare()?;
    if is_check {
        return check(&tree, &patches);
    }
    order::put_dependents_first(&tree.crates, &mut patches);
    let good = good_tests(&tree, &patches)?;
    let verdicts: Vec<_> = patches
        .iter()
        .map(|patch| {
            let started = Instant::now();
            let verdict = verdict(&tree, patch, &good)?;
            let seconds = started.elapsed().as_secs();
            println!("mutants: {}: {} ({seconds} s)", patch.name, verdict.text());
            Ok((patch, verdict, seconds))
        })
        .collect::<Result<_>>()?;
    report(&verdicts)
}

fn check(tree: &Tree, patches: &[Patch]) -> Result<()> {
    let lost: Vec<&str> =
        patches.iter().filter(|patch| !tree.takes(patch)).map(|patch| &*patch.name).collect();
    match lost.as_slice() {
        [] => Ok(()),
        _ => bail!(
            "{} of {} faults do not apply any more: {}; write each anew for the code as it is",
            lost.len(),
            patches.len(),
            lost.join(", ")
        ),
    }
}

/// Returns the named tests that pass without a fault. Those of a crate run together.
fn good_tests(tree: &Tree, patches: &[Patch]) -> Result<BTreeSet<NamedTest>> {
    let mut groups = BTreeMap::<_, BTreeSet<NamedTest>>::new();
    for test in patches.iter().map(|patch| &patch.caught_by) {
        groups.entry(tree.target_of(test)?).or_default().insert(test.clone());
    }
    let mut good = BTreeSet::new();
    for (target, tests) in groups {
        println!("mutants: without a fault: {target}");
        let all: Vec<&NamedTest> = tests.iter().collect();
        if tree.run(&target, &all)? == Outcome::Passed {
            good.extend(tests);
            continue;
        }
        for test in tests {
            match tree.run(&target, &[&test])? {
                Outcome::Passed => drop(good.insert(test)),
                other => eprintln!("mutants: without any fault: {test}: {}", other.text()),
            }
        }
    }
    Ok(good)
}

fn verdict(tree: &Tree, patch: &Patch, good: &BTreeSet<NamedTest>) -> Result<Verdict> {
    if !tree.takes(patch) {
        return Ok(Verdict::DoesNotApply);
    }
    let test = &patch.caught_by;
    if !good.contains(test) {
        return Ok(Verdict::TestFails);
    }
    let _applied = tree.apply(patch)?;
    Ok(match tree.run(&tree.target_of(test)?, &[test])? {
        Outcome::Passed => Verdict::Survived,
        Outcome::Failed => Verdict::Caught,
        Outcome::DoesNotCompile => Verdict::DoesNotCompile,
        Outcome::Warns => Verdict::Warns,
        Outcome::NoTest => Verdict::TestFails,
    })
}

fn report(verdicts: &[(&Patch, Verdict, u64)]) -> Result<()> {
    let width = verdicts.iter().map(|(patch, ..)| patch.name.len()).max().unwrap_or_default();
    println!("\n{:width$}  tier    seconds  verdict", "fault");
    for (patch, verdict, seconds) in verdicts {
        println!("{:width$}  {:6}  {seconds:7}  {}", patch.name, patch.tier, verdict.text());
    }
    let caught = verdicts.iter().filter(|(_, verdict, _)| *verdict == Verdict::Caught).count();
    println!("{caught} of {} faults are caught", verdicts.len());
    if caught < verdicts.len() {
        bail!("{} faults are not caught by the test that they name", verdicts.len() - caught);
    }
    Ok(())
}
