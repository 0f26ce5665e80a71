//! Checks the manifests: which crates depend on which, foreign libraries, licences.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process;

/// The groups of crates, which are the folders below `crates`. Each has the other groups that its crates may use. Within a
/// group cargo prevents circles.
const GROUPS: [(&str, &[&str]); 8] = [
    ("shared", &[]),
    ("platform", &["shared"]),
    ("core", &["shared", "platform"]),
    ("backends", &["shared", "platform", "core"]),
    ("repositories", &["shared", "platform", "core"]),
    ("front", &["shared", "platform", "core"]),
    ("perf", &["shared", "platform"]),
    ("program", &["shared", "platform", "core", "backends", "repositories", "front", "perf"]),
];
/// Crates that only the group `program` names. The first one is the prefix of every backend.
const NAMED_BY_PROGRAM: [&str; 3] = ["galatea-backend-", "galatea-http", "galatea-grpc"];
const PROGRAM: &str = "program";
/// Libraries for HTTP, and the crates that may use them.
const HTTP_LIBRARIES: [&str; 4] = ["hyper", "hyper-util", "tonic", "h2"];
const HTTP_USERS: [&str; 3] = ["galatea-client", "galatea-grpc", "galatea-web-client"];
/// The only crate of the server that opens sockets with tokio.
const SOCKETS: &str = "galatea-frontend";
const SOCKET_FEATURE: &str = "net";
/// A crate that only tests use.
const FOR_TESTS: &str = "galatea-test-support";
const FORBIDDEN: [&str; 3] = ["axum", "ort", "tch"];

/// Returns the manifests as cargo reads them; needs no network and no lock file.
pub fn metadata() -> Result<Value> {
    let args = ["metadata", "--offline", "--no-deps", "--format-version", "1"];
    let out = process::cargo().args(args).output().context("cannot start cargo metadata")?;
    if !out.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(serde_json::from_slice(&out.stdout)?)
}

/// The crates of the workspace by name, with their groups.
type Crates<'a> = HashMap<&'a str, Option<&'a str>>;

pub fn faults(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let crates = packages.iter().filter_map(|p| Some((p["name"].as_str()?, group(p)))).collect();
    packages.iter().flat_map(|package| package_faults(package, &crates)).collect()
}

/// Returns the folder below `crates` that holds the package.
fn group(package: &Value) -> Option<&str> {
    package["manifest_path"].as_str()?.rsplit_once("/crates/")?.1.split('/').next()
}

fn package_faults(package: &Value, crates: &Crates<'_>) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or("?");
    let group = group(package);
    let mut faults = Vec::new();
    if package["license"].as_str().is_none() {
        faults.push(format!("{name}: no licence in its manifest"));
    }
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let on = dependency["name"].as_str().unwrap_or("?");
        if FORBIDDEN.contains(&on) {
            faults.push(format!("{name}: {on} is not used in this project"));
        }
        if let (true, Some(group)) = (dependency["kind"].is_null(), group) {
            faults.extend(match crates.get(on) {
                Some(theirs) => crate_fault(name, group, on, *theirs),
                None => library_fault(name, group, on, &dependency["features"]),
            });
        }
    }
    faults
}

/// Finds the fault of a dependency on another crate of this workspace.
fn crate_fault(name: &str, group: &str, on: &str, theirs: Option<&str>) -> Option<String> {
    if on == FOR_TESTS {
        return Some(format!("{name} depends on {on}: name it under [dev-dependencies]"));
    }
    if group != PROGRAM && NAMED_BY_PROGRAM.iter().any(|kept| is_one_of(on, kept)) {
        return Some(format!("{name} depends on {on}: only the program does"));
    }
    let Some((_, allowed)) = GROUPS.iter().find(|(known, _)| *known == group) else {
        return Some(format!("{name}: xtask/src/tidy/manifests.rs knows no group {group}"));
    };
    let theirs = theirs.unwrap_or("none");
    (theirs != group && !allowed.contains(&theirs)).then(|| {
        format!("{name} (group {group}) depends on {on} (group {theirs}): the groups forbid it")
    })
}

fn is_one_of(name: &str, kept: &str) -> bool {
    name == kept || (kept.ends_with('-') && name.starts_with(kept))
}

