//! The management library (`libnvidia-ml.so.1`): load, memory and power of a GPU.
//!
//! Types and units are those of the NVML API reference (`nvml.h`).

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

use crate::{error::GpuError, shared_library::SharedLibrary};

type NvmlReturn = c_int;

const SUCCESS: NvmlReturn = 0;
/// Bytes of the longest identifier of a device, by NVML's own constant.
const UUID_LENGTH: usize = 96;

/// NVML's handle of a GPU: valid while the library is initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Device(*mut c_void);

// SAFETY: NVML's handles may be used from any thread, as the whole library may.
unsafe impl Send for Device {}

/// Shares of the time since NVML's last sample, in percent.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

/// Bytes of memory. The driver's own memory counts as used.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// Bytes of memory, with the driver's own apart.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct MemoryV2 {
    version: c_uint,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// Size of the structure, and its version in the third byte, as NVML marks its versioned structures.
const MEMORY_V2: c_uint = size_of::<MemoryV2>() as c_uint | 2 << 24;

type NvmlGetFn<T> = unsafe extern "C" fn(Device, *mut T) -> NvmlReturn;

#[derive(Clone, Copy)]
pub(crate) struct Functions {
    init: unsafe extern "C" fn() -> NvmlReturn,
    shutdown: unsafe extern "C" fn() -> NvmlReturn,
    error_text: unsafe extern "C" fn(NvmlReturn) -> *const c_char,
    by_pci_bus_id: unsafe extern "C" fn(*const c_char, *mut Device) -> NvmlReturn,
    uuid: unsafe extern "C" fn(Device, *mut c_char, c_uint) -> NvmlReturn,
    utilization: NvmlGetFn<Utilization>,
    memory: NvmlGetFn<Memory>,
    /// `None` in older drivers.
    memory_v2: Option<NvmlGetFn<MemoryV2>>,
    power_usage: NvmlGetFn<c_uint>,
    power_limit: NvmlGetFn<c_uint>,
    energy: NvmlGetFn<u64>,
}

pub(crate) struct Nvml {
    functions: Functions,
}

impl Nvml {
    pub fn open() -> Result<Self, GpuError> {
        // SAFETY: NVIDIA's driver is installed by the owner of the machine to be used by programs.
        let library = unsafe { SharedLibrary::open("libnvidia-ml.so.1") }?;
        Self::start(Functions::find(&library)?)
    }

    pub fn start(functions: Functions) -> Result<Self, GpuError> {
        // SAFETY: may be called at any time; counted by the library.
        let result = unsafe { (functions.init)() };
        check(&functions, "nvmlInit_v2", result)?;
        Ok(Self { functions })
    }

    pub fn device(&self, pci_bus_id: &str) -> Result<Device, GpuError> {
        let call = "nvmlDeviceGetHandleByPciBusId_v2";
        let Ok(id) = CString::new(pci_bus_id) else {
            return Err(GpuError::Call(call, "the id holds a zero byte".to_owned()));
        };
        let mut device = Device(std::ptr::null_mut());
        // SAFETY: a terminated text and a valid out pointer.
        let result = unsafe { (self.functions.by_pci_bus_id)(id.as_ptr(), &mut device) };
        check(&self.functions, call, result)?;
        Ok(device)
    }

    /// Returns the identifier, e.g. `GPU-8f1c2d3e-...`.
    pub fn uuid(&self, device: Device) -> Result<String, GpuError> {
        let mut text: [c_char; UUID_LENGTH + 1] = [0; UUID_LENGTH + 1];
        let get = self.functions.uuid;
        // SAFETY: the buffer is one byte longer than the length passed.
        let result = unsafe { get(device, text.as_mut_ptr(), UUID_LENGTH as c_uint) };
        check(&self.functions, "nvmlDeviceGetUUID", result)?;
        // SAFETY: the last byte is zero whatever the library wrote.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// Returns the share of the time in which the GPU computed, 0 to 1.
    pub fn utilization(&self, device: Device) -> Result<f64, GpuError> {
        let call = "nvmlDeviceGetUtilizationRates";
        let rates = self.get(call, self.functions.utilization, device)?;
        Ok(f64::from(rates.gpu) / 100.0)
    }

    /// Returns total and used bytes.
    pub fn memory(&self, device: Device) -> Result<(u64, u64), GpuError> {
        if let Some(get) = self.functions.memory_v2 {
            let mut memory = MemoryV2 { version: MEMORY_V2, ..MemoryV2::default() };
            // SAFETY: the structure is of the version in its field, and valid for the call.
            if unsafe { get(device, &mut memory) } == SUCCESS {
                return Ok((memory.total, memory.used));
            }
        }
        let memory = self.get("nvmlDeviceGetMemoryInfo", self.functions.memory, device)?;
        Ok((memory.total, memory.used))
    }

    /// Returns the drawn power in watts.
    pub fn power_usage(&self, device: Device) -> Result<f64, GpuError> {
        let milliwatts = self.get("nvmlDeviceGetPowerUsage", self.functions.power_usage, device)?;
        Ok(f64::from(milliwatts) / 1000.0)
    }

    /// Returns the power limit in watts.
    pub fn power_limit(&self, device: Device) -> Result<f64, GpuError> {
        let call = "nvmlDeviceGetPowerManagementLimit";
        let milliwatts = self.get(call, self.functions.power_limit, device)?;
        Ok(f64::from(milliwatts) / 1000.0)
    }

    /// Returns the energy in millijoules since the driver was loaded.
    pub fn energy(&self, device: Device) -> Result<u64, GpuError> {
        self.get("nvmlDeviceGetTotalEnergyConsumption", self.functions.energy, device)
    }

    fn get<T: Default>(
        &self,
        call: &'static str,
        get: NvmlGetFn<T>,
        device: Device,
    ) -> Result<T, GpuError> {
        let mut value = T::default();
        // SAFETY: the device came from the library, the out pointer is valid.
        check(&self.functions, call, unsafe { get(device, &mut value) })?;
        Ok(value)
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        // SAFETY: undoes the one initialisation of `start`; handles are not used after.
        let _ = unsafe { (self.functions.shutdown)() };
    }
}

fn check(functions: &Functions, call: &'static str, result: NvmlReturn) -> Result<(), GpuError> {
    if result == SUCCESS {
        return Ok(());
    }
    // SAFETY: may be called at any time; the text is static, or null.
    let text = unsafe { (functions.error_text)(result) };
    let reason = match text.is_null() {
        true => format!("NVML error {result}"),
        // SAFETY: as above.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    };
    Err(GpuError::Call(call, reason))
}

impl Functions {
    fn find(library: &SharedLibrary) -> Result<Self, GpuError> {
        // SAFETY: each has the type the reference gives the function of that name.
        unsafe {
            Ok(Self {
                init: library.function("nvmlInit_v2")?,
                shutdown: library.function("nvmlShutdown")?,
                error_text: library.function("nvmlErrorString")?,
                by_pci_bus_id: library.function("nvmlDeviceGetHandleByPciBusId_v2")?,
                uuid: library.function("nvmlDeviceGetUUID")?,
                utilization: library.function("nvmlDeviceGetUtilizationRates")?,
                memory: library.function("nvmlDeviceGetMemoryInfo")?,
                memory_v2: library.function("nvmlDeviceGetMemoryInfo_v2").ok(),
                power_usage: library.function("nvmlDeviceGetPowerUsage")?,
                power_limit: library.function("nvmlDeviceGetPowerManagementLimit")?,
                energy: library.function("nvmlDeviceGetTotalEnergyConsumption")?,
            })
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
