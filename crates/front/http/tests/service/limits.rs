//! What clients may take: memory, time, threads.

use std::{
    io::Write,
    sync::{Arc, mpsc},
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use galatea_engine::ControlMode;
use galatea_frontend::{
    ClientLimitSettings, ClientLimits, ConnectionLimits, ConnectionSettings, HeavyWork,
};
use galatea_http::HttpOptions;
use galatea_test_support::eventually;
use galatea_types::{MemoryBudget, ShareLimits};

use crate::{
    Fixture,
    client::{Client, HEADER_LENGTH, fp32, head},
};

const INFER: &str = "/v2/models/identity_fp32/infer";

fn with(options: HttpOptions) -> Fixture {
    Fixture::with(ControlMode::None, options)
}

/// Decodes to as many zeros, in two bytes of text each.
fn zeros(count: usize) -> String {
    fp32(&format!("[0{}]", ",0".repeat(count - 1)), count)
}

#[test]
fn a_request_over_the_memory_budget_is_refused_and_releases_its_memory() {
    let memory = MemoryBudget::new(1 << 20);
    let fixture = with(HttpOptions { memory: memory.clone(), ..Default::default() });
    // The first is too long as a body, the second as what it decodes to.
    for count in [1 << 20, 300_000] {
        let mut client = Client::connect(fixture.address);
        let reply = client.post(INFER, zeros(count));
        assert_eq!(reply.status, 503, "{}", reply.text());
        assert!(reply.text().contains("--memory-budget"), "{}", reply.text());
        assert!(client.is_closed(), "what the connection keeps is wanted back");
    }
    let mut client = Client::connect(fixture.address);
    assert_eq!(client.post(INFER, zeros(10_000)).status, 200);
    assert_eq!(client.post(INFER, fp32("[1]", 1)).status, 200);
    drop(client);
    eventually("the memory is given back", || memory.used() == 0);
    assert!(memory.refused() >= 2);
}

#[test]
fn an_announced_length_reserves_no_memory() {
    let memory = MemoryBudget::new(1 << 20);
    let fixture = with(HttpOptions { memory: memory.clone(), ..Default::default() });
    let mut waiting: Vec<Client> = (0..20).map(|_| Client::connect(fixture.address)).collect();
    for client in &mut waiting {
        client.send(head("POST", INFER, &[], 60 << 20));
        client.send(" ");
    }
    let mut other = Client::connect(fixture.address);
    assert_eq!(other.post(INFER, fp32("[1]", 1)).status, 200);
    assert_eq!((memory.used(), memory.refused()), (0, 0));
}

/// The header of a request for as many bytes as are sent behind it, and their number.
fn binary_request(size: usize) -> (String, usize) {
    let json = format!(
        r#"{{"inputs":[{{"name":"INPUT0","shape":[{}],"datatype":"FP32","parameters":{{"binary_data_size":{size}}}}}],"parameters":{{"binary_data_output":true}}}}"#,
        size / 4
    );
    (json, size)
}

#[test]
fn unread_responses_are_counted_until_the_client_disconnects() {
    let memory = MemoryBudget::new(1 << 30);
    let fixture = with(HttpOptions { memory: memory.clone(), ..Default::default() });
    let (json, size) = binary_request(16 << 20);
    let mut deaf = Client::connect(fixture.address);
    let length = json.len().to_string();
    deaf.send(head("POST", INFER, &[(HEADER_LENGTH, &length)], json.len() + size));
    deaf.send(json);
    deaf.send(vec![0; size]);
    // The body itself has gone once the model has answered, and the answer shares its memory.
    eventually("the answer alone is counted", || {
        (size..size + 100).contains(&memory.used()) && fixture.server().requests_in_flight() == 0
    });
    drop(deaf);
    eventually("the memory is given back", || memory.used() == 0);
}

#[test]
fn an_unread_response_is_cut_off_and_releases_its_memory() {
    let settings = ConnectionSettings {
        progress_timeout: Duration::from_millis(200),
        ..ConnectionSettings::default()
    };
    let memory = MemoryBudget::new(1 << 30);
    let connections = ConnectionLimits::new(settings, memory.clone());
    let options =
        HttpOptions { memory: memory.clone(), limits: connections.clone(), ..Default::default() };
    let fixture = with(options);
    let mut deaf = Client::connect(fixture.address);
    let (json, size) = binary_request(32 << 20);
    let length = json.len().to_string();
    deaf.send(head("POST", INFER, &[(HEADER_LENGTH, &length)], json.len() + size));
    deaf.send(json);
    deaf.send(vec![0; size]);
    eventually("the connection is cut off", || {
        connections.counts().closed.contains(&("slow_response", 1)) && memory.used() == 0
    });
}

#[test]
fn chunks_count_against_the_clients_limit_as_they_arrive() {
    let client = ShareLimits { bytes: 1 << 20, ..ShareLimits::NONE };
    let settings = ClientLimitSettings { client, ..Default::default() };
    let client_limits = ClientLimits::new(settings);
    let fixture = with(HttpOptions { client_limits, ..Default::default() });
    let mut endless = Client::connect(fixture.address);
    endless.send(format!(
        "POST {INFER} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\n"
    ));
    // More than the limit, and less than the chunk: its end never comes.
    endless.send(vec![b' '; (1 << 20) + 1]);
    let reply = endless.receive(false);
    assert_eq!(reply.status, 429, "{}", reply.text());
    assert!(reply.text().contains("--client-max-request-bytes"), "{}", reply.text());
    let mut other = Client::connect(fixture.address);
    assert_eq!(other.post(INFER, fp32("[1]", 1)).status, 200, "what it took is given back");
}

/// A pool whose one thread is busy until the sender is dropped, before which one piece of work may wait.
fn busy_pool() -> (Arc<HeavyWork>, mpsc::Sender<()>) {
    let pool = HeavyWork::new(1, 1);
    let (release, released) = mpsc::channel();
    let (begin, begun) = mpsc::channel();
    let work = pool.run(move || {
        begin.send(()).expect("somebody waits");
        released.recv()
    });
    begun.recv().expect("begins");
    // Its result is not waited for.
    std::mem::forget(work);
    (pool, release)
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).expect("in memory");
    encoder.finish().expect("in memory")
}

