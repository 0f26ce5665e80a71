//! Checks of options against each other, in perf_analyzer's order. Of several errors, the same one is reported.

use galatea_client::{Address, Endpoint, Protocol};
use galatea_perf_types::settings::{Search, Settings, SharedMemory};

use super::{error::OptionError, given_options::GivenOptions};

type Outcome = Result<(), OptionError>;

pub fn verify(given: &mut GivenOptions) -> Outcome {
    single(given)?;
    sequences(given)?;
    calls(given)?;
    old_options(given)?;
    load_mode(given)?;
    periodic(given)?;
    let no_parameters = given.settings.request_parameters.is_empty();
    refuse_if(
        !no_parameters && given.settings.protocol != Protocol::Grpc,
        "The --request-parameter option is currently only supported by gRPC protocol.",
    )?;
    refuse_if(
        given.old.are_used && given.intervals_file.is_some(),
        "Cannot use deprecated options with --request-intervals.",
    )?;
    search(given)?;
    warm_up(given)?;
    request_count(given)?;
    metrics(given)?;
    shared_memory(given)?;
    refuse_if(
        !given.settings.compare.is_empty() && given.settings.html_file.is_none(),
        "Must specify --html when using the --compare option.",
    )
}

fn refuse_if(wrong: bool, text: &str) -> Outcome {
    if wrong { Err(OptionError::rule(text)) } else { Ok(()) }
}

fn single(given: &GivenOptions) -> Outcome {
    refuse_if(
        given.settings.model_name.is_empty(),
        "Failed to parse -m (model name). The value must be specified.",
    )?;
    refuse_if(given.concurrency_range().start == 0, "The start of the search range must be > 0")?;
    refuse_if(
        given.rate_range().start <= 0.0,
        "Failed to parse --request-rate-range. The start of the search range must be > 0.",
    )?;
    let is_grpc = given.settings.protocol == Protocol::Grpc;
    refuse_if(
        given.settings.calls.streaming && !is_grpc,
        "Streaming is only allowed with gRPC protocol and Triton C API.",
    )?;
    refuse_if(
        given.compression.is_some() && !is_grpc,
        "Using compression algorithm is only allowed with gRPC protocol.",
    )
}

fn sequences(given: &mut GivenOptions) -> Outcome {
    refuse_if(
        given.settings.sequences.length_variation < 0.0,
        "Failed to parse --sequence-length-variation. The value must be >= 0.0.",
    )?;
    if given.settings.sequences.first_id == 0 {
        given.settings.sequences.first_id = 1;
        given.warn(
            "using an invalid start sequence id. Perf Analyzer will use default value if it is measuring \
             on sequence model.",
        );
    }
    Ok(())
}

fn calls(given: &GivenOptions) -> Outcome {
    refuse_if(
        given.percentile.is_some_and(|percent| percent != -1 && !(1..=99).contains(&percent)),
        "Failed to parse --percentile. The value must be -1 for not reporting or in range (0, 100).",
    )?;
    refuse_if(
        given.zero_input && !given.user_data.is_empty(),
        "The -z flag cannot be set when --data-directory is provided.",
    )?;
    refuse_if(
        given.settings.calls.asynchronous && given.settings.calls.forced_sync,
        "Cannot specify --async and --sync simultaneously.",
    )?;
    // perf_analyzer checks this only after it has reached the server.
    refuse_if(
        given.settings.calls.streaming && given.settings.calls.forced_sync,
        "can not use streaming with synchronous API",
    )
}

fn old_options(given: &GivenOptions) -> Outcome {
    refuse_if(
        given.old.are_used && given.concurrency.is_some(),
        "Cannot use deprecated options with --concurrency-range.",
    )?;
    refuse_if(
        given.old.are_used && given.rate.is_some(),
        "Cannot use concurrency options with --request-rate-range.",
    )
}

fn load_mode(given: &GivenOptions) -> Outcome {
    let modes = [
        given.periodic.is_some(),
        given.concurrency.is_some(),
        given.rate.is_some(),
        given.intervals_file.is_some(),
    ];
    refuse_if(
        modes.into_iter().filter(|&is_used| is_used).count() > 1,
        "Cannot specify more then one inference load mode. Please choose only one of the following \
         modes: --concurrency-range, --periodic-concurrency-range, --request-rate-range, or \
         --request-intervals.",
    )
}

