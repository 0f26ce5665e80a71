//! Settings of the threads: the reasoning and the measurements are in `docs/adr/0025-openvino-streams.md`.

use std::thread;

use galatea_config::ModelConfig;

use crate::settings::{Settings, Streams};

/// Returns the properties for threads, by OpenVINO's names.
pub(crate) fn properties(settings: &Settings, instances: u32) -> Vec<(&'static str, String)> {
    let mut properties = Vec::new();
    if let Some(threads) = settings.threads.filter(|&n| n > 0).or_else(limited_cores) {
        properties.push(("INFERENCE_NUM_THREADS", threads.to_string()));
    }
    if let Some(is_pinned) = settings.is_pinned {
        let value = if is_pinned { "YES" } else { "NO" };
        properties.push(("ENABLE_CPU_PINNING", value.to_owned()));
    }
    let streams = match (settings.streams, settings.hint) {
        (Some(Streams::Number(0)) | None, None) => Some(instances.max(1).to_string()),
        // A hint sets the streams, unless they are configured.
        (Some(Streams::Number(0)) | None, Some(_)) => None,
        (Some(Streams::Number(number)), _) => Some(number.to_string()),
        (Some(Streams::Auto), _) => Some("AUTO".to_owned()),
        (Some(Streams::Numa), _) => Some("NUMA".to_owned()),
    };
    properties.extend(settings.hint.map(|hint| ("PERFORMANCE_HINT", hint.to_owned())));
    properties.extend(streams.map(|streams| ("NUM_STREAMS", streams)));
    properties
}

/// Returns the number of instances of the model, all groups together.
pub(crate) fn instances(config: &ModelConfig) -> u32 {
    config.instance_groups().iter().map(|group| group.count).sum()
}

/// Returns the number of processors within a container's limits. `None`: there is no limit. OpenVINO then counts cores
/// itself, and knows about those that share one.
fn limited_cores() -> Option<u32> {
    let allowed = thread::available_parallelism().ok()?.get();
    let is_limited = allowed < galatea_system::online_processors()?;
    is_limited.then(|| u32::try_from(allowed).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            hint: None,
            threads: Some(6),
            compilation_threads: None,
            streams: None,
            precision: "f32",
            is_pinned: None,
            extension: None,
            has_fixed_batch: false,
            pads_batches: false,
            reshapes: false,
            cache: None,
        }
    }

    #[test]
    fn streams_are_the_configured_number_or_one_per_instance() {
        let of = |settings: Settings| {
            let text = |(key, value): (&str, String)| format!("{key}={value}");
            properties(&settings, 3).into_iter().map(text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(settings()), "INFERENCE_NUM_THREADS=6 NUM_STREAMS=3");
        let hinted = Settings { hint: Some("LATENCY"), ..settings() };
        assert_eq!(of(hinted), "INFERENCE_NUM_THREADS=6 PERFORMANCE_HINT=LATENCY");
        let said =
            Settings { streams: Some(Streams::Number(2)), is_pinned: Some(false), ..settings() };
        assert_eq!(of(said), "INFERENCE_NUM_THREADS=6 ENABLE_CPU_PINNING=NO NUM_STREAMS=2");
        let numa =
            Settings { streams: Some(Streams::Numa), hint: Some("THROUGHPUT"), ..settings() };
        assert_eq!(
            of(numa),
            "INFERENCE_NUM_THREADS=6 PERFORMANCE_HINT=THROUGHPUT NUM_STREAMS=NUMA"
        );
    }
}
