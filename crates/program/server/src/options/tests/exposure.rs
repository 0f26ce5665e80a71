//! Command lines of servers that are open to strangers, and the warning about them.

use galatea_serve::exposure::warning;

use super::*;

fn warned(words: &[&str]) -> Option<String> {
    let words = ["--model-repository=/m"].iter().chain(words).map(|&word| word.to_owned());
    let flags = parse(words, Words::Refused).expect("good flags").expect("no help");
    warning(&from_flags(flags, &Environment::default()).expect("good options"))
}

#[test]
fn a_server_for_everybody_names_what_is_open() {
    let text = warned(&["--model-control-mode=explicit"]).expect("a warning");
    for part in [
        "0.0.0.0:8000 (HTTP), 0.0.0.0:8001 (GRPC), 0.0.0.0:8002 (metrics)",
        "inference",
        "model control",
        "settings of the log",
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
fn one_for_this_machine_has_nothing_to_say() {
    let here = ["--http-address=127.0.0.1", "--grpc-address=[::1]", "--metrics-address=localhost"];
    assert_eq!(warned(&here), None);
    assert_eq!(warned(&["--hardened"]), None);
    assert!(warned(&here[..1]).expect("gRPC").contains("0.0.0.0:8001 (GRPC)"));
}

#[test]
fn who_must_prove_who_it_is_finds_nothing_open() {
    assert_eq!(warned(&["--auth-policy=p.toml"]), None);
    let tls = ["--https-cert=c", "--https-key=k", "--https-root-cert=r", "--metrics-https=true"];
    let text = warned(&tls).expect("gRPC is open");
    assert!(text.contains("reaches 0.0.0.0:8001 (GRPC) may"), "{text}");
}

#[test]
fn of_a_hardened_server_nothing_can_be_changed() {
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
fn what_needs_a_header_is_not_open() {
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
