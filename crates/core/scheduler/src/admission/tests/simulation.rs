//! Overloads, in simulated time.

use super::simulated_server::{Load, Outcome, Service};
use crate::model_shape::ModelShape;

const ONE: ModelShape = ModelShape { instances: 1, per_execution: 1, is_open: false };
const FOUR: ModelShape = ModelShape { instances: 4, per_execution: 1, is_open: false };
const BATCHES: ModelShape = ModelShape { instances: 1, per_execution: 32, is_open: false };

/// Ten times as many requests as the model can answer.
fn overload(shape: ModelShape, service: Service, capacity: f64) -> Load {
    let seconds = 40_000.0 / capacity;
    Load {
        shape,
        service,
        per_second: 10.0 * capacity,
        seconds,
        settles: seconds / 4.0,
        has_admission: true,
        budget: None,
    }
}

/// The same model with hardly a request.
fn unloaded(load: Load) -> Outcome {
    let per_second = load.per_second / 1000.0;
    let seconds = load.seconds * 50.0;
    Load { per_second, seconds, settles: 0.0, has_admission: false, ..load }.run(7)
}

/// The instances execute requests singly.
const SINGLE: [(&str, ModelShape, Service, f64); 6] = [
    ("constant", ONE, Service::Constant(0.01), 100.0),
    ("constant", FOUR, Service::Constant(0.01), 400.0),
    ("exponential", ONE, Service::Exponential(0.01), 100.0),
    ("exponential", FOUR, Service::Exponential(0.01), 400.0),
    ("bimodal", ONE, Service::Bimodal(0.005, 0.055), 100.0),
    ("bimodal", FOUR, Service::Bimodal(0.005, 0.055), 400.0),
];

#[test]
fn ten_times_the_load_leaves_goodput_and_latency() {
    for (name, shape, service, capacity) in SINGLE {
        let load = overload(shape, service, capacity);
        let (full, idle) = (load.run(3), unloaded(load));
        let told = format!(
            "{name}, {} instances: goodput {:.3}, p99 {:.2} of the unloaded, limit {}",
            shape.instances,
            full.goodput / capacity,
            full.p99 / idle.p99,
            full.limit
        );
        println!("{told}");
        assert!(full.goodput >= 0.9 * capacity, "{told}");
        assert!(full.p99 <= 2.0 * idle.p99, "{told}");
    }
}

#[test]
fn without_admission_the_latency_grows_with_the_load() {
    let load = overload(ONE, Service::Constant(0.01), 100.0);
    let off = Load { has_admission: false, seconds: 20.0, settles: 0.0, ..load };
    assert!(off.run(3).p99 > 10.0, "this simulation can fail");
}

#[test]
fn batches_keep_their_throughput() {
    // Capacity is that of full batches.
    for (fixed, each) in [(0.01, 0.0001), (0.01, 0.001), (0.001, 0.001), (0.0002, 0.001)] {
        let capacity = 32.0 / (fixed + 32.0 * each);
        let load = overload(BATCHES, Service::Batch(fixed, each), capacity);
        let load = Load { seconds: load.seconds * 4.0, settles: load.seconds * 2.0, ..load };
        let (full, idle) = (load.run(5), unloaded(load));
        let told = format!(
            "{fixed} + {each} an item: goodput {:.3}, p99 {:.2} of the unloaded, limit {}",
            full.goodput / capacity,
            full.p99 / idle.p99,
            full.limit
        );
        println!("{told}");
        assert!(full.goodput >= 0.9 * capacity, "{told}");
        // No batch is longer than one full one, and a request waits for one and is in one.
        assert!(full.p99 <= 2.1 * (fixed + 32.0 * each), "{told}");
    }
}

#[test]
fn a_larger_batch_that_gains_nothing_is_not_waited_for() {
    let load = overload(BATCHES, Service::Batch(0.0, 0.001), 1000.0);
    let load = Load { seconds: 160.0, settles: 80.0, ..load };
    let full = load.run(5);
    assert!(full.limit < 8, "{}", full.limit);
    assert!(full.goodput >= 900.0, "{}", full.goodput);
}

#[test]
fn answers_come_within_the_time_that_clients_wait() {
    // Ten places may be taken by a burst, and the clients wait for the time of three.
    for service in [Service::Constant(0.01), Service::Exponential(0.01)] {
        let capacity = 400.0;
        let load = overload(FOUR, service, capacity);
        let load = Load { budget: Some(0.1), ..load };
        let full = load.run(11);
        let told = format!("{service:?}: {:.3} and {} late", full.goodput / capacity, full.late);
        println!("{told}");
        assert!(full.goodput >= 0.9 * capacity, "{told}");
    }
}

#[test]
fn a_model_that_keeps_up_refuses_hardly_a_request() {
    for (name, shape, service, capacity) in SINGLE {
        let load = overload(shape, service, capacity);
        let load = Load { per_second: 0.6 * capacity, settles: 0.0, ..load };
        let outcome = load.run(13);
        let share = outcome.refused as f64 / (load.per_second * load.seconds);
        println!("{name}, {} instances: {share:.4} refused", shape.instances);
        assert!(share < 0.05, "{name}, {} instances: {share}", shape.instances);
    }
}
