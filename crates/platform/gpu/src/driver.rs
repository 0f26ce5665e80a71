//! The CUDA driver (`libcuda.so.1`), which lists the GPUs.
//!
//! Types and numbers are those of the CUDA driver API reference (`cuda.h`).

use std::{
    ffi::{CStr, c_char, c_int, c_uint},
    ptr,
};

use crate::{error::GpuError, shared_library::SharedLibrary};

/// A GPU that programs may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// CUDA's number for it, which configurations use.
    pub index: u32,
    /// Name, e.g. `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// Bus id, e.g. `0000:3b:00.0`. It is the same for every library, unlike numbers.
    pub pci_bus_id: String,
    /// Major and minor number of the CUDA compute capability.
    pub compute_capability: (u32, u32),
}

impl Gpu {
    /// Returns true if its compute capability is at least `minimum`, e.g. 6.0.
    pub fn has_capability(&self, minimum: f64) -> bool {
        let (major, minor) = self.compute_capability;
        // A capability looks like a decimal number but is none: 7.5 must reach 7.5 in spite of rounding.
        f64::from(major) + f64::from(minor) / 10.0 > minimum - 0.01
    }
}

pub(crate) type CuResult = c_int;
pub(crate) type CuDevice = c_int;

pub(crate) const SUCCESS: CuResult = 0;
const NO_DEVICE: CuResult = 100;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
/// Bytes of a text. The driver cuts off longer names, and always writes a zero behind them.
const TEXT_LENGTH: usize = 256;

#[derive(Clone, Copy)]
pub(crate) struct Functions {
    init: unsafe extern "C" fn(c_uint) -> CuResult,
    error_text: unsafe extern "C" fn(CuResult, *mut *const c_char) -> CuResult,
    count: unsafe extern "C" fn(*mut c_int) -> CuResult,
    device: unsafe extern "C" fn(*mut CuDevice, c_int) -> CuResult,
    name: unsafe extern "C" fn(*mut c_char, c_int, CuDevice) -> CuResult,
    pci_bus_id: unsafe extern "C" fn(*mut c_char, c_int, CuDevice) -> CuResult,
    attribute: unsafe extern "C" fn(*mut c_int, c_int, CuDevice) -> CuResult,
}

/// The functions of the driver that list the GPUs and explain errors.
pub(crate) struct Driver {
    functions: Functions,
}

impl Driver {
    /// Opens the driver's library, with which callers may find further functions.
    pub fn open_library() -> Result<SharedLibrary, GpuError> {
        // SAFETY: NVIDIA's driver is installed by the owner of the machine to be used by programs.
        unsafe { SharedLibrary::open("libcuda.so.1") }
    }

    pub fn of(library: &SharedLibrary) -> Result<Self, GpuError> {
        Ok(Self { functions: Functions::find(library)? })
    }

    /// Returns every GPU that the driver shows to this process.
    pub fn gpus(&self) -> Result<Vec<Gpu>, GpuError> {
        (0..self.count()?).map(|index| self.gpu(index)).collect()
    }

