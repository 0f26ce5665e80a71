//! Units and refusals, with functions in place of the library's.

pub(crate) mod fake;

use self::fake::*;
use super::*;

#[test]
fn values_are_converted_to_their_units() {
    let nvml = Nvml::start(FAKE).expect("starts");
    let device = nvml.device("0000:0a:00.0").expect("there");
    assert_eq!(nvml.uuid(device).expect("an id"), "GPU-1");
    assert_eq!(nvml.utilization(device).expect("a share"), 0.37);
    assert_eq!(nvml.power_usage(device).expect("watts"), 101.5);
    assert_eq!(nvml.power_limit(device).expect("watts"), 700.0);
    assert!(nvml.energy(device).expect("millijoules") >= 5_000);
}

#[test]
fn memory_reserved_by_the_driver_is_subtracted_if_reported() {
    assert_eq!(MEMORY_V2, 40 | 0x0200_0000, "as the reference's macro makes it");
    let used = |functions, id| {
        let nvml = Nvml::start(functions).expect("starts");
        nvml.memory(nvml.device(id).expect("there")).expect("memory")
    };
    assert_eq!(used(FAKE, "0000:0a:00.0"), (1000, 600));
    assert_eq!(used(FAKE, "0000:0b:00.0"), (1000, 700), "refused there");
    assert_eq!(used(OLD, "0000:0a:00.0"), (1000, 700));
}

#[test]
fn errors_name_the_call_and_the_reason() {
    let nvml = Nvml::start(FAKE).expect("starts");
    let error = nvml.device("0000:ff:00.0").expect_err("not there");
    assert_eq!(error.to_string(), "nvmlDeviceGetHandleByPciBusId_v2 failed: Not Found");
    let limited = nvml.device("0000:0b:00.0").expect("there");
    let error = nvml.power_usage(limited).expect_err("cannot");
    assert_eq!(error.to_string(), "nvmlDeviceGetPowerUsage failed: Not Supported");
    let error = Nvml::start(BROKEN).err().expect("an error");
    assert_eq!(error.to_string(), "nvmlInit_v2 failed: NVML error 9");
}
