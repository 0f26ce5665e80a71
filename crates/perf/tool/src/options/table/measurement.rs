//! Options for the load and its measurement.

use galatea_command_line::{Kind, set};
use galatea_perf_types::settings::{Distribution, Search};

use super::{
    super::{
        range,
        reading::{at_least, choice, existing_file, failed, number},
    },
    row::{Row, switch, value},
};

pub const ROWS: &[Row] = &[
    switch(
        "async",
        "Keep requests in flight without a thread for each. By default calls block, except for sequence \
         models.",
        |given, v| v.put(&mut given.settings.calls.asynchronous),
    )
    .short('a'),
    switch("sync", "Blocking calls for sequence models, too.", |given, v| v.put(&mut given.settings.calls.forced_sync)),
    value(
        "concurrency-range",
        "start[:end[:step]]",
        "How many requests are in flight at any time: from start to end (included) in steps, one \
         measurement each. An end of 0 goes on until the latency threshold. Default 1:1:1, one request.",
        set!(|given, text| given.concurrency = Some(range::concurrency(text)?)),
    ),
    value(
        "request-rate-range",
        "start[:end[:step]]",
        "Send on a schedule of so many requests per second, whatever the server does. Fractions are \
         allowed; otherwise as --concurrency-range.",
        set!(|given, text| given.rate = Some(range::rate(text)?)),
    ),
    value(
        "request-distribution",
        "constant|poisson",
        "Pauses of the request rate: all the same, or spread like those of independent users. Default \
         constant.",
        |given, text| {
            let choices =
                [("constant", Distribution::Constant), ("poisson", Distribution::Poisson)];
            given.distribution =
                choice(text, &choices, "Choices are 'poisson' or 'constant'.")?;
            Ok(())
        },
    ),
    value(
        "request-intervals",
        "file",
        "Send with the pauses of a file, one a line in microseconds, over and over.",
        set!(|given, text| given.intervals_file =
                Some(existing_file(text, "The value must be a valid file path")?)),
    ),
    value(
        "periodic-concurrency-range",
        "start:end[:step]",
        "Begin with start requests and add step more each time the last ones have had \
         --request-period responses, up to end in all. Needs --streaming and --profile-export-file.",
        set!(|given, text| given.periodic = Some(range::periodic(text)?)),
    ),
    value(
        "request-period",
        "n",
        "Responses that requests must have had before --periodic-concurrency-range adds more. Default \
         10.",
        set!(|given, text| given.period = Some(at_least(text, 1, "be > 0")?)),
    ),
    Row::new("session-concurrency", Kind::Form("n"), "Refused: it is for the service kind openai.").refused("Session concurrency mode is only supported with OpenAI service kind."),
    Row::new("fixed-schedule", Kind::Switch, "Refused: timestamps in the input data are read only with the service kind openai.").refused("timestamps in the input data are for the OpenAI service kind; --request-intervals sends on a \
             schedule of your own"),
    switch(
        "binary-search",
        "Search the range for the highest load within the latency threshold by halving it; the step is \
         then the precision. Needs an end and --latency-threshold.",
        set!(|given, _| given.settings.search = Search::Binary),
    ),
    value(
        "latency-threshold",
        "msec",
        "End the search when the latency exceeds this. Default 0: no limit.",
        set!(|given, text| given.settings.latency_limit =
                Some(at_least(text, 0, "be >= 0 msecs.")?).filter(|&limit| limit > 0)),
    )
    .short('l'),
    value(
        "measurement-mode",
        "time_windows|count_windows",
        "Windows last --measurement-interval, or until --measurement-request-count requests have ended. \
         Default time_windows.",
        |given, text| {
            let choices = [("time_windows", false), ("count_windows", true)];
            let available = "The available options are 'time_windows' or 'count_windows'.";
            given.counts_windows = choice(text, &choices, available)?;
            Ok(())
        },
    ),
    value(
        "measurement-interval",
        "msec",
        "Length of a window. Default 5000.",
        set!(|given, text| given.window = Some(at_least(text, 1, "be > 0 msec.")?)),
    )
    .short('p'),
    value(
        "measurement-request-count",
        "n",
        "Requests of a window in the mode count_windows, at least. Default 50.",
        set!(|given, text| given.window_count = Some(at_least(text, 1, "be > 0.")?)),
    ),
    value(
        "stability-percentage",
        "percent",
        "How far throughput and latency of the last three windows may lie apart to count as stable. \
         Default 10.",
        |given, text| {
            let percent = number(text)?;
            if percent < 0.0 {
                return Err(failed(text, "The value must be >= 0.0."));
            }
            given.settings.stability = percent / 100.0;
            Ok(())
        },
    )
    .short('s'),
    value(
        "max-trials",
        "n",
        "Windows after which a load that is not stable is given up. Default 10.",
        set!(|given, text| given.settings.max_trials = at_least(text, 1, "be > 0.")?),
    )
    .short('r'),
    value(
        "percentile",
        "1..99",
        "The latency percentile that decides about stability and the threshold, and is reported. \
         Default -1: the average decides.",
        set!(|given, text| given.percentile = Some(at_least(text, i128::from(i64::MIN), "be in range (0, 100).")?)),
    ),
    value(
        "request-count",
        "n",
        "Measure exactly so many requests, in one window. Default 0: windows until they are stable.",
        set!(|given, text| given.settings.request_count =
                Some(at_least(text, 0, "be > 0.")?).filter(|&count| count > 0)),
    ),
    value(
        "warmup-request-count",
        "n",
        "Requests to send before the measurement begins. Default 0.",
        set!(|given, text| given.settings.warmup_request_count = at_least(text, 0, "be >= 0.")?),
    ),
    value(
        "max-threads",
        "n",
        "Upper bound on the load's workers. Default 4 on a schedule, else 16 or the concurrency. Blocking \
         calls always have a worker for each request.",
        set!(|given, text| given.settings.max_threads = Some(at_least(text, 1, "be > 0.")?)),
    ),
    value(
        "num-of-sequences",
        "n",
        "Sequences in flight at a time when sending on a schedule. Default 4.",
        set!(|given, text| given.settings.sequences.count = at_least(text, 1, "be > 0.")?),
    ),
    switch(
        "serial-sequences",
        "On a schedule, no request of a sequence before the one ahead of it is answered.",
        |given, v| v.put(&mut given.settings.sequences.serial),
    ),
    value("", "n", "Deprecated: concurrency to start with.", |given, text| {
        let start: i64 = at_least(text, i128::from(i64::MIN), "")?;
        given.old.concurrency = Some(old_start(start));
        given.old.are_used = true;
        Ok(())
    })
    .short('t'),
    value("", "n", "Deprecated: concurrency to end with, when -d is given.", |given, text| {
        given.old.max_concurrency = at_least(text, 0, "be >= 0.")?;
        given.old.are_used = true;
        Ok(())
    })
    .short('c'),
    switch("", "Deprecated: go from -t to -c by 1.", |given, _| {
        given.old.is_dynamic = true;
        given.old.are_used = true;
        Ok(())
    })
    .short('d'),
];

/// Returns 0 for values under 1, which the check of all ranges refuses.
fn old_start(start: i64) -> u64 {
    u64::try_from(start).unwrap_or(0)
}