#[test]
fn long_requests_do_not_block_other_clients_and_their_number_is_limited() {
    let (heavy_work, release) = busy_pool();
    let fixture = with(HttpOptions { thread_count: 1, heavy_work, ..Default::default() });
    let long = zeros(1 << 20);
    let bomb = gzip(long.as_bytes());
    assert!(bomb.len() < 16 << 10, "short before it is inflated");
    let gzipped = [("Content-Encoding", "gzip")];
    let mut waiting = Client::connect(fixture.address);
    waiting.send(head("POST", INFER, &gzipped, bomb.len()));
    waiting.send(&bomb);
    let mut other = Client::connect(fixture.address);
    eventually("the long request is in flight", || fixture.server().requests_in_flight() > 0);
    assert_eq!(other.get("/v2/health/live").status, 200);
    assert_eq!(other.post(INFER, fp32("[1]", 1)).status, 200);
    let generate = "/v2/models/identity_fp32/generate";
    for path in [INFER, generate] {
        let reply = Client::connect(fixture.address).post(path, &long);
        assert_eq!(reply.status, 503, "{path}: {}", reply.text());
        assert!(reply.text().contains("busy with 1 other long requests"), "{}", reply.text());
    }
    let reply = Client::connect(fixture.address).request("POST", INFER, &gzipped, &bomb);
    assert_eq!(reply.status, 503, "{}", reply.text());
    drop(release);
    assert_eq!(waiting.receive(false).status, 200);
}

#[test]
fn a_compressed_body_may_expand_a_hundredfold_or_to_16_mib() {
    let fixture = with(HttpOptions::default());
    let gzipped = [("Content-Encoding", "gzip")];
    let grown = |size: usize| {
        let body = gzip(&vec![b' '; size]);
        Client::connect(fixture.address).request("POST", INFER, &gzipped, &body)
    };
    let reply = grown((16 << 20) + 1);
    assert_eq!(reply.status, 400, "{}", reply.text());
    assert!(reply.text().contains("16777216 bytes, 100 times its size"), "{}", reply.text());
    assert!(!grown(16 << 20).text().contains("times its size"), "it is read as JSON");
}

#[test]
fn the_head_is_limited_in_length_and_number_of_headers() {
    let fixture = with(HttpOptions::default());
    let long = "a".repeat(40 << 10);
    let many: Vec<String> = (0..101).map(|n| format!("h{n}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (&name[..], "")).collect();
    for headers in [&[("long", &long[..])][..], &many] {
        let mut client = Client::connect(fixture.address);
        client.send(head("GET", "/v2/health/live", headers, 0));
        assert_eq!(client.receive(false).status, 431);
        assert!(client.is_closed());
    }
}

#[test]
fn a_stalled_body_times_out_while_others_are_served() {
    let settings = ConnectionSettings {
        head_timeout: Duration::MAX,
        progress_timeout: Duration::from_millis(200),
        idle_timeout: Duration::MAX,
        ..Default::default()
    };
    let limits = ConnectionLimits::new(settings, MemoryBudget::unlimited());
    let fixture = with(HttpOptions { limits, ..Default::default() });
    let mut other = Client::connect(fixture.address);
    assert_eq!(other.get("/v2/health/live").status, 200);
    for path in [INFER, "/v2/models/identity_fp32/generate", "/v2/repository/index"] {
        let mut slow = Client::connect(fixture.address);
        slow.send(head("POST", path, &[], 100));
        slow.send("{");
        assert!(slow.is_closed(), "{path}");
    }
    // Answered at once, since nobody wants the body.
    let mut slow = Client::connect(fixture.address);
    slow.send(head("POST", "/nowhere", &[], 100));
    assert_eq!(slow.receive(false).status, 404);
    assert!(slow.is_closed());
    // Its model takes longer, which is not the client's fault.
    assert_eq!(other.post("/v2/models/slow/infer", fp32("[1]", 1)).status, 200);
}
