//! The server's report: counts, and the parts of a request's time.

use std::fmt::Write as _;

use galatea_perf_types::{model::ModelInfo, status::ServerStats};

use crate::breakdown::{Breakdown, average_us};

/// `depth` is 1 for the model itself, one more for each ensemble around it.
pub(super) fn write(text: &mut String, stats: &ServerStats, model: &ModelInfo, depth: usize) {
    let indent = "  ".repeat(depth);
    let counters = &stats.counters;
    if counters.success.count == 0 {
        let _ = writeln!(text, "{indent}  Request count: 0");
        return;
    }
    let _ = writeln!(text, "{indent}  Inference count: {}", counters.inference_count);
    let _ = writeln!(text, "{indent}  Execution count: {}", counters.execution_count);
    if model.response_cache {
        let _ = writeln!(text, "{indent}  Cache hit count: {}", counters.cache_hit.count);
        let _ = writeln!(text, "{indent}  Cache miss count: {}", counters.cache_miss.count);
    }
    let _ = writeln!(text, "{indent}  Successful request count: {}", counters.success.count);
    let total = average_us(counters.success);
    let _ = write!(text, "{indent}  Avg request latency: {total} usec");
    if stats.composing.is_empty() {
        single(text, &Breakdown::of_model(counters), model, &indent);
    } else {
        ensemble(text, stats, model, &indent);
        steps(text, stats, model, depth);
    }
}

fn single(text: &mut String, times: &Breakdown, model: &ModelInfo, indent: &str) {
    let Breakdown { queue, compute_input, compute_infer, compute_output, .. } = times;
    let compute = format!(
        "compute input {compute_input} usec + compute infer {compute_infer} usec + compute output {compute_output} usec)"
    );
    if !model.response_cache {
        let overhead = times.overhead();
        let _ = writeln!(text, " (overhead {overhead} usec + queue {queue} usec + {compute}\n");
        return;
    }
    cache_share(text, times);
    let _ = writeln!(text, "{indent}{indent}  Average Cache Hit Latency: {} usec", times.cache_hit);
    let _ = writeln!(
        text,
        "{indent}{indent}  Average Cache Miss Latency: {} usec (cache lookup/insertion {} usec + {compute}\n",
        times.cache_miss.saturating_add(times.compute),
        times.cache_miss
    );
}

fn cache_share(text: &mut String, times: &Breakdown) {
    let _ = writeln!(
        text,
        " (overhead {} usec + queue {} usec + cache hit/miss {} usec)",
        times.overhead_with_cache(),
        times.queue,
        times.cache_and_compute
    );
}

fn ensemble(text: &mut String, stats: &ServerStats, model: &ModelInfo, indent: &str) {
    let times = Breakdown::of_ensemble(stats);
    if !model.response_cache {
        let (overhead, queue, compute) = (times.overhead(), times.queue, times.compute);
        let _ = writeln!(
            text,
            " (overhead {overhead} usec + queue {queue} usec + compute {compute} usec)\n"
        );
        return;
    }
    if model.top_level_response_cache {
        // Responses from the ensemble's own cache have no steps, so the parts would not add up.
        text.push('\n');
    } else {
        cache_share(text, &times);
    }
    let _ = writeln!(text, "{indent}{indent}  Average Cache Hit Latency: {} usec", times.cache_hit);
    let miss = times.cache_miss.saturating_add(times.compute);
    let _ = writeln!(text, "{indent}{indent}  Average Cache Miss Latency: {miss} usec \n");
}

fn steps(text: &mut String, stats: &ServerStats, model: &ModelInfo, depth: usize) {
    let indent = "  ".repeat(depth);
    let _ = writeln!(text, "{indent}Composing models: ");
    for ((name, version), step) in &stats.composing {
        let _ = writeln!(text, "{indent}{name}, version: {version}");
        write(text, step, model, depth + 1);
    }
}
