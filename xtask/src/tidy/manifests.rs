//! What the manifests say: layers and wings, foreign libraries, licences.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process;

/// What speaks a wire protocol: only the front ends, the client and the program may name it.
const FRONT_END_ONLY: [&str; 4] = ["hyper", "hyper-util", "tonic", "h2"];
const FRONT_END_LAYER: u64 = 5;
/// What opens sockets under the protocols, with tokio alone and without any of the above. The front ends stand on
/// it and do not open any themselves.
const SOCKETS: &str = "galatea-frontend";
const SOCKET_FEATURE: &str = "net";
/// Generated service stubs name tonic's types; the crate switches its transport off.
const CODE_GENERATED_FOR_TONIC: &str = "galatea-proto";
/// The wire client of the load tool is the one crate of its wing that has sockets.
const WIRE_CLIENT: &str = "galatea-client";
/// What a manifest may name as its wing; without one a crate belongs to the server.
const WINGS: [&str; 3] = [SERVER, PERF, SHARED];
const SERVER: &str = "server";
const PERF: &str = "perf";
/// Vocabulary that both wings stand on.
const SHARED: &str = "shared";
/// The program holds server and load tool together, so it alone reaches into both wings.
const PROGRAM: &str = "galatea";
/// How the crates are called that run models.
const BACKENDS: &str = "galatea-backend-";
/// What tests alone may depend on.
const FOR_TESTS: &str = "galatea-test-support";
const FORBIDDEN: [&str; 3] = ["axum", "ort", "tch"];

/// What cargo reads in the manifests; needs no network and no lock file.
pub fn metadata() -> Result<Value> {
    let args = ["metadata", "--offline", "--no-deps", "--format-version", "1"];
    let out = process::cargo().args(args).output().context("cannot start cargo metadata")?;
    if !out.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(serde_json::from_slice(&out.stdout)?)
}

/// Where a crate stands: crates see lower layers of their own wing and of the shared one.
#[derive(Clone, Copy)]
struct Place<'a> {
    wing: &'a str,
    layer: u64,
}

pub fn faults(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let places: HashMap<&str, Place<'_>> =
        packages.iter().filter_map(|p| Some((p["name"].as_str()?, place(p)?))).collect();
    packages.iter().flat_map(|package| package_faults(package, &places)).collect()
}

fn place(package: &Value) -> Option<Place<'_>> {
    let galatea = &package["metadata"]["galatea"];
    Some(Place {
        wing: galatea["wing"].as_str().unwrap_or(SERVER),
        layer: galatea["layer"].as_u64()?,
    })
}

fn package_faults(package: &Value, places: &HashMap<&str, Place<'_>>) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or("?");
    let mut faults = Vec::new();
    if package["license"].as_str().is_none() {
        faults.push(format!("{name}: no licence in its manifest"));
    }
    let in_crates = package["manifest_path"].as_str().is_some_and(|p| p.contains("/crates/"));
    let own = places.get(name).copied();
    if in_crates && own.is_none() {
        faults.push(format!("{name}: no [package.metadata.galatea] layer"));
    }
    if let Some(own) = own.filter(|own| !WINGS.contains(&own.wing)) {
        faults.push(format!("{name}: no such wing as {}", own.wing));
    }
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let on = dependency["name"].as_str().unwrap_or("?");
        let normal = dependency["kind"].is_null();
        if FORBIDDEN.contains(&on) {
            faults.push(format!("{name}: {on} is not used in this project"));
        }
        let features = dependency["features"].as_array().into_iter().flatten();
        if normal && on == "tokio" && own.is_some_and(|own| own.wing != PERF) && name != SOCKETS {
            faults.extend(features.filter(|f| *f == SOCKET_FEATURE).map(|_| {
                format!("{name}: sockets (tokio's feature {SOCKET_FEATURE}) are opened in {SOCKETS} only")
            }));
        }
        if let (true, Some(own)) = (normal, own) {
            faults.extend(match places.get(on) {
                Some(theirs) => crate_fault(name, own, on, *theirs),
                None => library_fault(name, own, on),
            });
        }
    }
    faults
}

/// A crate of ours below another one of ours.
fn crate_fault(name: &str, own: Place<'_>, on: &str, theirs: Place<'_>) -> Option<String> {
    if on == FOR_TESTS {
        return Some(format!("{name} depends on {on}: name it under [dev-dependencies]"));
    }
    if on.starts_with(BACKENDS) && name != PROGRAM {
        return Some(format!("{name} depends on {on}: only the program names a backend"));
    }
    let (wing, layer) = (own.wing, own.layer);
    if theirs.wing != wing && theirs.wing != SHARED {
        return (name != PROGRAM).then(|| {
            format!(
                "{name} (wing {wing}) depends on {on} (wing {}): only the program does",
                theirs.wing
            )
        });
    }
    (theirs.layer >= layer).then(|| {
        format!("{name} (layer {layer}) depends on {on} (layer {}): only downward", theirs.layer)
    })
}

