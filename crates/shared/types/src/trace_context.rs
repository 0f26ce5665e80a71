//! The span of a distributed trace that a request belongs to, in the terms of W3C Trace Context.

use std::{fmt, sync::Arc};

/// Length of a `traceparent` of the version that this code writes.
const LENGTH: usize = 55;

/// The flags that this version of the standard knows: sampled, and a random trace id.
const KNOWN_FLAGS: u8 = 0b11;

/// The flag of a trace that is recorded.
const SAMPLED: u8 = 0b01;

/// Most bytes of a `tracestate`. A longer one is dropped, which the standard allows.
const MAX_STATE: usize = 512;

/// Most entries of a `tracestate`.
const MAX_STATE_ENTRIES: usize = 32;

/// A span of a trace, as the headers `traceparent` and `tracestate` name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    flags: u8,
    /// Entries of tracing systems, which belong to the whole trace.
    state: Option<Arc<str>>,
}

impl TraceContext {
    /// The name of the header and the metadata with the trace context.
    pub const HEADER: &'static str = "traceparent";
    /// The name of the header and the metadata with the entries of tracing systems.
    pub const STATE_HEADER: &'static str = "tracestate";

    /// Reads the headers of a request. Several of `traceparent` count as none; several of `tracestate` are one list.
    pub fn from_headers<'a>(
        mut parents: impl Iterator<Item = &'a [u8]>,
        states: impl Iterator<Item = &'a [u8]>,
    ) -> Option<Self> {
        let parent = parents.next()?;
        let context = Self::parse(parent).filter(|_| parents.next().is_none())?;
        Some(Self { state: state(states), ..context })
    }

    /// Reads a header. `None` when it is malformed; the standard treats it as not sent.
    ///
    /// From a later version of the standard it reads the parts that this version knows.
    pub fn parse(header: &[u8]) -> Option<Self> {
        let (known, rest) = header.split_at_checked(LENGTH)?;
        let version = number(known.get(..2)?)?;
        let is_whole = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with(b"-"),
        };
        let has_dashes = [2, 35, 52].iter().all(|&at| known.get(at) == Some(&b'-'));
        let trace_id = number(known.get(3..35)?)?;
        let span_id = u64::try_from(number(known.get(36..52)?)?).ok()?;
        let flags = u8::try_from(number(known.get(53..)?)?).ok()? & KNOWN_FLAGS;
        let is_valid = is_whole && has_dashes && trace_id != 0 && span_id != 0;
        is_valid.then_some(Self { trace_id, span_id, flags, state: None })
    }

    /// Begins a trace that is recorded.
    pub fn begin() -> Self {
        let (trace_id, span_id) = (fastrand::u128(1..), fastrand::u64(1..));
        Self { trace_id, span_id, flags: SAMPLED, state: None }
    }

    /// Makes a new span of the same trace, below this one.
    pub fn child(&self) -> Self {
        self.sibling(fastrand::u64(1..))
    }

    /// Returns the span with this id of the same trace.
    #[must_use]
    pub fn sibling(&self, span_id: u64) -> Self {
        Self { span_id, ..self.clone() }
    }

    /// Returns the same span, of a trace that is recorded.
    #[must_use]
    pub fn sampled(self) -> Self {
        Self { flags: self.flags | SAMPLED, ..self }
    }

    /// Returns the same span, with the entries of tracing systems in this header.
    #[must_use]
    pub fn with_state(self, header: &[u8]) -> Self {
        Self { state: state([header].into_iter()), ..self }
    }

    /// Returns the id of the trace.
    pub fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// Returns the id of the span within its trace.
    pub fn span_id(&self) -> u64 {
        self.span_id
    }

    /// Returns the entries of tracing systems, as the header `tracestate` has them.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

/// Joins the lists of entries. `None` when there are none, or they are malformed or too long.
fn state<'a>(headers: impl Iterator<Item = &'a [u8]>) -> Option<Arc<str>> {
    let (mut joined, mut count) = (String::new(), 0);
    for header in headers {
        let text = std::str::from_utf8(header).ok()?;
        let is_printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        if text.len() > MAX_STATE || !is_printable {
            return None;
        }
        for entry in text.split(',').map(|entry| entry.trim_matches([' ', '\t'])) {
            if entry.is_empty() {
                continue;
            }
            entry.split_once('=').filter(|(key, value)| ![*key, *value].contains(&""))?;
            count += 1;
            if !joined.is_empty() {
                joined.push(',');
            }
            joined.push_str(entry);
        }
    }
    let fits = joined.len() <= MAX_STATE && count <= MAX_STATE_ENTRIES && !joined.contains('\t');
    (fits && count > 0).then(|| joined.into())
}

