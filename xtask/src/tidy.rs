//! The rules a reviewer would otherwise repeat: layers, manifests, file sizes, ignored tests.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process;

const MAX_LINES: usize = 800;
/// Sockets and their frameworks: only the front ends, the client and the program may name them.
const FRONT_END_ONLY: [&str; 4] = ["hyper", "hyper-util", "tonic", "h2"];
const FRONT_END_LAYER: u64 = 5;
/// Generated service stubs name tonic's types; the crate switches its transport off.
const CODE_GENERATED_FOR_TONIC: &str = "galatea-proto";
/// The wire client lies low so that the load tool can stand on it; nothing of the server may.
const WIRE_CLIENT: &str = "galatea-client";
const LOAD_TOOL: &str = "galatea-perf";
const FORBIDDEN: [&str; 3] = ["axum", "ort", "tch"];

pub fn run() -> Result<()> {
    let mut faults = manifest_faults(&metadata()?);
    faults.extend(source_faults()?);
    if faults.is_empty() {
        println!("tidy: nothing to say");
        return Ok(());
    }
    bail!("tidy:\n  {}", faults.join("\n  "))
}

/// What cargo reads in the manifests; needs no network and no lock file.
fn metadata() -> Result<Value> {
    let args = ["metadata", "--offline", "--no-deps", "--format-version", "1"];
    let out = process::cargo().args(args).output().context("cannot start cargo metadata")?;
    if !out.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(serde_json::from_slice(&out.stdout)?)
}

fn manifest_faults(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let layers: HashMap<&str, u64> =
        packages.iter().filter_map(|p| Some((p["name"].as_str()?, layer(p)?))).collect();
    packages.iter().flat_map(|package| package_faults(package, &layers)).collect()
}

fn layer(package: &Value) -> Option<u64> {
    package["metadata"]["galatea"]["layer"].as_u64()
}

fn package_faults(package: &Value, layers: &HashMap<&str, u64>) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or("?");
    let mut faults = Vec::new();
    if package["license"].as_str().is_none() {
        faults.push(format!("{name}: no licence in its manifest"));
    }
    let in_crates = package["manifest_path"].as_str().is_some_and(|p| p.contains("/crates/"));
    let own = layers.get(name).copied();
    if in_crates && own.is_none() {
        faults.push(format!("{name}: no [package.metadata.galatea] layer"));
    }
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let on = dependency["name"].as_str().unwrap_or("?");
        let normal = dependency["kind"].is_null();
        if FORBIDDEN.contains(&on) {
            faults.push(format!("{name}: {on} is not used in this project"));
        }
        if let (true, Some(own)) = (normal, own) {
            faults.extend(dependency_fault(name, own, on, layers.get(on).copied()));
        }
    }
    faults
}

fn dependency_fault(name: &str, own: u64, on: &str, layer: Option<u64>) -> Option<String> {
    match layer {
        Some(theirs) if theirs >= own => {
            Some(format!("{name} (layer {own}) depends on {on} (layer {theirs}): only downward"))
        }
        None if own < FRONT_END_LAYER
            && FRONT_END_ONLY.contains(&on)
            && name != WIRE_CLIENT
            && !(on == "tonic" && name == CODE_GENERATED_FOR_TONIC) =>
        {
            Some(format!(
                "{name} (layer {own}) depends on {on}: only from layer {FRONT_END_LAYER} up"
            ))
        }
        Some(_) if on == WIRE_CLIENT && !name.starts_with(LOAD_TOOL) => {
            Some(format!("{name} depends on {on}: only the load tool's crates do"))
        }
        _ => None,
    }
}

fn source_faults() -> Result<Vec<String>> {
    let root = process::root();
    let mut faults = Vec::new();
    for top in ["crates", "xtask", "tests", "examples"] {
        for file in sources(&root.join(top))? {
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let shown = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
            faults.extend(text_faults(&shown, &text));
        }
    }
    Ok(faults)
}

fn text_faults(shown: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let mut faults = Vec::new();
    if lines > MAX_LINES && !shown.contains("/generated/") {
        faults.push(format!("{shown}: {lines} lines, at most {MAX_LINES}"));
    }
    if text.lines().any(|line| line.trim_start().starts_with("#[ignore")) {
        faults.push(format!("{shown}: an ignored test"));
    }
    faults
}

fn sources(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(dir) else { return Ok(found) };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "py") {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        run().unwrap();
    }

    fn package(name: &str, layer: u64, on: &[&str]) -> Value {
        let dependencies: Vec<_> = on.iter().map(|d| json!({ "name": d, "kind": null })).collect();
        json!({
            "name": name, "license": "Apache-2.0", "manifest_path": format!("/x/crates/{name}/Cargo.toml"),
            "metadata": { "galatea": { "layer": layer } }, "dependencies": dependencies,
        })
    }

    fn faults(packages: &[Value]) -> Vec<String> {
        manifest_faults(&json!({ "packages": packages }))
    }

    #[test]
    fn downward_is_allowed() {
        assert!(faults(&[package("a", 0, &["serde"]), package("b", 1, &["a"])]).is_empty());
    }

    #[test]
    fn upward_and_sideways_are_named() {
        let up = faults(&[package("a", 0, &["b"]), package("b", 1, &[])]);
        assert_eq!(up, ["a (layer 0) depends on b (layer 1): only downward"]);
        let sideways = faults(&[package("a", 3, &["b"]), package("b", 3, &[])]);
        assert_eq!(sideways, ["a (layer 3) depends on b (layer 3): only downward"]);
    }

    #[test]
    fn the_wire_client_serves_the_load_tool_alone() {
        let client = || package(WIRE_CLIENT, 1, &["h2"]);
        assert!(faults(&[client(), package("galatea-perf-load", 3, &[WIRE_CLIENT])]).is_empty());
        let found = faults(&[client(), package("galatea-engine", 4, &[WIRE_CLIENT])]);
        assert_eq!(
            found,
            ["galatea-engine depends on galatea-client: only the load tool's crates do"]
        );
    }

    #[test]
    fn sockets_only_in_the_front_ends() {
        assert_eq!(faults(&[package("codec", 4, &["hyper"])]).len(), 1);
        assert!(faults(&[package("http", 5, &["hyper"])]).is_empty());
        assert!(faults(&[package("galatea-proto", 0, &["tonic"])]).is_empty());
        assert_eq!(faults(&[package("http", 5, &["axum"])]).len(), 1);
    }

    #[test]
    fn manifests_name_layer_and_licence() {
        let bare =
            json!({ "name": "a", "license": null, "manifest_path": "/x/crates/a/Cargo.toml" });
        assert_eq!(faults(&[bare]).len(), 2);
    }

    #[test]
    fn long_files_and_ignored_tests_are_named() {
        assert_eq!(text_faults("a.rs", &"x\n".repeat(MAX_LINES + 1)).len(), 1);
        assert_eq!(text_faults("a.rs", "  #[ignore = \"slow\"]\n").len(), 1);
        assert!(text_faults("a.rs", "// no #[ignore] here\n").is_empty());
    }
}
