//! The program's SBOM as a CycloneDX document: every crate that is compiled into it, with its licence and checksum.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::target::Target;
use crate::process;

/// Returns the document's text; the same for the same lock file.
pub fn make(version: &str, target: &Target, time: u64) -> Result<Vec<u8>> {
    let platform = target.triple();
    let output = process::cargo()
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform", &platform])
        .output()?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let lock = std::fs::read_to_string(process::root().join("Cargo.lock"))?;
    let parts = Parts { compiled: compiled(&platform)?, checksums: checksums(&lock) };
    let document = document(&metadata, &parts, version, &stamp(time)?)?;
    Ok(format!("{document:#}\n").into_bytes())
}

/// Name and version of a crate.
type Named = (String, String);

/// Facts about crates that `cargo metadata` does not give.
struct Parts {
    /// The crates of the program. `cargo metadata` has more: it enables the features of all tests.
    compiled: BTreeSet<Named>,
    checksums: BTreeMap<Named, String>,
}

/// Returns the crates that the program is compiled from. `cargo tree` prints a line for each: `name v1.0.0 (where)`.
fn compiled(platform: &str) -> Result<BTreeSet<Named>> {
    let (ok, text) =
        process::output(process::cargo().args(["tree", "--package", "galatea"]).args([
            "--locked", "--quiet", "--edges", "no-dev", "--prefix", "none", "--format", "{p}",
            "--target", platform,
        ]))?;
    if !ok {
        bail!("cargo tree: {text}");
    }
    let named = |line: &str| {
        let (name, rest) = line.split_once(" v")?;
        Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
    };
    Ok(text.lines().filter_map(named).collect())
}

fn stamp(time: u64) -> Result<String> {
    let at = format!("@{time}");
    let mut date = std::process::Command::new("date");
    let (ok, text) = process::output(date.args(["-u", "-d", &at, "+%Y-%m-%dT%H:%M:%SZ"]))?;
    if ok { Ok(text.trim().to_owned()) } else { bail!("date: {text}") }
}

/// Returns the checksums in a lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<Named, String> {
    let value = |package: &str, key: &str| {
        let start = format!("{key} = \"");
        let line = package.lines().find_map(|line| line.strip_prefix(start.as_str()))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let package = |text: &str| {
        Some(((value(text, "name")?, value(text, "version")?), value(text, "checksum")?))
    };
    lock.split("[[package]]").filter_map(package).collect()
}

fn document(metadata: &Value, parts: &Parts, version: &str, time: &str) -> Result<Value> {
    let by_id = |list: &Value| -> Result<BTreeMap<String, Value>> {
        let list = list.as_array().context("a list in the output of cargo metadata")?;
        Ok(list.iter().filter_map(|v| Some((v["id"].as_str()?.to_owned(), v.clone()))).collect())
    };
    let (packages, nodes) = (by_id(&metadata["packages"])?, by_id(&metadata["resolve"]["nodes"])?);
    let is_program = |package: &&Value| package["name"] == "galatea";
    let program = packages.values().find(is_program).context("no package galatea")?;
    let root = program["id"].as_str().unwrap_or_default();
    let (mut seen, mut waiting) = (BTreeSet::from([root]), vec![root]);
    let mut dependencies = Vec::new();
    while let Some(id) = waiting.pop() {
        let mut needed = linked(&nodes[id]);
        needed.retain(|id| parts.compiled.contains(&named(&packages[*id])));
        dependencies.push((
            reference(&packages[id]),
            needed.iter().map(|id| reference(&packages[*id])).collect(),
        ));
        waiting.extend(needed.into_iter().filter(|id| seen.insert(id)));
    }
    dependencies.sort();
    let list = dependencies
        .iter()
        .map(|(of, on): &(String, BTreeSet<String>)| json!({"ref": of, "dependsOn": on}));
    let components =
        seen.iter().filter(|id| **id != root).map(|id| component(&packages[*id], parts));
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": time, "component": {
            "type": "application", "bom-ref": reference(program), "name": "galatea", "version": version,
            "licenses": [{"expression": "Apache-2.0"}]}},
        "components": components.collect::<Vec<_>>(),
        "dependencies": list.collect::<Vec<_>>(),
    }))
}

/// Returns the crates that a crate links, or needs for its build; those of its tests are left out.
fn linked(node: &Value) -> BTreeSet<&str> {
    let is_linked = |dependency: &&Value| {
        let kinds = dependency["dep_kinds"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"))
    };
    let dependencies = node["deps"].as_array().into_iter().flatten();
    dependencies.filter(is_linked).filter_map(|dependency| dependency["pkg"].as_str()).collect()
}

fn named(package: &Value) -> Named {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    (text("name"), text("version"))
}

/// Returns the package URL of a crate.
fn reference(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    format!("pkg:cargo/{}@{}", text("name"), text("version"))
}

fn component(package: &Value, parts: &Parts) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let mut component = json!({
        "type": "library", "bom-ref": reference(package), "purl": reference(package),
        "name": text("name"), "version": text("version"),
    });
    if let Some(licence) = package["license"].as_str() {
        // A slash is the older form of `OR`.
        component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    if let Some(checksum) = parts.checksums.get(&named(package)) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_tests_are_omitted() {
        let package = |id: &str, licence: &str| json!({"id": id, "name": id, "version": "1.0.0", "license": licence});
        let dependency = |id: &str, kind: Value| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("galatea", "Apache-2.0"), package("linked", "MIT/Apache-2.0"), package("tester", "MIT"), package("unused", "MIT")],
            "resolve": {"nodes": [
                {"id": "galatea", "deps": [dependency("linked", Value::Null), dependency("unused", Value::Null), dependency("tester", json!("dev"))]},
                {"id": "linked", "deps": []},
                {"id": "tester", "deps": []},
            ]},
        });
        let lock =
            "version = 4\n[[package]]\nname = \"linked\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n";
        let version = |name: &str| (name.to_owned(), "1.0.0".to_owned());
        let compiled = ["galatea", "linked", "tester"].map(version).into();
        let parts = Parts { compiled, checksums: checksums(lock) };
        let document = document(&metadata, &parts, "1.0.0", "2026-01-01T00:00:00Z").unwrap();
        let listed = document["components"].as_array().unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(listed[0]["hashes"][0]["content"], "ab");
        assert_eq!(document["dependencies"][0]["dependsOn"], json!(["pkg:cargo/linked@1.0.0"]));
    }
}
