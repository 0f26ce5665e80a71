//! The opened shim, and the libtorch that it uses.

use std::{
    ffi::{CStr, c_char},
    path::Path,
    ptr,
    sync::{Arc, Mutex},
};

use galatea_division_faults::FaultDomain;
use galatea_native_library::{Handle, open_lazily};
use galatea_types::{Error, LockExt, Result};

use super::{
    interface::{INTERFACE_VERSION, Interface},
    message::readable,
};
use crate::aoti::Runtime;

/// Name of the shim in errors.
const TITLE: &str = "the PyTorch shim";

/// Process-wide switches of libtorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    JitExecutor = 0,
    JitProfiling = 1,
    TensorFuser = 2,
    Cudnn = 3,
}

/// An opened shim with its libtorch. It is never closed: their threads and statics would outlive their code.
pub(crate) struct Library {
    pub(super) interface: Interface,
    /// Version, e.g. `2.15.0`.
    pub version: String,
    /// Number of GPUs this libtorch can use.
    pub cuda_devices: u32,
    /// Functions for packages, or the name of the first function that this libtorch lacks.
    stable: Result<Runtime, &'static str>,
    /// True for each thread count that was set. The first model that specifies one sets it.
    chosen_threads: Mutex<(bool, bool)>,
    /// Faults of all runs: libtorch computes large operations on threads that all modules share.
    pub faults: Arc<FaultDomain>,
}

impl Library {
    /// Opens the shim at `path`. `cuda` is libtorch's part for GPUs if it has one. It is opened too if the machine has a
    /// driver: nothing else would open it, and libtorch asks for it only once. The stable functions for packages come from
    /// `stable`, or from libtorch.
    pub fn open(path: &Path, cuda: Option<&Path>, stable: Option<&Path>) -> Result<Arc<Self>> {
        galatea_division_faults::install();
        // Opened lazily: a libtorch built for CUDA has functions that are looked up only when a GPU is used.
        let handle = open_lazily(path, TITLE)?;
        check_interface(&handle, path)?;
        // SAFETY: the number of the interface guarantees that the functions have these types; the handle is kept below.
        let interface =
            unsafe { Interface::find(&handle) }.map_err(|symbol| missing(symbol, path))?;
        // SAFETY: a terminated text of static life.
        let version =
            unsafe { CStr::from_ptr((interface.version)()) }.to_string_lossy().into_owned();
        let stable = stable.map(|path| open_lazily(path, TITLE)).transpose()?;
        // SAFETY: names of libtorch's, looked for in it (the shim needs it) or in what stands for it; kept below.
        let stable_functions =
            unsafe { Runtime::find(stable.as_ref().unwrap_or(&handle), &version) };
        std::mem::forget((handle, stable));
        if let Some(cuda) = cuda.filter(|_| has_cuda_driver()) {
            match open_lazily(cuda, TITLE) {
                Ok(handle) => std::mem::forget(handle),
                Err(error) => log::warn!("PyTorch runs without GPUs: {error}"),
            }
        }
        // SAFETY: takes nothing, catches its exceptions.
        let cuda_devices = unsafe { (interface.cuda_device_count)() };
        Ok(Arc::new(Self {
            interface,
            version,
            cuda_devices: cuda_devices.try_into().unwrap_or(0),
            stable: stable_functions,
            chosen_threads: Mutex::default(),
            faults: FaultDomain::with_unknown_threads(),
        }))
    }

    /// Returns the functions of libtorch for packages.
    ///
    /// # Errors
    /// The function that this libtorch lacks.
    pub fn stable_functions(&self) -> Result<Runtime, String> {
        self.stable.clone().map_err(|lacking| {
            format!(
                "PyTorch {} cannot run AOTInductor packages (it has no function '{lacking}'): a newer one is \
                 needed, `galatea runtime install pytorch --reinstall` fetches one, --libtorch names another",
                self.version
            )
        })
    }

    /// Sets thread counts that were not set before. Returns the process's counts: within and between operations.
    pub fn choose_threads(
        &self,
        intra_op: Option<i32>,
        inter_op: Option<i32>,
    ) -> Result<(i32, i32)> {
        let mut chosen = self.chosen_threads.lock_unpoisoned();
        let intra_op = intra_op.filter(|_| !chosen.0);
        let inter_op = inter_op.filter(|_| !chosen.1);
        *chosen = (chosen.0 || intra_op.is_some(), chosen.1 || inter_op.is_some());
        let mut error = ptr::null_mut();
        // SAFETY: plain numbers, and a valid place for an error, which `check` takes over.
        let status = unsafe {
            (self.interface.set_threads)(intra_op.unwrap_or(0), inter_op.unwrap_or(0), &mut error)
        };
        self.check(status, error).map_err(Error::internal)?;
        // SAFETY: takes nothing.
        Ok(unsafe { ((self.interface.intra_op_threads)(), (self.interface.inter_op_threads)()) })
    }

    /// Sets a switch for every model. The last model that specifies it wins.
    pub fn set(&self, setting: Setting, is_on: bool) {
        // SAFETY: plain numbers; libtorch's switches are atomic or read once a run.
        unsafe { (self.interface.set)(setting as i32, i32::from(is_on)) };
    }

    /// Gives unused memory of the GPUs back.
    pub fn empty_cache(&self) {
        if self.cuda_devices > 0 {
            // SAFETY: takes nothing, catches its exceptions.
            unsafe { (self.interface.empty_cache)() };
        }
    }

    /// Turns a status into a result; the text is freed.
    pub(super) fn check(&self, status: i32, error: *mut c_char) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        if error.is_null() {
            return Err("libtorch failed without saying why".to_owned());
        }
        // SAFETY: on failure the shim leaves a terminated text, which is ours to free, once.
        let text = unsafe {
            let text = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.interface.free_text)(error);
            text
        };
        log::debug!("libtorch: {text}");
        Err(readable(&text))
    }
}

fn missing(symbol: &str, path: &Path) -> Error {
    Error::internal(format!(
        "'{}' is not a PyTorch shim: symbol '{symbol}' is missing",
        path.display()
    ))
}

fn check_interface(handle: &Handle, path: &Path) -> Result<()> {
    let symbol = "galatea_torch_interface_version";
    // SAFETY: the one function whose type is the same in every interface.
    let interface = unsafe { handle.get::<unsafe extern "C" fn() -> i32>(symbol) }
        .map_err(|_| missing(symbol, path))?;
    // SAFETY: as above.
    let found = unsafe { interface() };
    if found == INTERFACE_VERSION {
        return Ok(());
    }
    Err(Error::internal(format!(
        "{TITLE} '{}' was made for another version of this program (interface {found}, {INTERFACE_VERSION} is needed): \
         run `galatea runtime install pytorch`",
        path.display()
    )))
}

fn has_cuda_driver() -> bool {
    // The driver stays open: libtorch opens it soon.
    open_lazily(Path::new("libcuda.so.1"), "the driver").map(std::mem::forget).is_ok()
}
