//! The span of a distributed trace that a request belongs to, in the terms of W3C Trace Context.

use std::fmt;

/// Length of a `traceparent` of the version that this code writes.
const LENGTH: usize = 55;

/// The flags that this version of the standard knows: sampled, and a random trace id.
const KNOWN_FLAGS: u8 = 0b11;

/// A span of a trace, as the header `traceparent` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    flags: u8,
}

impl TraceContext {
    /// The name of the header and the metadata with the trace context.
    pub const HEADER: &'static str = "traceparent";

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
        is_valid.then_some(Self { trace_id, span_id, flags })
    }

    /// Makes a new span of the same trace, below this one.
    pub fn child(&self) -> Self {
        Self { span_id: fastrand::u64(1..), ..*self }
    }

    /// Returns the id of the trace.
    pub fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// Returns the id of the span within its trace.
    pub fn span_id(&self) -> u64 {
        self.span_id
    }
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

    #[test]
    fn a_child_has_its_own_span_in_the_same_trace() {
        let parent = parse(HEADER).expect("good");
        let (one, two) = (parent.child(), parent.child());
        assert_eq!(one.trace_id(), parent.trace_id());
        assert!(one.span_id() != parent.span_id() && one.span_id() != two.span_id());
        assert_eq!(parse(&one.to_string()), Some(one));
    }
}
