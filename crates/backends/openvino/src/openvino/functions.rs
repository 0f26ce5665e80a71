//! The functions of the C interface that are used. They are looked up once.

use std::ffi::{CStr, c_char, c_int, c_void};

use galatea_native_library::{functions, objects};

/// The result of a call: 0 for success.
pub(super) type Status = c_int;
pub(super) const OK: Status = 0;

objects!(pub(super) Core Model Port Tensor CompiledModel InferRequest);
objects!(pub(super) PreProcessor InputInfo InputTensorInfo OutputInfo OutputTensorInfo);

/// Version of the library; the texts are its own until they are freed.
#[repr(C)]
pub(super) struct Version {
    pub build_number: *const c_char,
    pub description: *const c_char,
}

/// A shape without open dimensions.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawShape {
    pub rank: i64,
    pub dims: *mut i64,
}

/// The range of a size. An open size reaches from 0 or more to -1.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawDimension {
    pub min: i64,
    pub max: i64,
}

/// A shape that may have open dimensions, or an open number of them.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawPartialShape {
    pub rank: RawDimension,
    pub dims: *mut RawDimension,
}

type Text = *const c_char;

functions! {
    /// One pointer per function of the library, as OpenVINO's C headers declare it.
    pub(super) struct Functions;
    version = "ov_get_openvino_version": fn(*mut Version) -> Status;
    free_version = "ov_version_free": fn(*mut Version);
    status_text = "ov_get_error_info": fn(Status) -> Text;
    last_error = "ov_get_last_err_msg": fn() -> Text;
    free_text = "ov_free": fn(Text);

    create_core = "ov_core_create": fn(*mut *mut Core) -> Status;
    free_core = "ov_core_free": fn(*mut Core);
    add_extension = "ov_core_add_extension": fn(*const Core, Text) -> Status;
    set_property = "ov_core_set_property": fn(*const Core, Text, ...) -> Status;
    core_property = "ov_core_get_property": fn(*const Core, Text, Text, *mut *mut c_char) -> Status;
    read_model = "ov_core_read_model": fn(*const Core, Text, Text, *mut *mut Model) -> Status;
    compile_model = "ov_core_compile_model":
        fn(*const Core, *const Model, Text, usize, *mut *mut CompiledModel, ...) -> Status;

    free_model = "ov_model_free": fn(*mut Model);
    input_count = "ov_model_inputs_size": fn(*const Model, *mut usize) -> Status;
    output_count = "ov_model_outputs_size": fn(*const Model, *mut usize) -> Status;
    input = "ov_model_const_input_by_index": fn(*const Model, usize, *mut *mut Port) -> Status;
    output = "ov_model_const_output_by_index": fn(*const Model, usize, *mut *mut Port) -> Status;
    reshape = "ov_model_reshape_by_port_indexes":
        fn(*const Model, *const usize, *const RawPartialShape, usize) -> Status;

    free_port = "ov_output_const_port_free": fn(*mut Port);
    port_name = "ov_port_get_any_name": fn(*const Port, *mut *mut c_char) -> Status;
    port_shape = "ov_port_get_partial_shape": fn(*const Port, *mut RawPartialShape) -> Status;
    port_type = "ov_port_get_element_type": fn(*const Port, *mut c_int) -> Status;
    free_partial_shape = "ov_partial_shape_free": fn(*mut RawPartialShape);

    free_compiled = "ov_compiled_model_free": fn(*mut CompiledModel);
    compiled_property = "ov_compiled_model_get_property":
        fn(*const CompiledModel, Text, *mut *mut c_char) -> Status;
    create_request = "ov_compiled_model_create_infer_request":
        fn(*const CompiledModel, *mut *mut InferRequest) -> Status;

    free_request = "ov_infer_request_free": fn(*mut InferRequest);
    set_input = "ov_infer_request_set_input_tensor_by_index":
        fn(*mut InferRequest, usize, *const Tensor) -> Status;
    set_output = "ov_infer_request_set_output_tensor_by_index":
        fn(*mut InferRequest, usize, *const Tensor) -> Status;
    get_output = "ov_infer_request_get_output_tensor_by_index":
        fn(*const InferRequest, usize, *mut *mut Tensor) -> Status;
    infer = "ov_infer_request_infer": fn(*mut InferRequest) -> Status;

    free_tensor = "ov_tensor_free": fn(*mut Tensor);
    tensor_over = "ov_tensor_create_from_host_ptr":
        fn(c_int, RawShape, *mut c_void, *mut *mut Tensor) -> Status;
    create_tensor = "ov_tensor_create": fn(c_int, RawShape, *mut *mut Tensor) -> Status;
    tensor_of_texts = "ov_tensor_create_from_string_array":
        fn(*const Text, usize, RawShape, *mut *mut Tensor) -> Status;
    tensor_shape = "ov_tensor_get_shape": fn(*const Tensor, *mut RawShape) -> Status;
    free_shape = "ov_shape_free": fn(*mut RawShape) -> Status;
    tensor_type = "ov_tensor_get_element_type": fn(*const Tensor, *mut c_int) -> Status;
    tensor_byte_size = "ov_tensor_get_byte_size": fn(*const Tensor, *mut usize) -> Status;
    tensor_data = "ov_tensor_data": fn(*const Tensor, *mut *mut c_void) -> Status;

    create_preprocessor = "ov_preprocess_prepostprocessor_create":
        fn(*const Model, *mut *mut PreProcessor) -> Status;
    free_preprocessor = "ov_preprocess_prepostprocessor_free": fn(*mut PreProcessor);
    build_preprocessor = "ov_preprocess_prepostprocessor_build":
        fn(*const PreProcessor, *mut *mut Model) -> Status;
    input_info = "ov_preprocess_prepostprocessor_get_input_info_by_index":
        fn(*const PreProcessor, usize, *mut *mut InputInfo) -> Status;
    free_input_info = "ov_preprocess_input_info_free": fn(*mut InputInfo);
    input_tensor_info = "ov_preprocess_input_info_get_tensor_info":
        fn(*const InputInfo, *mut *mut InputTensorInfo) -> Status;
    free_input_tensor_info = "ov_preprocess_input_tensor_info_free": fn(*mut InputTensorInfo);
    set_input_type = "ov_preprocess_input_tensor_info_set_element_type":
        fn(*mut InputTensorInfo, c_int) -> Status;
    output_info = "ov_preprocess_prepostprocessor_get_output_info_by_index":
        fn(*const PreProcessor, usize, *mut *mut OutputInfo) -> Status;
    free_output_info = "ov_preprocess_output_info_free": fn(*mut OutputInfo);
    output_tensor_info = "ov_preprocess_output_info_get_tensor_info":
        fn(*const OutputInfo, *mut *mut OutputTensorInfo) -> Status;
    free_output_tensor_info = "ov_preprocess_output_tensor_info_free": fn(*mut OutputTensorInfo);
    set_output_type = "ov_preprocess_output_set_element_type":
        fn(*mut OutputTensorInfo, c_int) -> Status;
}

impl Functions {
    /// Returns the text of a failed call: its subject, then its kind.
    pub fn text_of(&self, status: Status) -> String {
        // SAFETY: both take nothing that could be invalid; the first text is the library's own for good, the second
        // one of ours, terminated, and freed once.
        let (kind, message) = unsafe {
            let kind = owned((self.status_text)(status)).unwrap_or_default();
            let last = (self.last_error)();
            let message = owned(last);
            if !last.is_null() {
                (self.free_text)(last);
            }
            (kind, message)
        };
        match message.filter(|text| !text.trim().is_empty()) {
            Some(text) => super::message::readable(&text),
            None => format!("{kind} ({status})"),
        }
    }
}

/// # Safety
/// `text` must be null or terminated.
unsafe fn owned(text: Text) -> Option<String> {
    // SAFETY: as above.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
