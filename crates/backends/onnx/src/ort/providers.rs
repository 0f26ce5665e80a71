//! Execution providers, which compute in place of ONNX Runtime's own code for the CPU.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_char, c_int},
    ptr,
    sync::Arc,
};

use galatea_types::{Error, Result};
use ort_sys::{OrtSessionOptions, OrtStatusPtr};

use super::{
    library::{Library, Owned, Release, non_null, owned},
    options::{SessionOptions, c_string},
    provider_kind::ProviderKind,
};

/// A provider for a session, with options by ONNX Runtime's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Provider {
    pub kind: ProviderKind,
    pub options: BTreeMap<String, String>,
}

impl Library {
    /// Returns the names of the providers this library was built with.
    pub fn providers(&self) -> Result<Vec<String>> {
        let mut names: *mut *mut c_char = ptr::null_mut();
        let mut count: c_int = 0;
        // SAFETY: both out pointers are valid.
        self.check(unsafe { (self.api.GetAvailableProviders)(&mut names, &mut count) })?;
        let names = non_null(names)?;
        let length = usize::try_from(count).unwrap_or(0);
        // SAFETY: the library returned this many terminated texts, which live until released below.
        let copies = unsafe { std::slice::from_raw_parts(names.as_ptr(), length) }
            .iter()
            .map(|&name| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
            .collect();
        // SAFETY: what was returned, released once.
        self.check(unsafe { (self.api.ReleaseAvailableProviders)(names.as_ptr(), count) })?;
        Ok(copies)
    }

    /// Checks that sessions of this library can use the provider on some GPU.
    ///
    /// # Errors
    /// As [`Library::try_with_options`].
    pub fn try_provider(self: &Arc<Self>, kind: ProviderKind) -> Result<()> {
        // With a number it looks for that GPU. Only then a driver that is too old for the library fails.
        let options = BTreeMap::from([("device_id".to_owned(), "0".to_owned())]);
        self.try_with_options(Provider { kind, options })
    }

    /// Checks that sessions of this library can use the provider: the library contains it, its dependencies open, and it
    /// finds its device. It opens all of them.
    ///
    /// # Errors
    /// The reason against it, as a text that follows the library's name.
    pub fn try_with_options(self: &Arc<Self>, provider: Provider) -> Result<()> {
        let name = provider.kind.name();
        if !self.providers()?.iter().any(|known| known == name) {
            return Err(Error::unavailable(format!("was built without {name}")));
        }
        let tried = SessionOptions::new(self)?.provider(&provider);
        tried.map_err(|cause| {
            let reason = cause.message().trim_end();
            Error::unavailable(format!("cannot use {name}: {reason}")).with_source(cause)
        })
    }
}

impl SessionOptions {
    /// Adds a provider; those added first are preferred.
    pub fn provider(&mut self, provider: &Provider) -> Result<()> {
        let api = self.library.api;
        match provider.kind {
            ProviderKind::Cuda => {
                let create = api.CreateCUDAProviderOptions;
                let options = ProviderOptions::new(self, create, api.ReleaseCUDAProviderOptions)?;
                options.update(provider, api.UpdateCUDAProviderOptions)?;
                options.append(api.SessionOptionsAppendExecutionProvider_CUDA_V2)
            }
            ProviderKind::TensorRt => {
                let create = api.CreateTensorRTProviderOptions;
                let release = api.ReleaseTensorRTProviderOptions;
                let options = ProviderOptions::new(self, create, release)?;
                options.update(provider, api.UpdateTensorRTProviderOptions)?;
                options.append(api.SessionOptionsAppendExecutionProvider_TensorRT_V2)
            }
            ProviderKind::OpenVino => self.openvino(provider),
        }
    }

    /// Adds OpenVINO, whose options have no object of their own.
    fn openvino(&mut self, provider: &Provider) -> Result<()> {
        let library = self.library.clone();
        let append = library.api.SessionOptionsAppendExecutionProvider_OpenVINO_V2;
        let options = self.for_provider();
        let status = with_texts(&provider.options, |keys, values, count| {
            // SAFETY: the session's options are borrowed exclusively; the texts live during the call.
            unsafe { append(options, keys, values, count) }
        })?;
        library.check(status)
    }
}

/// Calls `call` with arrays of the keys and values, as terminated texts, and their length.
fn with_texts<T>(
    options: &BTreeMap<String, String>,
    call: impl FnOnce(*const *const c_char, *const *const c_char, usize) -> T,
) -> Result<T> {
    let keys: Vec<CString> = options.keys().map(|key| c_string(key)).collect::<Result<_>>()?;
    let values: Vec<CString> =
        options.values().map(|text| c_string(text)).collect::<Result<_>>()?;
    let (keys, values) = (pointers(&keys), pointers(&values));
    Ok(call(keys.as_ptr(), values.as_ptr(), keys.len()))
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

type Update<T> = unsafe extern "system" fn(
    *mut T,
    *const *const c_char,
    *const *const c_char,
    usize,
) -> OrtStatusPtr;

/// The library's options of one provider, of its type `T`.
struct ProviderOptions<'s, T> {
    session: &'s mut SessionOptions,
    options: Owned<T>,
}

impl<'s, T> ProviderOptions<'s, T> {
    fn new(
        session: &'s mut SessionOptions,
        create: unsafe extern "system" fn(*mut *mut T) -> OrtStatusPtr,
        release: Release<T>,
    ) -> Result<Self> {
        let mut options = ptr::null_mut();
        // SAFETY: the out pointer is valid.
        session.library.check(unsafe { create(&mut options) })?;
        // SAFETY: made just now.
        let options = unsafe { owned(options, release) }?;
        Ok(Self { session, options })
    }

    fn update(&self, provider: &Provider, update: Update<T>) -> Result<()> {
        if provider.options.is_empty() {
            return Ok(());
        }
        let status = with_texts(&provider.options, |keys, values, count| {
            // SAFETY: the options are alive, and the texts live during the call.
            unsafe { update(self.options.as_ptr(), keys, values, count) }
        })?;
        self.session.library.check(status)
    }

    /// Adds the provider. The session's options take a copy.
    fn append(
        self,
        append: unsafe extern "system" fn(*mut OrtSessionOptions, *const T) -> OrtStatusPtr,
    ) -> Result<()> {
        // SAFETY: both are alive, and the session's options are borrowed exclusively.
        let status = unsafe { append(self.session.for_provider(), self.options.as_ptr()) };
        self.session.library.check(status)
    }
}