    /// Starts the driver, and returns the number of GPUs that it shows to this process.
    pub fn count(&self) -> Result<u32, GpuError> {
        // SAFETY: the first call, and one that may be repeated.
        match unsafe { (self.functions.init)(0) } {
            NO_DEVICE => return Ok(0),
            result => self.check("cuInit", result)?,
        }
        let mut count = 0;
        // SAFETY: the out pointer is valid.
        self.check("cuDeviceGetCount", unsafe { (self.functions.count)(&mut count) })?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// Returns the driver's handle of the GPU with this number.
    pub fn device(&self, index: u32) -> Result<CuDevice, GpuError> {
        let mut device = 0;
        let ordinal = c_int::try_from(index).unwrap_or(c_int::MAX);
        // SAFETY: the out pointer is valid; a wrong ordinal is an error.
        let result = unsafe { (self.functions.device)(&mut device, ordinal) };
        self.check("cuDeviceGet", result)?;
        Ok(device)
    }

    fn gpu(&self, index: u32) -> Result<Gpu, GpuError> {
        let device = self.device(index)?;
        let capability = |attribute| self.attribute(device, attribute);
        Ok(Gpu {
            index,
            name: self.text("cuDeviceGetName", self.functions.name, device)?,
            pci_bus_id: self.text("cuDeviceGetPCIBusId", self.functions.pci_bus_id, device)?,
            compute_capability: (capability(CAPABILITY_MAJOR)?, capability(CAPABILITY_MINOR)?),
        })
    }

    fn attribute(&self, device: CuDevice, attribute: c_int) -> Result<u32, GpuError> {
        let mut value = 0;
        // SAFETY: the out pointer is valid; `device` came from the driver.
        let result = unsafe { (self.functions.attribute)(&mut value, attribute, device) };
        self.check("cuDeviceGetAttribute", result)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    fn text(
        &self,
        call: &'static str,
        get: unsafe extern "C" fn(*mut c_char, c_int, CuDevice) -> CuResult,
        device: CuDevice,
    ) -> Result<String, GpuError> {
        let mut text: [c_char; TEXT_LENGTH] = [0; TEXT_LENGTH];
        // SAFETY: the buffer is one byte longer than the length passed.
        self.check(call, unsafe { get(text.as_mut_ptr(), TEXT_LENGTH as c_int - 1, device) })?;
        // SAFETY: the last byte is zero whatever the driver wrote.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// Makes an error of what a call returned, unless that is success.
    pub fn check(&self, call: &'static str, result: CuResult) -> Result<(), GpuError> {
        if result == SUCCESS {
            return Ok(());
        }
        let mut text = ptr::null();
        // SAFETY: the out pointer is valid; the text it gets is static, or stays null.
        let known = unsafe { (self.functions.error_text)(result, &mut text) } == SUCCESS;
        let reason = match known && !text.is_null() {
            // SAFETY: as above.
            true => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
            false => format!("CUDA error {result}"),
        };
        Err(GpuError::Call(call, reason))
    }
}

impl Functions {
    fn find(library: &SharedLibrary) -> Result<Self, GpuError> {
        // SAFETY: each has the type the reference gives the function of that name.
        unsafe {
            Ok(Self {
                init: library.function("cuInit")?,
                error_text: library.function("cuGetErrorString")?,
                count: library.function("cuDeviceGetCount")?,
                device: library.function("cuDeviceGet")?,
                name: library.function("cuDeviceGetName")?,
                pci_bus_id: library.function("cuDeviceGetPCIBusId")?,
                attribute: library.function("cuDeviceGetAttribute")?,
            })
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    unsafe extern "C" fn init(_: c_uint) -> CuResult {
        SUCCESS
    }
    unsafe extern "C" fn init_without_device(_: c_uint) -> CuResult {
        NO_DEVICE
    }
    unsafe extern "C" fn init_of_a_broken_driver(_: c_uint) -> CuResult {
        803
    }
    unsafe extern "C" fn init_with_an_unknown_result(_: c_uint) -> CuResult {
        4242
    }
    unsafe extern "C" fn error_text(result: CuResult, text: *mut *const c_char) -> CuResult {
        if result == 4242 {
            return 1;
        }
        // SAFETY: the caller's out pointer.
        unsafe { *text = c"driver and library do not match".as_ptr() };
        SUCCESS
    }
    unsafe extern "C" fn count(count: *mut c_int) -> CuResult {
        // SAFETY: the caller's out pointer.
        unsafe { *count = 2 };
        SUCCESS
    }
    unsafe extern "C" fn device(device: *mut CuDevice, ordinal: c_int) -> CuResult {
        // SAFETY: the caller's out pointer.
        unsafe { *device = ordinal + 10 };
        SUCCESS
    }
    /// Fills all the room it is given, without a zero.
    unsafe extern "C" fn name(text: *mut c_char, length: c_int, _: CuDevice) -> CuResult {
        // SAFETY: the caller's room.
        unsafe { ptr::write_bytes(text, b'x', length as usize) };
        SUCCESS
    }
    unsafe extern "C" fn pci_bus_id(
        text: *mut c_char,
        length: c_int,
        device: CuDevice,
    ) -> CuResult {
        let id = format!("0000:{device:02x}:00.0\0");
        assert!(id.len() <= length as usize);
        // SAFETY: the caller's room is long enough.
        unsafe { ptr::copy_nonoverlapping(id.as_ptr().cast(), text, id.len()) };
        SUCCESS
    }
    unsafe extern "C" fn attribute(value: *mut c_int, which: c_int, device: CuDevice) -> CuResult {
        let found = match (which, device) {
            (CAPABILITY_MAJOR, 10) => 9,
            (CAPABILITY_MAJOR, _) => 5,
            _ => 2,
        };
        // SAFETY: the caller's out pointer.
        unsafe { *value = found };
        SUCCESS
    }

    const FAKE: Functions =
        Functions { init, error_text, count, device, name, pci_bus_id, attribute };

    impl Driver {
        /// Makes a driver of two GPUs, the second of them old.
        pub(crate) fn fake() -> Self {
            Self { functions: FAKE }
        }

        /// Makes a driver that finds no GPU.
        pub(crate) fn fake_without_gpus() -> Self {
            Self { functions: Functions { init: init_without_device, ..FAKE } }
        }
    }

    #[test]
    fn compute_capabilities_are_compared_exactly() {
        let gpu = |compute_capability| Gpu {
            index: 0,
            name: String::new(),
            pci_bus_id: String::new(),
            compute_capability,
        };
        assert!(gpu((6, 0)).has_capability(6.0) && gpu((7, 5)).has_capability(7.5));
        assert!(gpu((9, 0)).has_capability(0.0) && gpu((12, 1)).has_capability(9.0));
        assert!(!gpu((5, 2)).has_capability(6.0) && !gpu((6, 0)).has_capability(6.1));
    }

    #[test]
    fn gpus_have_name_bus_id_and_capability() {
        let gpus = Driver::fake().gpus().expect("two");
        assert_eq!(gpus.len(), 2);
        assert_eq!(gpus[0].name, "x".repeat(TEXT_LENGTH - 1));
        assert_eq!((gpus[0].index, gpus[0].compute_capability), (0, (9, 2)));
        assert_eq!(
            (gpus[1].pci_bus_id.as_str(), gpus[1].compute_capability),
            ("0000:0b:00.0", (5, 2))
        );
    }

    #[test]
    fn a_missing_device_is_no_error_but_a_broken_driver_is() {
        let of = |init| Driver { functions: Functions { init, ..FAKE } }.gpus();
        assert_eq!(of(init_without_device).expect("no error"), []);
        let error = of(init_of_a_broken_driver).expect_err("an error");
        assert_eq!(error.to_string(), "cuInit failed: driver and library do not match");
        assert!(!error.is_missing_library());
        let error = of(init_with_an_unknown_result).expect_err("an error");
        assert_eq!(error.to_string(), "cuInit failed: CUDA error 4242");
    }
}