/// A foreign library that only some crates may use.
fn library_fault(name: &str, own: Place<'_>, on: &str) -> Option<String> {
    let front_end = own.wing == SERVER && own.layer >= FRONT_END_LAYER;
    let allowed = !FRONT_END_ONLY.contains(&on)
        || front_end
        || name == WIRE_CLIENT
        || (on == "tonic" && name == CODE_GENERATED_FOR_TONIC);
    (!allowed).then(|| {
        let Place { wing, layer } = own;
        format!("{name} (wing {wing}, layer {layer}) depends on {on}: only the server from layer {FRONT_END_LAYER} up and {WIRE_CLIENT}")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, layer: u64, on: &[&str]) -> Value {
        in_wing(SERVER, name, layer, on)
    }

    fn in_wing(wing: &str, name: &str, layer: u64, on: &[&str]) -> Value {
        let dependencies: Vec<_> = on.iter().map(|d| json!({ "name": d, "kind": null })).collect();
        json!({
            "name": name, "license": "Apache-2.0", "manifest_path": format!("/x/crates/{name}/Cargo.toml"),
            "metadata": { "galatea": { "wing": wing, "layer": layer } }, "dependencies": dependencies,
        })
    }

    fn faults_of(packages: &[Value]) -> Vec<String> {
        faults(&json!({ "packages": packages }))
    }

    #[test]
    fn downward_is_allowed() {
        assert!(faults_of(&[package("a", 0, &["serde"]), package("b", 1, &["a"])]).is_empty());
    }

    #[test]
    fn upward_and_sideways_are_named() {
        let up = faults_of(&[package("a", 0, &["b"]), package("b", 1, &[])]);
        assert_eq!(up, ["a (layer 0) depends on b (layer 1): only downward"]);
        let sideways = faults_of(&[package("a", 3, &["b"]), package("b", 3, &[])]);
        assert_eq!(sideways, ["a (layer 3) depends on b (layer 3): only downward"]);
    }

    #[test]
    fn wings_stand_on_shared_crates_and_not_on_each_other() {
        let types = || in_wing(SHARED, "types", 0, &[]);
        let load = || in_wing(PERF, "load", 3, &["types"]);
        assert!(faults_of(&[types(), load(), package("engine", 4, &["types"])]).is_empty());
        assert_eq!(
            faults_of(&[types(), load(), package("engine", 4, &["load"])]),
            ["engine (wing server) depends on load (wing perf): only the program does"]
        );
        assert_eq!(
            faults_of(&[package("config", 1, &[]), in_wing(PERF, "tool", 4, &["config"])]),
            ["tool (wing perf) depends on config (wing server): only the program does"]
        );
        assert_eq!(
            faults_of(&[package("config", 0, &[]), in_wing(SHARED, "types", 1, &["config"])]),
            ["types (wing shared) depends on config (wing server): only the program does"]
        );
    }

    #[test]
    fn the_program_holds_the_wings_together() {
        let tool = || in_wing(PERF, "tool", 4, &[]);
        assert!(faults_of(&[tool(), package(PROGRAM, 6, &["tool"])]).is_empty());
        assert_eq!(faults_of(&[tool(), package("http", 5, &["tool"])]).len(), 1);
    }

    #[test]
    fn backends_are_named_by_the_program_alone() {
        let onnx = || package("galatea-backend-onnx", 3, &[]);
        assert!(faults_of(&[onnx(), package(PROGRAM, 6, &["galatea-backend-onnx"])]).is_empty());
        assert_eq!(
            faults_of(&[onnx(), package("galatea-engine", 4, &["galatea-backend-onnx"])]),
            ["galatea-engine depends on galatea-backend-onnx: only the program names a backend"]
        );
    }

    #[test]
    fn the_support_of_tests_stays_out_of_the_product() {
        let support = || in_wing(SHARED, FOR_TESTS, 0, &[]);
        let mut http = package("http", 6, &[FOR_TESTS]);
        assert_eq!(
            faults_of(&[support(), http.clone()]),
            ["http depends on galatea-test-support: name it under [dev-dependencies]"]
        );
        http["dependencies"][0]["kind"] = json!("dev");
        assert!(faults_of(&[support(), http]).is_empty());
    }

    #[test]
    fn a_crate_without_a_wing_is_the_servers() {
        let mut config = package("config", 1, &["load"]);
        config["metadata"]["galatea"].as_object_mut().unwrap().remove("wing");
        assert_eq!(faults_of(&[config, in_wing(PERF, "load", 0, &[])]).len(), 1);
    }

    #[test]
    fn a_misspelt_wing_is_named() {
        assert_eq!(faults_of(&[in_wing("pref", "load", 3, &[])]), ["load: no such wing as pref"]);
    }

    #[test]
    fn sockets_only_in_the_front_ends() {
        assert_eq!(faults_of(&[package("codec", 4, &["hyper"])]).len(), 1);
        assert!(faults_of(&[package("http", 5, &["hyper"])]).is_empty());
        assert!(faults_of(&[in_wing(PERF, WIRE_CLIENT, 1, &["h2"])]).is_empty());
        assert_eq!(faults_of(&[in_wing(PERF, "tool", 5, &["h2"])]).len(), 1);
        assert!(faults_of(&[package("galatea-proto", 0, &["tonic"])]).is_empty());
        assert_eq!(faults_of(&[package("http", 5, &["axum"])]).len(), 1);
    }

    #[test]
    fn sockets_are_opened_in_one_crate_of_the_server() {
        let with_sockets = |wing: &str, name: &str| {
            let mut package = in_wing(wing, name, 5, &[]);
            package["dependencies"] =
                json!([{ "name": "tokio", "kind": null, "features": ["net", "rt"] }]);
            package
        };
        assert!(faults_of(&[with_sockets(SERVER, SOCKETS)]).is_empty());
        assert!(faults_of(&[with_sockets(PERF, "galatea-perf-load")]).is_empty());
        assert_eq!(
            faults_of(&[with_sockets(SERVER, "galatea-http")]),
            ["galatea-http: sockets (tokio's feature net) are opened in galatea-frontend only"]
        );
    }

    #[test]
    fn manifests_name_layer_and_licence() {
        let bare =
            json!({ "name": "a", "license": null, "manifest_path": "/x/crates/a/Cargo.toml" });
        assert_eq!(faults_of(&[bare]).len(), 2);
    }
}
