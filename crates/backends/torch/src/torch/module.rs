//! A loaded TorchScript module.

use std::{
    ffi::{CStr, CString},
    path::Path,
    ptr,
    sync::{Arc, Mutex},
};

use galatea_division_faults::DivisionFault;
use galatea_native_library::Owned;
use galatea_types::LockExt;

use super::{
    answer::{Output, RunResult},
    input::Input,
    interface::{self, RawModule},
    library::Library,
};

/// The place of a module's weights and inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ModuleDevice {
    Cpu,
    Gpu(u32),
    /// The place at which the model was saved.
    AsSaved,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSettings {
    /// True for inference mode, false for a run that only omits gradients.
    pub inference_mode: bool,
    pub optimization: bool,
}

/// The form in which `forward` takes its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForwardForm {
    Positional,
    Dictionary,
}

/// The kind of value that an argument of `forward` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentKind {
    Tensor,
    Strings,
    Dictionary,
    Other,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Argument {
    pub name: String,
    /// TorchScript's name of its type.
    pub type_name: String,
    pub takes: ArgumentKind,
    pub has_default: bool,
}

pub(crate) struct Module {
    library: Arc<Library>,
    module: Owned<RawModule>,
    pub arguments: Vec<Argument>,
    switches: i32,
    /// Held during a run of a module that writes to its state.
    alone: Option<Mutex<()>>,
}

// SAFETY: runs of a module that writes nothing are independent of each other, those of one that does take turns;
// loading, running and freeing may happen on any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// # Errors
    /// The error of libtorch, made readable.
    pub fn load(
        library: &Arc<Library>,
        path: &Path,
        place: ModuleDevice,
        switches: RunSettings,
    ) -> Result<Self, String> {
        let text = path.as_os_str().as_encoded_bytes();
        let text = CString::new(text).map_err(|_| "the path holds a zero byte".to_owned())?;
        let device = match place {
            ModuleDevice::Cpu => interface::ON_CPU,
            ModuleDevice::AsSaved => interface::AS_SAVED,
            ModuleDevice::Gpu(index) => {
                index.try_into().map_err(|_| format!("there is no device {index}"))?
            }
        };
        let switches = numbered(switches);
        let (mut module, mut error) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the path is terminated, the places for results are valid.
        let load = || unsafe {
            (library.interface.load)(text.as_ptr(), device, switches, &mut module, &mut error)
        };
        let status = library.faults.run_once(load);
        // SAFETY: made by `load`, and nothing else has it; answers do not need it.
        let module = unsafe { Owned::new(module, library.interface.free_module) };
        library.check(status.map_err(|fault| fault.to_string())?, error)?;
        let module = module.ok_or("libtorch returned no module")?;
        // SAFETY: the module is alive.
        let writes = unsafe { (library.interface.module_writes)(module.as_ptr()) } != 0;
        Ok(Self {
            library: library.clone(),
            arguments: arguments(library, &module),
            module,
            switches,
            alone: writes.then(Mutex::default),
        })
    }

    /// Returns true if it may write to its inputs or its state. Each instance then has its own module.
    pub fn writes(&self) -> bool {
        self.alone.is_some()
    }

    /// Calls `forward`. The result has one output per tensor or list of texts, or is libtorch's error.
    ///
    /// # Errors
    /// If an integer division had no result. A module that writes to its state is not run again to see if another run caused
    /// the fault.
    pub fn run(
        &self,
        mut inputs: Vec<Input>,
        form: ForwardForm,
    ) -> Result<Result<Vec<Output>, String>, DivisionFault> {
        let _turn = self.alone.as_ref().map(|lock| lock.lock_unpoisoned());
        let faults = &self.library.faults;
        match self.writes() {
            true => faults.run_once(|| self.forward(&mut inputs, form)),
            false => faults.run(|| self.forward(&mut inputs, form)),
        }
    }

    fn forward(&self, inputs: &mut [Input], form: ForwardForm) -> Result<Vec<Output>, String> {
        let form = match form {
            ForwardForm::Positional => interface::POSITIONAL,
            ForwardForm::Dictionary => interface::DICTIONARY,
        };
        let lent: Vec<_> = inputs.iter_mut().map(Input::lend).collect();
        let (mut answer, mut error) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: names, shapes and texts live in `inputs` for the call; the data was given away with what frees
        // it. A module that writes has the data to itself (see `Input::new`) and runs once at a time.
        let status = unsafe {
            (self.library.interface.run)(
                self.module.as_ptr(),
                lent.as_ptr(),
                lent.len(),
                form,
                self.switches,
                &mut answer,
                &mut error,
            )
        };
        self.library.check(status, error)?;
        // SAFETY: a successful run gives its answer to the caller alone.
        let answer = unsafe { RunResult::adopt(self.library.clone(), answer) };
        Ok(answer.ok_or("libtorch returned no answer")?.outputs())
    }
}

fn numbered(switches: RunSettings) -> i32 {
    let inference = if switches.inference_mode { interface::INFERENCE_MODE } else { 0 };
    let optimization = if switches.optimization { 0 } else { interface::NO_OPTIMIZATION };
    inference | optimization
}

fn arguments(library: &Library, module: &Owned<RawModule>) -> Vec<Argument> {
    let interface = &library.interface;
    let module = module.as_ptr();
    // SAFETY: the module is alive, the indices are in range, and the texts live as long as it.
    unsafe {
        let text = |text| CStr::from_ptr(text).to_string_lossy().into_owned();
        (0..(interface.argument_count)(module))
            .map(|index| Argument {
                name: text((interface.argument_name)(module, index)),
                type_name: text((interface.argument_type)(module, index)),
                takes: match (interface.argument_takes)(module, index) {
                    interface::TAKES_TENSOR => ArgumentKind::Tensor,
                    interface::TAKES_STRINGS => ArgumentKind::Strings,
                    interface::TAKES_DICTIONARY => ArgumentKind::Dictionary,
                    _ => ArgumentKind::Other,
                },
                has_default: (interface.argument_has_default)(module, index) != 0,
            })
            .collect()
    }
}
