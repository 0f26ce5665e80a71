//! The lines of requests, also of those that try to write lines of their own.

use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;

const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn record<'a>() -> AccessRecord<'a> {
    AccessRecord {
        time: UNIX_EPOCH + Duration::new(1_795_261_534, 163_989_123),
        id: "7",
        peer: &"127.0.0.1:40312",
        protocol: "http",
        method: "POST",
        path: "/v2/models/simple/infer",
        model: "simple",
        version: Some(1),
        status: 200,
        bytes_in: 300,
        bytes_out: 1 << 40,
        queue: Some(Duration::from_micros(12)),
        compute: Some(Duration::from_nanos(80_999)),
        total: Duration::from_millis(1),
        identity: "",
        trace: None,
    }
}

fn line(record: &AccessRecord<'_>, format: AccessFormat) -> String {
    let mut out = String::new();
    record.write(format, &mut out);
    out
}

#[test]
fn text_has_every_field_in_order() {
    assert_eq!(
        line(&record(), AccessFormat::Text),
        "2026-11-21T11:45:34.163989Z id=7 peer=127.0.0.1:40312 protocol=http method=POST \
         path=/v2/models/simple/infer model=simple version=1 status=200 bytes_in=300 bytes_out=1099511627776 \
         queue_us=12 compute_us=80 total_us=1000 trace_id=- span_id=- parent_id=- identity=-\n"
    );
}

#[test]
fn json_has_every_field_in_order() {
    let client = TraceContext::parse(HEADER.as_bytes()).expect("good");
    let trace = Some((&client, &client));
    let record = AccessRecord { id: "", version: None, queue: None, trace, ..record() };
    assert_eq!(
        line(&record, AccessFormat::Json),
        "{\"type\":\"access\",\"time\":\"2026-11-21T11:45:34.163989Z\",\"id\":null,\"peer\":\"127.0.0.1:40312\",\
         \"protocol\":\"http\",\"method\":\"POST\",\"path\":\"/v2/models/simple/infer\",\"model\":\"simple\",\
         \"version\":null,\"status\":200,\"bytes_in\":300,\"bytes_out\":1099511627776,\"queue_us\":null,\
         \"compute_us\":80,\"total_us\":1000,\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\",\
         \"span_id\":\"b7ad6b7169203331\",\"parent_id\":\"b7ad6b7169203331\",\"identity\":null}\n"
    );
}

#[test]
fn values_cannot_forge_a_line_or_a_field() {
    for (id, expected) in [
        ("a b", "id=\"a b\" "),
        ("x\nforged", "id=\"x\\nforged\" "),
        ("x status=200", "id=\"x status=200\" "),
        ("\"\\\r\t\u{1b}[2J\u{7f}", "id=\"\\\"\\\\\\r\\t\\u001B[2J\u{7f}\" "),
        ("\u{9b}2J°\u{80}", "id=\"\\u009B2J°\\u0080\" "),
        ("-", "id=\"-\" "),
        ("é", "id=\"é\" "),
        ("a=b", "id=a=b "),
    ] {
        let line = line(&AccessRecord { id, ..record() }, AccessFormat::Text);
        assert!(line.contains(expected) && line.matches('\n').count() == 1, "{line}");
    }
}

#[test]
fn a_line_is_bounded_for_any_client_data() {
    let long = "é\n".repeat(1 << 20);
    for format in [AccessFormat::Text, AccessFormat::Json] {
        let record = AccessRecord { id: &long, path: &long, model: &long, ..record() };
        let line = line(&record, format);
        assert!(line.len() < 3 * 6 * MAX_TEXT + 500, "{} bytes", line.len());
        assert!(line.contains("...\""), "{line}");
    }
}

proptest! {
    #[test]
    fn every_json_line_parses_and_contains_the_given_values(id: String, path: String, model: String) {
        let texts = [("id", &id), ("path", &path), ("model", &model)];
        prop_assume!(texts.iter().all(|(_, text)| text.len() <= MAX_TEXT));
        let record = AccessRecord { id: &id, path: &path, model: &model, ..record() };
        let line = line(&record, AccessFormat::Json);
        prop_assert_eq!(line.matches('\n').count(), 1);
        let read: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        for (name, text) in texts {
            prop_assert_eq!(read[name].as_str().unwrap_or_default(), text);
        }
        prop_assert_eq!(read.as_object().expect("an object").len(), 19);
    }
}
