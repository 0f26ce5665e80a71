//! The memory that requests take, from outside.

use std::{fs, net::TcpStream};

use galatea_test_support::eventually;

use crate::server::{IDENTITY, Repository, Server, body_of, infer_body, post, send, start};

/// A model that takes as long for a request as every test here, with any number of values.
fn slow() -> Repository {
    let config = IDENTITY.replace("dims: 4", "dims: -1");
    let delay = "parameters { key: \"execute_delay_ms\" value { string_value: \"60000\" } }\n";
    Repository::new().with("slow", &format!("{config}{delay}"))
}

/// A hundred kilobytes in the server's memory.
fn body() -> String {
    let values = vec!["1"; 25_000].join(",");
    format!(
        r#"{{"inputs":[{{"name":"INPUT0","shape":[25000],"datatype":"FP32","data":[{values}]}}]}}"#
    )
}

fn metric(server: &Server, name: &str) -> usize {
    let metrics = server.metrics();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {metrics}"))
}

#[test]
fn the_memory_budget_is_in_log_and_metrics() {
    let repository = Repository::new().with("identity", IDENTITY);
    let server = start(&repository, &["--memory-budget=300M"]);
    let line = "Memory budget of requests and responses: 300 MiB";
    assert!(server.output().contains(line), "{}", server.output());
    assert_eq!(metric(&server, "galatea_memory_budget_limit_bytes"), 300 << 20);
    assert_eq!(metric(&server, "galatea_memory_budget_refused_total"), 0);
}

/// As the system counts it, in KiB: what the process has, and the most that it ever had.
fn resident(server: &Server) -> [usize; 2] {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id()));
    let status = status.expect("status");
    ["VmRSS:", "VmHWM:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        let kib = line.trim().strip_suffix(" kB").expect("kilobytes");
        kib.parse().expect("a number")
    })
}

#[test]
fn code_needed_only_at_the_start_leaves_memory() {
    let repository = Repository::new().with("identity", IDENTITY);
    let server = start(&repository, &["--log-verbose=1"]);
    let line = "freed code that is no longer used";
    if !server.output().contains(line) {
        server.wait_for(line);
    }
    let [now, most] = resident(&server);
    assert!(now + (4 << 10) < most, "{now} KiB after {most} KiB");
    let answer = post(server.http, "/v2/models/identity/infer", infer_body());
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

/// Requests wait for a slow model until the budget is used up; when their clients go, it is free again.
#[test]
fn waiting_requests_are_bounded_by_the_memory_budget() {
    let repository = slow();
    let server = start(&repository, &["--memory-budget=8M"]);
    let body = body();
    let used = || metric(&server, "galatea_memory_budget_used_bytes");
    let refused = || metric(&server, "galatea_memory_budget_refused_total");
    let mut waiting: Vec<TcpStream> = Vec::new();
    while refused() == 0 {
        assert!(waiting.len() < 100, "100 requests of 100 KB wait within 8 MiB");
        let before = used();
        waiting.push(send(server.http, "/v2/models/slow/infer", &body));
        eventually("the request is counted or refused", || {
            used() >= before + 100_000 || refused() > 0
        });
    }
    assert!(waiting.len() > 8, "{} fill 8 MiB", waiting.len());
    let answer = post(server.http, "/v2/models/slow/infer", &body);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(body_of(&answer).contains("--memory-budget"), "{answer}");
    assert!(server.get("/v2/health/ready").starts_with("HTTP/1.1 200"));

    drop(waiting);
    // One of them is being executed.
    eventually("the memory is given back", || used() < 1 << 20);
}
