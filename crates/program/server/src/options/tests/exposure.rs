//! Command lines of servers that are open to strangers, and the warning about them.

use galatea_serve::exposure::warning;

use super::*;

fn warned(words: &[&str]) -> Option<String> {
    let words = ["--model-repository=/m"].iter().chain(words).map(|&word| word.to_owned());
    let flags = parse(words, Words::Refused).expect("good flags").expect("no help");
    warning(&from_flags(flags, &Environment::default()).expect("good options"))
}

#[test]
fn a_public_server_lists_its_open_services() {
    let text = warned(&["--model-control-mode=explicit"]).expect("a warning");
    for part in [
        "0.0.0.0:8000 (HTTP), 0.0.0.0:8001 (GRPC), 0.0.0.0:8002 (metrics)",
        "inference",
        "model control",
        "settings of the log",
        "settings of traces",
        "console",
        "--hardened",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = warned(&["--allow-client-shm=true"]).expect("a warning");
    assert!(text.contains("shared memory"), "{text}");
    let text = warned(&["--console=false", "--allow-metrics=false"]).expect("a warning");
    for part in ["model control", "console", "metrics", "shared memory"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_local_server_gives_no_exposure_warning() {
    let here = ["--http-address=127.0.0.1", "--grpc-address=[::1]", "--metrics-address=localhost"];
    assert_eq!(warned(&here), None);
    assert_eq!(warned(&["--hardened"]), None);
    assert_eq!(warned(&["--http-address=unix:h", "--grpc-address=unix:g"]), None);
    assert!(warned(&here[..1]).expect("gRPC").contains("0.0.0.0:8001 (GRPC)"));
}

#[test]
fn with_authentication_no_service_is_open() {
    assert_eq!(warned(&["--auth-policy=p.toml"]), None);
    let tls = ["--https-cert=c", "--https-key=k", "--https-root-cert=r", "--metrics-https=true"];
    let text = warned(&tls).expect("gRPC is open");
    assert!(text.contains("can reach 0.0.0.0:8001 (GRPC) may"), "{text}");
}

#[test]
fn the_warning_of_a_hardened_server_omits_changes() {
    let words = [
        "--hardened",
        "--http-address=0.0.0.0",
        "--model-control-mode=explicit",
        "--allow-client-shm=true",
    ];
    let text = warned(&words).expect("inference is open");
    for part in ["model control", "settings of the log", "shared memory"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

#[test]
fn services_restricted_by_a_header_are_not_open() {
    let all = "health,metadata,inference,shared-memory,model-config,model-repository,statistics,trace,logging";
    let (http, grpc) = (
        format!("--http-restricted-api={all}:k=v"),
        format!("--grpc-restricted-protocol={all}:k=v"),
    );
    let words = [&*http, &grpc, "--console=false", "--allow-metrics=false"];
    assert_eq!(warned(&words), None);
    let text = warned(&words[1..]).expect("HTTP is open");
    assert!(text.contains("inference"), "{text}");
}
