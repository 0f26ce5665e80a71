//! The headers `traceparent` and `tracestate`.

use galatea_types::TraceContext;

/// The first line is `traceparent`, each other one `tracestate`. What is read is written so that it is read again.
pub fn run(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let parent = lines.next().unwrap_or_default();
    let Some(context) = TraceContext::from_headers([parent].into_iter(), lines) else { return };
    assert!(context.trace_id() != 0 && context.span_id() != 0);
    let written = TraceContext::parse(context.to_string().as_bytes()).expect("well-formed");
    assert_eq!(written.clone().with_state(context.state().unwrap_or_default().as_bytes()), context);
    let state = context.state().unwrap_or_default();
    assert!(state.len() <= 512 && state.bytes().all(|byte| matches!(byte, b' '..=b'~')));
}
