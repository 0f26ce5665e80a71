//! What is published and when, with NVML replaced.

use super::*;
use crate::nvml::tests::fake::FAKE;

fn gpu(index: u32, pci_bus_id: &str) -> Gpu {
    let (name, pci_bus_id) = (format!("gpu {index}"), pci_bus_id.to_owned());
    Gpu { index, name, pci_bus_id, compute_capability: (9, 0) }
}

#[test]
fn unsupported_values_are_omitted() {
    let nvml = Nvml::start(FAKE).expect("starts");
    let gpus = [gpu(0, "0000:0b:00.0"), gpu(1, "0000:ff:00.0"), gpu(2, "0000:0a:00.0")];
    let mut source = NvmlSource::new(nvml, &gpus);
    let first = source.read();
    let limited = GpuMetrics {
        uuid: "GPU-2".to_owned(),
        memory_total_bytes: Some(1000),
        memory_used_bytes: Some(700),
        ..GpuMetrics::default()
    };
    assert_eq!(first.len(), 2, "one is not known to the library");
    assert_eq!(first[0], limited);
    assert_eq!(source.gpus[0].failed_queries.len(), 4);
    let full = &first[1];
    assert_eq!((full.uuid.as_str(), full.utilization), ("GPU-1", Some(0.37)));
    assert_eq!((full.memory_total_bytes, full.memory_used_bytes), (Some(1000), Some(600)));
    assert_eq!((full.power_usage_watts, full.power_limit_watts), (Some(101.5), Some(700.0)));
    assert_eq!(full.energy_joules, Some(0.0), "counted from the start");
    let second = source.read();
    assert_eq!(second[0], limited);
    assert!(second[1].energy_joules.is_some_and(|joules| joules >= 0.25), "{second:?}");
}

/// Counts its readings, and sends each count to the test.
struct Counting(u64, mpsc::Sender<u64>);

impl Source for Counting {
    fn read(&mut self) -> Vec<GpuMetrics> {
        self.0 += 1;
        // Nobody waits any more at the end of the test.
        let _ = self.1.send(self.0);
        vec![GpuMetrics { memory_used_bytes: Some(self.0), ..GpuMetrics::default() }]
    }
}

#[test]
fn samples_are_taken_once_per_interval_until_dropped() {
    let (sender, readings) = mpsc::channel();
    let shared = SharedGpuMetrics::default();
    let sampler = GpuSampler::of_source(Counting(0, sender), Duration::ZERO, shared.clone())
        .expect("a thread");
    assert!(shared.latest()[0].memory_used_bytes >= Some(1), "at once");
    for reading in 1..=3 {
        assert_eq!(readings.recv().expect("a reading"), reading);
    }
    assert!(shared.latest()[0].memory_used_bytes >= Some(2));
    drop(sampler);
    assert_eq!(shared.latest(), [], "old values are no values");
}

#[test]
fn a_long_interval_does_not_delay_the_end() {
    let (sender, readings) = mpsc::channel();
    let shared = SharedGpuMetrics::default();
    let interval = Duration::MAX;
    drop(GpuSampler::of_source(Counting(0, sender), interval, shared.clone()).expect("a thread"));
    assert_eq!(readings.iter().collect::<Vec<_>>(), [1]);
}