fn periodic(given: &mut GivenOptions) -> Outcome {
    if given.periodic.is_none() {
        return Ok(());
    }
    refuse_if(
        !given.settings.calls.streaming,
        "The --periodic-concurrency-range option requires bi-directional gRPC streaming.",
    )?;
    refuse_if(
        given.settings.profile_export_file.is_none(),
        "Must provide --profile-export-file when using the --periodic-concurrency-range option.",
    )?;
    if given.settings.max_threads.is_some() {
        given.warn("Overriding max_threads specification to ensure requested concurrency range.");
    }
    Ok(())
}

fn search(given: &GivenOptions) -> Outcome {
    let (concurrency, rate) = (given.concurrency_range(), given.rate_range());
    let is_open = concurrency.end == 0 || rate.end == 0.0;
    let is_unlimited = given.settings.latency_limit.is_none();
    refuse_if(
        is_open && is_unlimited,
        "The end of the search range and the latency limit can not be both 0 (or 0.0) simultaneously",
    )?;
    if given.settings.search == Search::Linear || given.intervals_file.is_some() {
        return Ok(());
    }
    refuse_if(is_open, "The end of the range can not be 0 (or 0.0) for binary search mode.")?;
    refuse_if(is_unlimited, "The --latency-threshold cannot be 0 for binary search mode.")?;
    refuse_if(
        concurrency.end < concurrency.start || rate.end < rate.start,
        "The end of the range can not be less than start of the range for binary search mode.",
    )
}

fn warm_up(given: &GivenOptions) -> Outcome {
    if given.settings.warmup_request_count == 0 {
        return Ok(());
    }
    refuse_if(
        has_several(given.concurrency),
        "--warmup-request-count not supported with multiple concurrency values in one run",
    )?;
    refuse_if(
        has_several(given.rate),
        "--warmup-request-count not supported with multiple request rate values in one run",
    )
}

fn request_count(given: &GivenOptions) -> Outcome {
    let Some(count) = given.settings.request_count else { return Ok(()) };
    refuse_if(
        given.concurrency.is_some_and(|range| count < range.start),
        "request-count can not be less than concurrency",
    )?;
    refuse_if(
        has_several(given.concurrency),
        "request-count not supported with multiple concurrency values in one run",
    )?;
    // Compared with the rate's whole requests, as in perf_analyzer.
    refuse_if(
        given.rate.is_some_and(|range| count < range.start as u64),
        "request-count can not be less than request-rate",
    )?;
    refuse_if(
        has_several(given.rate),
        "request-count not supported with multiple request-rate values in one run",
    )
}

fn has_several<T: PartialOrd>(range: Option<galatea_perf_types::settings::Range<T>>) -> bool {
    range.is_some_and(|range| range.start < range.end)
}

fn metrics(given: &GivenOptions) -> Outcome {
    refuse_if(
        given.metrics_url.is_some() && !given.collects_metrics,
        "Must specify --collect-metrics when using the --metrics-url option.",
    )?;
    refuse_if(
        given.metrics_interval.is_some() && !given.collects_metrics,
        "Must specify --collect-metrics when using the --metrics-interval option.",
    )
}

/// Checks that descriptors have a Unix socket to be passed over.
fn shared_memory(given: &GivenOptions) -> Outcome {
    let Settings { protocol, shared_memory, shared_memory_url, .. } = &given.settings;
    if *shared_memory != SharedMemory::Memfd {
        return refuse_if(
            shared_memory_url.is_some(),
            "Must specify --shared-memory=memfd when using the --shared-memory-url option.",
        );
    }
    if let Some(url) = shared_memory_url {
        return refuse_if(
            !is_unix_socket(url),
            &format!(
                "The --shared-memory-url '{url}' is no Unix socket. The value must be unix:PATH, the \
                 socket of the server for HTTP."
            ),
        );
    }
    let has_socket = given.url.as_deref().is_some_and(is_unix_socket);
    refuse_if(
        !has_socket,
        "The --shared-memory=memfd option passes memory over a Unix socket. Give the server's socket \
         for HTTP as -u unix:PATH or --shared-memory-url=unix:PATH, or use --shared-memory=system.",
    )?;
    refuse_if(
        *protocol == Protocol::Grpc,
        "The --shared-memory=memfd option registers memory over HTTP. Give the server's Unix socket \
         for HTTP as --shared-memory-url=unix:PATH beside -i grpc.",
    )
}

fn is_unix_socket(url: &str) -> bool {
    let address = Address::read(url, Protocol::Http);
    address.is_ok_and(|address| matches!(address.endpoint, Endpoint::Unix(_)))
}
