//! Objects of the C interface that need no engine, with the functions for them.

pub mod allocators;
pub mod buffer_attributes;
mod error_functions;
pub mod errors;
mod log_lines;
pub mod messages;
mod metric_args;
pub mod metrics;
mod names;
pub mod parameters;

use crate::Offer;

/// The functions for these objects. Every library needs them.
pub static OBJECTS: Offer = Offer { name: "libgalatea-triton-objects.so", functions: FUNCTIONS };

crate::functions_offered! {
    static FUNCTIONS;
    done {
        "TRITONSERVER_ApiVersion" = names::server_version;
        "TRITONSERVER_DataTypeString" = names::data_type_string;
        "TRITONSERVER_StringToDataType" = names::string_to_data_type;
        "TRITONSERVER_DataTypeByteSize" = names::data_type_byte_size;
        "TRITONSERVER_MemoryTypeString" = names::memory_type_string;
        "TRITONSERVER_ParameterTypeString" = names::parameter_type_string;
        "TRITONSERVER_InstanceGroupKindString" = names::instance_group_kind_string;
        "TRITONSERVER_LogIsEnabled" = log_lines::is_enabled;
        "TRITONSERVER_LogMessage" = log_lines::log_message;
        "TRITONSERVER_ErrorNew" = error_functions::error_new;
        "TRITONSERVER_ErrorDelete" = error_functions::error_delete;
        "TRITONSERVER_ErrorCode" = error_functions::error_code;
        "TRITONSERVER_ErrorCodeString" = error_functions::error_code_string;
        "TRITONSERVER_ErrorMessage" = error_functions::error_message;
        "TRITONSERVER_MessageNewFromSerializedJson" = messages::message_new;
        "TRITONSERVER_MessageDelete" = messages::message_delete;
        "TRITONSERVER_MessageSerializeToJson" = messages::message_to_json;
        "TRITONSERVER_ParameterNew" = parameters::parameter_new;
        "TRITONSERVER_ParameterBytesNew" = parameters::parameter_bytes_new;
        "TRITONSERVER_ParameterDelete" = parameters::parameter_delete;
        "TRITONSERVER_BufferAttributesNew" = buffer_attributes::attributes_new;
        "TRITONSERVER_BufferAttributesDelete" = buffer_attributes::attributes_delete;
        "TRITONSERVER_BufferAttributesSetMemoryTypeId" = buffer_attributes::set_memory_type_id;
        "TRITONSERVER_BufferAttributesSetMemoryType" = buffer_attributes::set_memory_type;
        "TRITONSERVER_BufferAttributesSetCudaIpcHandle" = buffer_attributes::set_cuda_ipc_handle;
        "TRITONSERVER_BufferAttributesSetByteSize" = buffer_attributes::set_byte_size;
        "TRITONSERVER_BufferAttributesMemoryTypeId" = buffer_attributes::memory_type_id;
        "TRITONSERVER_BufferAttributesMemoryType" = buffer_attributes::memory_type;
        "TRITONSERVER_BufferAttributesCudaIpcHandle" = buffer_attributes::cuda_ipc_handle;
        "TRITONSERVER_BufferAttributesByteSize" = buffer_attributes::byte_size;
        "TRITONSERVER_ResponseAllocatorNew" = allocators::allocator_new;
        "TRITONSERVER_ResponseAllocatorDelete" = allocators::allocator_delete;
        "TRITONSERVER_ResponseAllocatorSetQueryFunction" = allocators::set_query_function;
        "TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction" = allocators::set_attributes_function;
        "TRITONSERVER_MetricFamilyNew" = metrics::family_new;
        "TRITONSERVER_MetricFamilyDelete" = metrics::family_delete;
        "TRITONSERVER_GetMetricFamilyKind" = metrics::family_kind;
        "TRITONSERVER_MetricNew" = metrics::metric_new;
        "TRITONSERVER_MetricNewWithArgs" = metrics::metric_new_with_args;
        "TRITONSERVER_MetricDelete" = metrics::metric_delete;
        "TRITONSERVER_MetricValue" = metrics::metric_value;
        "TRITONSERVER_MetricIncrement" = metrics::metric_increment;
        "TRITONSERVER_MetricSet" = metrics::metric_set;
        "TRITONSERVER_MetricObserve" = metrics::metric_observe;
        "TRITONSERVER_GetMetricKind" = metrics::metric_kind;
        "TRITONSERVER_MetricArgsNew" = metric_args::args_new;
        "TRITONSERVER_MetricArgsDelete" = metric_args::args_delete;
        "TRITONSERVER_MetricArgsSetHistogram" = metric_args::set_histogram;
    }
    unsupported {}
}
