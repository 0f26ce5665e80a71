//! Measures one engine: loads it, sends requests, and increases the concurrency.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use galatea_perf::probe::{Answers, Figures, Probe, ProbedModel};

use super::{
    candidate::Candidate, command_line::TuneFlags, model::TunedModel, server::Server, stop::Stop,
};

/// Growth of the throughput below which a higher concurrency is of no use.
const GROWTH: f64 = 1.05;

/// Number of requests whose answers are compared.
const COMPARED: usize = 8;

/// The measurements of an engine.
#[derive(Debug)]
pub struct MeasuredEngine {
    /// Time of the load request.
    pub load_time: Duration,
    /// Memory of the server with the model after all requests, in bytes; `None`: the system does not report it.
    pub memory: Option<u64>,
    /// Figures with one request at a time.
    pub alone: Figures,
    /// Figures at the best concurrency.
    pub most: Figures,
    pub answers: Answers,
}

/// Measures an engine on a server of its own. `progress` gets a text for each step.
#[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
pub fn measure(
    model: &TunedModel,
    candidate: &Candidate,
    flags: &TuneFlags,
    stop: &Stop,
    progress: &dyn Fn(&str),
) -> Result<MeasuredEngine> {
    let repository = model.repository(&candidate.config).map_err(|error| {
        anyhow!("cannot make a copy of the model's folder: {error}; TMPDIR names another place")
    })?;
    progress("loading");
    let server = Server::start(repository.path(), &flags.serve_words, stop)?;
    let probe =
        Probe::open("galatea tune", words(model, &server.address, flags), stop.interrupt())?;
    let (mut loaded, load_time) = probe.load()?;
    let answers = loaded.answers(COMPARED)?;
    // The first requests were slower, because they prepared things once.
    let started = Instant::now();
    loaded.answers(1)?;
    let answer_time = started.elapsed();
    progress("1 request at a time");
    let alone = loaded.measure(1, window(answer_time, 1))?;
    let most = saturate(&mut loaded, alone, flags.max_concurrency, progress)?;
    Ok(MeasuredEngine { load_time, memory: server.resident_bytes(), alone, most, answers })
}

/// Returns a window that is long enough for several answers of a model that runs one request after the other.
fn window(answer_time: Duration, concurrency: u64) -> Duration {
    answer_time.saturating_mul(u32::try_from(concurrency).unwrap_or(u32::MAX).saturating_mul(3))
}

/// Returns the highest throughput: the concurrency is doubled until that does not help.
fn saturate(
    loaded: &mut ProbedModel,
    alone: Figures,
    limit: u64,
    progress: &dyn Fn(&str),
) -> Result<Figures> {
    let mut most = alone;
    let mut concurrency = 2;
    while concurrency <= limit {
        progress(&format!("{concurrency} requests at a time"));
        let figures = loaded.measure(concurrency, window(alone.p50, concurrency))?;
        let has_grown = figures.throughput >= most.throughput * GROWTH;
        if figures.throughput > most.throughput {
            most = figures;
        }
        if !has_grown {
            break;
        }
        concurrency *= 2;
    }
    Ok(most)
}

fn words(model: &TunedModel, address: &str, flags: &TuneFlags) -> Vec<String> {
    let (batch, interval) = (flags.batch_size.to_string(), flags.interval.to_string());
    let own = ["-m", &model.name, "-u", address, "-b", &batch, "--measurement-interval", &interval];
    let own = own.into_iter().chain(["--max-trials", "4"]).map(str::to_owned);
    own.chain(flags.load_words.iter().cloned()).collect()
}
