//! Lines of each crate, and the number of them that ran.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Component, Path},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{crates::Crates, process};

/// Percentage points of coverage that a crate may lose.
const MAY_LOSE: f64 = 1.0;
const ALL: &str = "all crates";

/// Lines of the product by crate.
#[derive(Debug, Default, PartialEq)]
pub struct Figures(BTreeMap<String, Lines>);

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Lines {
    count: u64,
    covered: u64,
}

impl Lines {
    fn percent(self) -> f64 {
        if self.count == 0 { 100.0 } else { self.covered as f64 * 100.0 / self.count as f64 }
    }
}

impl Figures {
    /// Adds up the files of an `llvm-cov` export.
    pub fn of_export(export: &Value, crates: &Crates) -> Result<Self> {
        let files = export.pointer("/data/0/files").and_then(Value::as_array);
        let mut figures = BTreeMap::<_, Lines>::new();
        for file in files.context("llvm-cov export names no files")? {
            let Some(path) = file.get("filename").and_then(Value::as_str) else { continue };
            let path = Path::new(path).strip_prefix(process::root()).unwrap_or(Path::new(path));
            let Some(owner) = crates.owner(path).filter(|_| is_product(path)) else { continue };
            let number = |what: &str| {
                file.pointer(&format!("/summary/lines/{what}")).and_then(Value::as_u64)
            };
            let (count, covered) = (number("count"), number("covered"));
            for key in [owner, ALL] {
                let lines = figures.entry(key.to_owned()).or_default();
                lines.count += count.unwrap_or(0);
                lines.covered += covered.unwrap_or(0);
            }
        }
        Ok(Self(figures))
    }

    /// Reads the output of [`Figures::write`].
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let value: Value = serde_json::from_str(&text)?;
        let crates = value.get("crates").and_then(Value::as_object);
        let crates = crates.with_context(|| format!("{} lists no crates", file.display()))?;
        let lines = |(name, lines): (&String, &Value)| {
            let number = |what| lines.get(what).and_then(Value::as_u64);
            Some((name.clone(), Lines { count: number("lines")?, covered: number("covered")? }))
        };
        Ok(Self(crates.iter().filter_map(lines).collect()))
    }

    pub fn write(&self, tier: &str, file: &Path) -> Result<()> {
        let crates: BTreeMap<&str, Value> = self
            .0
            .iter()
            .map(|(name, lines)| {
                let percent = (lines.percent() * 100.0).round() / 100.0;
                let Lines { count, covered } = lines;
                (&**name, json!({"lines": count, "covered": covered, "percent": percent}))
            })
            .collect();
        let text = serde_json::to_string_pretty(&json!({"tier": tier, "crates": crates}))?;
        fs::write(file, text + "\n").with_context(|| file.display().to_string())
    }

    /// Returns a line for each crate, with the change since an earlier run.
    pub fn table(&self, before: Option<&Self>) -> String {
        let mut text = format!("{:28} {:>7} {:>7} {:>7}\n", "crate", "lines", "run", "percent");
        for (name, lines) in &self.0 {
            let Lines { count, covered } = lines;
            let _ = write!(text, "{name:28} {count:7} {covered:7} {:7.2}", lines.percent());
            if let Some(earlier) = before.and_then(|before| before.0.get(name)) {
                let _ = write!(text, " {:+7.2}", lines.percent() - earlier.percent());
            }
            text.push('\n');
        }
        text
    }

    /// # Errors
    /// If much less of a crate ran than in an earlier run; the error names these crates.
    pub fn check_against(&self, before: &Self) -> Result<()> {
        let fallen = before.0.iter().filter_map(|(name, earlier)| {
            let lines = self.0.get(name)?;
            let lost = earlier.percent() - lines.percent();
            (lost > MAY_LOSE).then(|| format!("{name} by {lost:.2}"))
        });
        match fallen.collect::<Vec<_>>().as_slice() {
            [] => Ok(()),
            fallen => bail!("coverage fell by more than {MAY_LOSE} point: {}", fallen.join(", ")),
        }
    }
}

/// Returns true if a file is product code, and not a test of it.
fn is_product(path: &Path) -> bool {
    let is_other =
        |part: Component<'_>| ["tests", "examples"].iter().any(|name| part.as_os_str() == *name);
    let is_tests = path.file_name().is_some_and(|name| name == "tests.rs" || name == "build.rs");
    path.starts_with("crates") && !is_tests && !path.components().any(is_other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(covered: u64) -> Figures {
        Figures([("a".to_owned(), Lines { count: 1000, covered })].into())
    }

    #[test]
    fn files_are_added_up_by_crate_without_tests() {
        let file = |path: &str, count: u64, covered: u64| {
            let path = process::root().join(path);
            json!({"filename": path, "summary": {"lines": {"count": count, "covered": covered}}})
        };
        let files = [
            file("crates/core/access/src/gate.rs", 10, 5),
            file("crates/core/access/src/jwt/tests.rs", 10, 10),
            file("crates/front/http/tests/service/main.rs", 10, 10),
            file("crates/perf/load/src/lib.rs", 4, 4),
            file("xtask/src/main.rs", 10, 10),
            json!({"filename": "/elsewhere/lib.rs", "summary": {"lines": {"count": 9, "covered": 9}}}),
        ];
        let export = json!({"data": [{"files": files}]});
        let crates = Crates::read().expect("metadata");
        let found = Figures::of_export(&export, &crates).expect("files");
        let lines = |count, covered| Lines { count, covered };
        let expected = [
            (ALL.to_owned(), lines(14, 9)),
            ("galatea-access".to_owned(), lines(10, 5)),
            ("galatea-perf-load".to_owned(), lines(4, 4)),
        ];
        assert_eq!(found, Figures(expected.into()));
    }

    #[test]
    fn a_crate_may_lose_at_most_one_point() {
        figures(890).check_against(&figures(900)).expect("a point");
        let error = figures(889).check_against(&figures(900)).expect_err("more").to_string();
        assert_eq!(error, "coverage fell by more than 1 point: a by 1.10");
        assert!(figures(889).table(Some(&figures(900))).contains("88.90   -1.10"));
    }

    #[test]
    fn written_figures_are_read_back() {
        let file = std::env::temp_dir().join(format!("coverage-{}.json", std::process::id()));
        figures(890).write("commit", &file).expect("written");
        assert_eq!(Figures::read(&file).expect("read"), figures(890));
        fs::remove_file(file).expect("removed");
    }
}