/// Formats it as the header.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

/// Reads hexadecimal digits, small letters only.
fn number(digits: &[u8]) -> Option<u128> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    digits.iter().try_fold(0, |number: u128, &byte| Some(number << 4 | u128::from(digit(byte)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn parse(text: &str) -> Option<TraceContext> {
        TraceContext::parse(text.as_bytes())
    }

    #[test]
    fn a_header_round_trips() {
        let context = parse(HEADER).expect("good");
        assert_eq!(context.trace_id(), 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(context.span_id(), 0xb7ad_6b71_6920_3331);
        assert_eq!(context.to_string(), HEADER);
    }

    #[test]
    fn later_versions_are_read_as_far_as_known() {
        for text in [HEADER.replacen("00", "cc", 1), HEADER.replacen("00", "01", 1) + "-what-comes"]
        {
            assert_eq!(parse(&text), parse(HEADER), "{text}");
        }
        assert_eq!(parse(&HEADER.replace("-01", "-fd")), parse(HEADER));
    }

    #[test]
    fn malformed_headers_count_as_absent() {
        let zero_trace = HEADER.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32));
        let zero_span = HEADER.replace("b7ad6b7169203331", &"0".repeat(16));
        for text in [
            "",
            "00",
            &zero_trace,
            &zero_span,
            &HEADER.to_uppercase(),
            &HEADER.replacen("00", "ff", 1),
            &(HEADER.to_owned() + "-more"),
            &(HEADER.replacen("00", "01", 1) + "x"),
            &HEADER.replace("-01", "-0x"),
            &HEADER.replace("-01", "_01"),
            &HEADER.replacen('-', "_", 1),
            &HEADER[..54],
            &format!(" {HEADER}"),
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    fn with_states(states: &[&str]) -> Option<String> {
        let states = states.iter().map(|state| state.as_bytes());
        let context = TraceContext::from_headers([HEADER.as_bytes()].into_iter(), states);
        context.expect("good").state().map(str::to_owned)
    }

    #[test]
    fn entries_of_tracing_systems_are_kept_in_order() {
        assert_eq!(with_states(&["a=1"]).as_deref(), Some("a=1"));
        assert_eq!(
            with_states(&["a=1 , b@c=x=y,,", "\td=\"e\""]).as_deref(),
            Some("a=1,b@c=x=y,d=\"e\"")
        );
        let context = parse(HEADER).expect("good").with_state(b"a=1");
        assert_eq!(
            (context.child().state(), context.sibling(7).state()),
            (Some("a=1"), Some("a=1"))
        );
    }

    #[test]
    fn malformed_entries_are_dropped_and_the_span_stays() {
        let (long, many) = (format!("a={}", "b".repeat(MAX_STATE)), "a=1,".repeat(33));
        for states in [
            &[][..],
            &[""],
            &[", ,"],
            &["a"],
            &["a=1", "=b"],
            &["a=é"],
            &["a=1\n"],
            &["a=b\tc"],
            &[&long],
            &[&many],
        ] {
            assert_eq!(with_states(states), None, "{states:?}");
        }
        assert!(with_states(&[&long[..MAX_STATE]]).is_some());
    }

    #[test]
    fn several_spans_count_as_none() {
        let one = HEADER.as_bytes();
        let read = |parents: &[&'static [u8]]| {
            TraceContext::from_headers(parents.iter().copied(), std::iter::empty())
        };
        assert_eq!(read(&[one]), parse(HEADER));
        assert_eq!((read(&[one, one]), read(&[])), (None, None));
    }

    #[test]
    fn a_recorded_trace_is_handed_on_as_such() {
        let quiet = parse(&HEADER.replace("-01", "-00")).expect("good");
        assert_eq!(quiet.sampled().to_string(), HEADER);
        let (one, two) = (TraceContext::begin(), TraceContext::begin());
        assert_ne!(one.trace_id(), two.trace_id());
        assert_eq!(parse(&one.to_string()), Some(one));
    }

    #[test]
    fn a_child_has_its_own_span_in_the_same_trace() {
        let parent = parse(HEADER).expect("good");
        let (one, two) = (parent.child(), parent.child());
        assert_eq!(one.trace_id(), parent.trace_id());
        assert!(one.span_id() != parent.span_id() && one.span_id() != two.span_id());
        assert_eq!(parse(&one.to_string()), Some(one));
    }
}