/// Finds the fault of a dependency on a foreign library.
fn library_fault(name: &str, group: &str, on: &str, features: &Value) -> Option<String> {
    if HTTP_LIBRARIES.contains(&on) && !HTTP_USERS.contains(&name) {
        return Some(format!("{name} depends on {on}: only {} do", HTTP_USERS.join(", ")));
    }
    let opens_sockets = on == "tokio"
        && features.as_array().is_some_and(|features| features.iter().any(|f| f == SOCKET_FEATURE));
    (opens_sockets && group != "perf" && name != SOCKETS).then(|| {
        format!("{name}: sockets (tokio's feature {SOCKET_FEATURE}) are opened in {SOCKETS} only")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(group: &str, name: &str, on: &[&str]) -> Value {
        let dependencies: Vec<_> = on.iter().map(|d| json!({ "name": d, "kind": null })).collect();
        json!({
            "name": name, "license": "Apache-2.0", "dependencies": dependencies,
            "manifest_path": format!("/x/crates/{group}/{name}/Cargo.toml"),
        })
    }

    fn faults_of(packages: &[Value]) -> Vec<String> {
        faults(&json!({ "packages": packages }))
    }

    #[test]
    fn crate_groups_depend_only_on_lower_groups() {
        let types = || package("shared", "types", &["serde"]);
        let engine = || package("core", "engine", &["types"]);
        assert!(faults_of(&[types(), engine(), package("front", "http", &["engine"])]).is_empty());
        assert!(faults_of(&[engine(), package("core", "cache", &["engine"]), types()]).is_empty());
        let refused = [
            [package("shared", "types", &["engine"]), engine()],
            [package("platform", "gpu", &["engine"]), engine()],
            [package("perf", "load", &["engine"]), engine()],
            [package("front", "page", &["worker"]), package("backends", "worker", &[])],
            [package("repositories", "hub", &["worker"]), package("backends", "worker", &[])],
        ];
        for [user, used] in refused {
            assert_eq!(faults_of(&[user, used, types()]).len(), 1);
        }
        assert_eq!(
            faults_of(&[engine(), types(), package("perf", "load", &["engine"])]),
            ["load (group perf) depends on engine (group core): the groups forbid it"]
        );
    }

    #[test]
    fn every_crate_folder_is_a_known_group() {
        let stray = package("else", "stray", &["types"]);
        assert_eq!(
            faults_of(&[stray, package("shared", "types", &[])]),
            ["stray: xtask/src/tidy/manifests.rs knows no group else"]
        );
    }

    #[test]
    fn only_the_program_depends_on_backends_and_front_ends() {
        for (group, name) in [("backends", "galatea-backend-onnx"), ("front", "galatea-http")] {
            let named = || package(group, name, &[]);
            assert!(faults_of(&[named(), package(PROGRAM, "serve", &[name])]).is_empty());
            assert_eq!(
                faults_of(&[named(), package(group, "other", &[name])]),
                [format!("other depends on {name}: only the program does")]
            );
        }
        let http1 = package("front", "galatea-http1", &[]);
        assert!(faults_of(&[http1, package("front", "other", &["galatea-http1"])]).is_empty());
    }

    #[test]
    fn test_support_stays_out_of_the_product() {
        let support = || package("shared", FOR_TESTS, &[]);
        let mut http = package("front", "http", &[FOR_TESTS]);
        assert_eq!(
            faults_of(&[support(), http.clone()]),
            ["http depends on galatea-test-support: name it under [dev-dependencies]"]
        );
        http["dependencies"][0]["kind"] = json!("dev");
        assert!(faults_of(&[support(), http]).is_empty());
    }

    #[test]
    fn few_crates_speak_http() {
        assert_eq!(faults_of(&[package("core", "codec", &["hyper"])]).len(), 1);
        assert_eq!(faults_of(&[package("perf", "tool", &["h2"])]).len(), 1);
        assert!(faults_of(&[package("perf", "galatea-client", &["h2"])]).is_empty());
        assert_eq!(faults_of(&[package("shared", "galatea-proto", &["h2"])]).len(), 1);
        assert_eq!(faults_of(&[package("front", "http", &["axum"])]).len(), 1);
    }

    #[test]
    fn only_one_server_crate_opens_sockets() {
        let with_sockets = |group: &str, name: &str| {
            let mut package = package(group, name, &[]);
            package["dependencies"] =
                json!([{ "name": "tokio", "kind": null, "features": ["net", "rt"] }]);
            package
        };
        assert!(faults_of(&[with_sockets("front", SOCKETS)]).is_empty());
        assert!(faults_of(&[with_sockets("perf", "galatea-perf-load")]).is_empty());
        assert_eq!(
            faults_of(&[with_sockets("front", "galatea-http")]),
            ["galatea-http: sockets (tokio's feature net) are opened in galatea-frontend only"]
        );
    }

    #[test]
    fn manifests_name_a_licence() {
        let mut bare = package("core", "a", &[]);
        bare["license"] = Value::Null;
        assert_eq!(faults_of(&[bare]), ["a: no licence in its manifest"]);
    }
}
