//! Options for the load and its measurement.

use galatea_command_line::{Kind, options, set};
use galatea_perf_types::settings::{Distribution, Search};

use super::{
    super::{
        range,
        readers::{at_least, choice, existing_file, failed, number},
    },
    row::{Row, switch, value},
};

pub const ROWS: &[Row] = options! {
    /// Keep requests in flight without a thread for each. By default calls block, except for sequence models.
    "async" => switch(|given, v| v.put(&mut given.settings.calls.asynchronous)).short('a'),
    /// Blocking calls for sequence models, too.
    "sync" => switch(|given, v| v.put(&mut given.settings.calls.forced_sync)),
    /// Number of requests in flight at any time: from start to end (included) in steps, one measurement each. An
    /// end of 0 goes on until the latency threshold. Default 1:1:1, one request.
    "concurrency-range" => value("start[:end[:step]]",
        set!(|given, text| given.concurrency = Some(range::concurrency(text)?))),
    /// Send on a schedule of so many requests per second, whatever the server does. Fractions are allowed; otherwise
    /// as --concurrency-range.
    "request-rate-range" => value("start[:end[:step]]",
        set!(|given, text| given.rate = Some(range::rate(text)?))),
    /// Pauses of the request rate: all the same, or spread like those of independent users. Default constant.
    "request-distribution" => value("constant|poisson", |given, text| {
        let choices =
            [("constant", Distribution::Constant), ("poisson", Distribution::Poisson)];
        given.distribution =
            choice(text, &choices, "Choices are 'poisson' or 'constant'.")?;
        Ok(())
    }),
    /// Send with the pauses of a file, one a line in microseconds, over and over.
    "request-intervals" => value("file", set!(|given, text| given.intervals_file =
            Some(existing_file(text, "The value must be a valid file path")?))),
    /// Begin with start requests and add step more each time the last ones have had --request-period responses, up to
    /// end in all. Needs --streaming and --profile-export-file.
    "periodic-concurrency-range" => value("start:end[:step]",
        set!(|given, text| given.periodic = Some(range::periodic(text)?))),
    /// Responses that requests must have had before --periodic-concurrency-range adds more. Default 10.
    "request-period" => value("n",
        set!(|given, text| given.period = Some(at_least(text, 1, "be > 0")?))),
    /// Refused: it is for the service kind openai.
    "session-concurrency" => Row::of(Kind::Form("n"))
        .refused("Session concurrency mode is only supported with OpenAI service kind."),
    /// Refused: timestamps in the input data are read only with the service kind openai.
    "fixed-schedule" => Row::of(Kind::Switch).refused(
        "timestamps in the input data are for the OpenAI service kind; --request-intervals sends on a \
         schedule of your own",
    ),
    /// Search the range for the highest load within the latency threshold by halving it; the step is then the
    /// precision. Needs an end and --latency-threshold.
    "binary-search" => switch(set!(|given, _| given.settings.search = Search::Binary)),
    /// End the search when the latency exceeds this. Default 0: no limit.
    "latency-threshold" => value("msec", set!(|given, text| given.settings.latency_limit =
            Some(at_least(text, 0, "be >= 0 msecs.")?).filter(|&limit| limit > 0))).short('l'),
    /// Windows last --measurement-interval, or until --measurement-request-count requests have ended. Default
    /// time_windows.
    "measurement-mode" => value("time_windows|count_windows", |given, text| {
        let choices = [("time_windows", false), ("count_windows", true)];
        let available = "The available options are 'time_windows' or 'count_windows'.";
        given.counts_windows = choice(text, &choices, available)?;
        Ok(())
    }),
    /// Length of a window. Default 5000.
    "measurement-interval" => value("msec",
        set!(|given, text| given.window = Some(at_least(text, 1, "be > 0 msec.")?)))
        .short('p'),
    /// Requests of a window in the mode count_windows, at least. Default 50.
    "measurement-request-count" => value("n",
        set!(|given, text| given.window_count = Some(at_least(text, 1, "be > 0.")?))),
    /// Largest difference in throughput and latency of the last three windows that counts as stable. Default 10.
    "stability-percentage" => value("percent", |given, text| {
        let percent = number(text)?;
        if percent < 0.0 {
            return Err(failed(text, "The value must be >= 0.0."));
        }
        given.settings.stability = percent / 100.0;
        Ok(())
    }).short('s'),
    /// Windows after which a load that is not stable is given up. Default 10.
    "max-trials" => value("n",
        set!(|given, text| given.settings.max_trials = at_least(text, 1, "be > 0.")?))
        .short('r'),
    /// The latency percentile that decides about stability and the threshold, and is reported. Default -1: the
    /// average decides.
    "percentile" => value("1..99",
        set!(|given, text| given.percentile = Some(at_least(text, i128::from(i64::MIN), "be in range (0, 100).")?))),
    /// Measure exactly so many requests, in one window. Default 0: windows until they are stable.
    "request-count" => value("n", set!(|given, text| given.settings.request_count =
            Some(at_least(text, 0, "be > 0.")?).filter(|&count| count > 0))),
    /// Requests to send before the measurement begins. Default 0.
    "warmup-request-count" => value("n",
        set!(|given, text| given.settings.warmup_request_count = at_least(text, 0, "be >= 0.")?)),
    /// Upper bound on the load's workers. Default 4 on a schedule, else 16 or the concurrency. Blocking calls always
    /// have a worker for each request.
    "max-threads" => value("n",
        set!(|given, text| given.settings.max_threads = Some(at_least(text, 1, "be > 0.")?))),
    /// Sequences in flight at a time when sending on a schedule. Default 4.
    "num-of-sequences" => value("n",
        set!(|given, text| given.settings.sequences.count = at_least(text, 1, "be > 0.")?)),
    /// On a schedule, no request of a sequence before the one ahead of it is answered.
    "serial-sequences" => switch(|given, v| v.put(&mut given.settings.sequences.serial)),
    /// Deprecated: concurrency to start with.
    "" => value("n", |given, text| {
        let start: i64 = at_least(text, i128::from(i64::MIN), "")?;
        given.old.concurrency = Some(old_start(start));
        given.old.are_used = true;
        Ok(())
    }).short('t'),
    /// Deprecated: concurrency to end with, when -d is given.
    "" => value("n", |given, text| {
        given.old.max_concurrency = at_least(text, 0, "be >= 0.")?;
        given.old.are_used = true;
        Ok(())
    }).short('c'),
    /// Deprecated: go from -t to -c by 1.
    "" => switch(|given, _| {
        given.old.is_dynamic = true;
        given.old.are_used = true;
        Ok(())
    }).short('d'),
};

/// Returns 0 for values under 1, which the check of all ranges refuses.
fn old_start(start: i64) -> u64 {
    u64::try_from(start).unwrap_or(0)
}
