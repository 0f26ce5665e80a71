//! The core, which reads and compiles models. Each model has its own, with its properties and extensions.

use std::{ffi::CStr, path::Path, ptr, sync::Arc};

use galatea_native_library::Owned;
use galatea_types::Result;

use super::{
    compiled::CompiledModel,
    functions::Core as RawCore,
    library::{Library, c_path, c_text, owned},
    model::Model,
};

/// The only device that models run on.
const DEVICE: &CStr = c"CPU";

/// Reads and compiles models. A property applies to all later compilations.
pub(crate) struct Core {
    pub library: Arc<Library>,
    core: Owned<RawCore>,
}

impl Core {
    pub fn new(library: &Arc<Library>) -> Result<Self> {
        let mut core = ptr::null_mut();
        // SAFETY: the place is valid.
        library.check(unsafe { (library.functions.create_core)(&mut core) })?;
        // SAFETY: made just now; models hold on to what they need of it.
        let core = unsafe { owned(core, library.functions.free_core) }?;
        Ok(Self { library: library.clone(), core })
    }

    /// Loads a library: runs its initialisers, and adds its operations.
    pub fn add_extension(&self, path: &Path) -> Result<()> {
        let path = c_path(path)?;
        let add = self.library.functions.add_extension;
        // SAFETY: the core is alive, the path terminated; the user chose this library to be run.
        self.library.check(unsafe { add(self.core.as_ptr(), path.as_ptr()) })
    }

    pub fn set_property(&self, key: &str, value: &str) -> Result<()> {
        let (key, value) = (c_text(key)?, c_text(value)?);
        let set = self.library.functions.set_property;
        // SAFETY: the core is alive; behind the device's name stand one key and its value, terminated texts.
        let status =
            unsafe { set(self.core.as_ptr(), DEVICE.as_ptr(), key.as_ptr(), value.as_ptr()) };
        self.library.check(status)
    }

    /// Returns a property of the device.
    pub fn property(&self, key: &str) -> Result<String> {
        let key = c_text(key)?;
        let mut value = ptr::null_mut();
        let get = self.library.functions.core_property;
        // SAFETY: the core is alive, both texts are terminated, the place is valid.
        let status = unsafe { get(self.core.as_ptr(), DEVICE.as_ptr(), key.as_ptr(), &mut value) };
        self.library.check(status)?;
        self.library.take_text(value)
    }

    /// Reads a model. A separate file with the weights lies beside the model's.
    pub fn read_model(&self, path: &Path) -> Result<Model> {
        let path = c_path(path)?;
        let mut model = ptr::null_mut();
        // SAFETY: the core is alive, the path terminated, the place valid; no file of weights is named.
        let read = || unsafe {
            let read = self.library.functions.read_model;
            read(self.core.as_ptr(), path.as_ptr(), ptr::null(), &mut model)
        };
        let status = self.library.faults.run_once(read)?;
        self.library.check(status)?;
        // SAFETY: returned just now, to nobody else.
        unsafe { Model::adopt(&self.library, model) }
    }

    pub fn compile(&self, model: &Model) -> Result<CompiledModel> {
        let mut compiled = ptr::null_mut();
        // SAFETY: core and model are alive, the place is valid, and no properties follow.
        let compile = || unsafe {
            let compile = self.library.functions.compile_model;
            compile(self.core.as_ptr(), model.as_ptr(), DEVICE.as_ptr(), 0, &mut compiled)
        };
        let status = self.library.faults.run_once(compile)?;
        self.library.check(status)?;
        // SAFETY: returned just now, to nobody else.
        unsafe { CompiledModel::adopt(&self.library, compiled) }
    }
}
