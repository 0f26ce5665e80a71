//! The reason why the windows of a point are unstable, in words for the report, the summary and the page.

use galatea_perf_types::status::Instability;

use crate::number::general;

/// Returns one sentence without a full stop: each difference, and the allowed one.
pub fn reason(why: &Instability) -> String {
    if let Some(limit) = why.limit_ms {
        return format!(
            "the latency was over the limit of {limit} msec (--latency-threshold) before {} windows agreed",
            why.needed
        );
    }
    let count = why.trials.len();
    if count < why.needed {
        let windows = if count == 1 { "window was" } else { "windows were" };
        return format!(
            "{} windows must agree, and {count} {windows} measured (--max-trials)",
            why.needed
        );
    }
    match (why.throughput, why.latency) {
        (Some(throughput), Some(latency)) => differences(why, throughput, latency),
        _ => format!("one of the last {} windows measured nothing", why.needed),
    }
}

/// Names the differences above the bound first, then the others.
fn differences(why: &Instability, throughput: f64, latency: f64) -> String {
    let percent = |ratio: f64| format!("{}%", general((ratio * 1e5).round() / 1e3));
    let allowed = format!("{}% (--stability-percentage)", general(why.allowed * 100.0));
    let [throughput_text, latency_text] = [throughput, latency].map(percent);
    let last = format!("the last {} windows differ by", why.needed);
    match (throughput > why.allowed, latency > why.allowed) {
        (true, false) => format!(
            "{last} {throughput_text} in throughput, allowed are {allowed}; in latency by {latency_text}"
        ),
        (false, true) => format!(
            "{last} {latency_text} in latency, allowed are {allowed}; in throughput by {throughput_text}"
        ),
        _ => format!(
            "{last} {throughput_text} in throughput and {latency_text} in latency, allowed are {allowed}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use galatea_perf_types::status::Trial;

    use super::*;

    fn why(throughput: f64, latency: f64, trials: usize) -> Instability {
        let trial = Trial { infer_per_sec: 1.0, latency_ns: Some(1) };
        Instability {
            allowed: 0.1,
            needed: 3,
            throughput: Some(throughput),
            latency: Some(latency),
            limit_ms: None,
            trials: vec![trial; trials],
        }
    }

    #[test]
    fn the_failed_criterion_and_its_excess_are_named() {
        let allowed = "allowed are 10% (--stability-percentage)";
        for (why, expected) in [
            (
                why(1.2, 1.058_17, 5),
                format!("the last 3 windows differ by 120% in throughput and 105.817% in latency, {allowed}"),
            ),
            (
                why(0.15, 0.02, 5),
                format!("the last 3 windows differ by 15% in throughput, {allowed}; in latency by 2%"),
            ),
            (
                why(0.03, 0.25, 5),
                format!("the last 3 windows differ by 25% in latency, {allowed}; in throughput by 3%"),
            ),
            (
                why(0.03, 0.25, 2),
                "3 windows must agree, and 2 windows were measured (--max-trials)".into(),
            ),
            (
                why(0.0, 0.0, 1),
                "3 windows must agree, and 1 window was measured (--max-trials)".into(),
            ),
            (
                Instability { limit_ms: Some(5), ..why(0.0, 0.3, 4) },
                "the latency was over the limit of 5 msec (--latency-threshold) before 3 windows agreed".into(),
            ),
            (
                Instability { throughput: None, ..why(0.0, 0.0, 4) },
                "one of the last 3 windows measured nothing".into(),
            ),
        ] {
            assert_eq!(reason(&why), expected);
        }
    }
}
