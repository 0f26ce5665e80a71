//! The functions that libraries of backends are offered, beside those of [`OBJECTS`](galatea_triton_c::objects::OBJECTS).

use galatea_triton_c::Offer;

use crate::{
    attributes, backend_object as backend, call_parts as part, call_request as call,
    call_response as answer, input, instance_object as instance, memory, model_object as model,
    request, response, server, state, statistics, trace,
};

/// The functions of the engine. [`OBJECTS`](galatea_triton_c::objects::OBJECTS) has the others.
pub static BACKEND: Offer = Offer { name: "libgalatea-triton-backend.so", functions: FUNCTIONS };

galatea_triton_c::functions_offered! {
    static FUNCTIONS;
    done {
        "TRITONBACKEND_ApiVersion" = backend::version;
        "TRITONBACKEND_BackendName" = backend::backend_name;
        "TRITONBACKEND_BackendConfig" = backend::backend_config;
        "TRITONBACKEND_BackendArtifacts" = backend::backend_artifacts;
        "TRITONBACKEND_BackendMemoryManager" = backend::backend_memory_manager;
        "TRITONBACKEND_BackendState" = backend::backend_state;
        "TRITONBACKEND_BackendSetState" = backend::backend_set_state;
        "TRITONBACKEND_BackendExecutionPolicy" = backend::backend_execution_policy;
        "TRITONBACKEND_BackendSetExecutionPolicy" = backend::backend_set_execution_policy;
        "TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup" = attributes::add_preferred_group;
        "TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading" = attributes::set_parallel_loading;
        "TRITONBACKEND_MemoryManagerAllocate" = memory::allocate;
        "TRITONBACKEND_MemoryManagerFree" = memory::free;
        "TRITONBACKEND_ModelName" = model::model_name;
        "TRITONBACKEND_ModelVersion" = model::model_version;
        "TRITONBACKEND_ModelRepository" = model::model_repository;
        "TRITONBACKEND_ModelConfig" = model::model_config;
        "TRITONBACKEND_ModelAutoCompleteConfig" = model::model_auto_complete;
        "TRITONBACKEND_ModelSetConfig" = model::model_set_config;
        "TRITONBACKEND_ModelServer" = model::model_server;
        "TRITONBACKEND_ModelBackend" = model::model_backend;
        "TRITONBACKEND_ModelState" = model::model_state;
        "TRITONBACKEND_ModelSetState" = model::model_set_state;
        "TRITONBACKEND_ModelReportMemoryUsage" = model::model_report_memory_usage;
        "TRITONBACKEND_ModelInstanceName" = instance::instance_name;
        "TRITONBACKEND_ModelInstanceKind" = instance::instance_kind;
        "TRITONBACKEND_ModelInstanceDeviceId" = instance::instance_device_id;
        "TRITONBACKEND_ModelInstanceHostPolicy" = instance::instance_host_policy;
        "TRITONBACKEND_ModelInstanceIsPassive" = instance::instance_is_passive;
        "TRITONBACKEND_ModelInstanceProfileCount" = instance::instance_profile_count;
        "TRITONBACKEND_ModelInstanceProfileName" = instance::instance_profile_name;
        "TRITONBACKEND_ModelInstanceSecondaryDeviceCount" = instance::instance_secondary_device_count;
        "TRITONBACKEND_ModelInstanceSecondaryDeviceProperties" = instance::instance_secondary_device;
        "TRITONBACKEND_ModelInstanceModel" = instance::instance_model;
        "TRITONBACKEND_ModelInstanceState" = instance::instance_state;
        "TRITONBACKEND_ModelInstanceSetState" = instance::instance_set_state;
        "TRITONBACKEND_ModelInstanceReportMemoryUsage" = instance::instance_report_memory_usage;
        "TRITONBACKEND_ModelInstanceReportStatistics" = statistics::report_statistics;
        "TRITONBACKEND_ModelInstanceReportBatchStatistics" = statistics::report_batch_statistics;
        "TRITONBACKEND_ModelInstanceReportResponseStatistics" = statistics::report_response_statistics;
        "TRITONBACKEND_ModelInstanceResponseStatisticsNew" = statistics::response_statistics_new;
        "TRITONBACKEND_ModelInstanceResponseStatisticsDelete" = statistics::response_statistics_delete;
        "TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance" = statistics::set_instance;
        "TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory" = statistics::set_factory;
        "TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart" = statistics::set_start;
        "TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart" = statistics::set_output_start;
        "TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd" = statistics::set_end;
        "TRITONBACKEND_ModelInstanceResponseStatisticsSetError" = statistics::set_error;
        "TRITONBACKEND_RequestId" = request::request_id;
        "TRITONBACKEND_RequestCorrelationId" = request::request_correlation_id;
        "TRITONBACKEND_RequestCorrelationIdString" = request::request_correlation_id_string;
        "TRITONBACKEND_RequestFlags" = request::request_flags;
        "TRITONBACKEND_InferenceRequestTimeoutMicroseconds" = request::request_timeout;
        "TRITONBACKEND_RequestIsCancelled" = request::request_is_cancelled;
        "TRITONBACKEND_RequestTrace" = request::request_trace;
        "TRITONBACKEND_RequestParameterCount" = request::request_parameter_count;
        "TRITONBACKEND_RequestParameter" = request::request_parameter;
        "TRITONBACKEND_RequestInputCount" = request::request_input_count;
        "TRITONBACKEND_RequestInputName" = request::request_input_name;
        "TRITONBACKEND_RequestInput" = request::request_input;
        "TRITONBACKEND_RequestInputByIndex" = request::request_input_by_index;
        "TRITONBACKEND_RequestOutputCount" = request::request_output_count;
        "TRITONBACKEND_RequestOutputName" = request::request_output_name;
        "TRITONBACKEND_RequestOutputBufferProperties" = request::request_output_buffer_properties;
        "TRITONBACKEND_RequestRelease" = request::request_release;
        "TRITONBACKEND_InputProperties" = input::input_properties;
        "TRITONBACKEND_InputPropertiesForHostPolicy" = input::input_properties_for_host_policy;
        "TRITONBACKEND_InputBuffer" = input::input_buffer;
        "TRITONBACKEND_InputBufferForHostPolicy" = input::input_buffer_for_host_policy;
        "TRITONBACKEND_InputBufferAttributes" = input::input_buffer_attributes;
        "TRITONBACKEND_OutputBuffer" = response::output_buffer;
        "TRITONBACKEND_OutputBufferAttributes" = response::output_buffer_attributes;
        "TRITONBACKEND_ResponseNew" = response::response_new;
        "TRITONBACKEND_ResponseNewFromFactory" = response::response_new_from_factory;
        "TRITONBACKEND_ResponseDelete" = response::response_delete;
        "TRITONBACKEND_ResponseOutput" = response::response_output;
        "TRITONBACKEND_ResponseSetStringParameter" = response::set_string_parameter;
        "TRITONBACKEND_ResponseSetIntParameter" = response::set_int_parameter;
        "TRITONBACKEND_ResponseSetBoolParameter" = response::set_bool_parameter;
        "TRITONBACKEND_ResponseSetDoubleParameter" = response::set_double_parameter;
        "TRITONBACKEND_ResponseSend" = response::response_send;
        "TRITONBACKEND_InferenceResponseOutput" = response::response_output_by_index;
        "TRITONBACKEND_InferenceResponseOutputByName" = response::response_output_by_name;
        "TRITONBACKEND_ResponseFactoryNew" = response::factory_new;
        "TRITONBACKEND_ResponseFactoryDelete" = response::factory_delete;
        "TRITONBACKEND_ResponseFactorySendFlags" = response::factory_send_flags;
        "TRITONBACKEND_ResponseFactoryIsCancelled" = response::factory_is_cancelled;
        "TRITONBACKEND_StateNew" = state::state_new;
        "TRITONBACKEND_StateBuffer" = state::state_buffer;
        "TRITONBACKEND_StateBufferAttributes" = state::state_buffer_attributes;
        "TRITONBACKEND_StateUpdate" = state::state_update;
        "TRITONSERVER_ServerIsLive" = server::server_is_live;
        "TRITONSERVER_ServerModelIsReady" = server::server_model_is_ready;
        "TRITONSERVER_ServerModelTransactionProperties" = server::server_model_transaction_properties;
        "TRITONSERVER_ServerLoadModel" = server::server_load_model;
        "TRITONSERVER_ServerLoadModelWithParameters" = server::server_load_model_with_parameters;
        "TRITONSERVER_ServerUnloadModel" = server::server_unload_model;
        "TRITONSERVER_ServerUnloadModelAndDependents" = server::server_unload_model_and_dependents;
        "TRITONSERVER_ServerInferAsync" = call::server_infer_async;
        "TRITONSERVER_InferenceRequestNew" = call::request_new;
        "TRITONSERVER_InferenceRequestDelete" = call::request_delete;
        "TRITONSERVER_InferenceRequestId" = call::request_id;
        "TRITONSERVER_InferenceRequestSetId" = call::set_id;
        "TRITONSERVER_InferenceRequestFlags" = call::request_flags;
        "TRITONSERVER_InferenceRequestSetFlags" = call::set_flags;
        "TRITONSERVER_InferenceRequestCorrelationId" = call::correlation_id;
        "TRITONSERVER_InferenceRequestCorrelationIdString" = call::correlation_id_string;
        "TRITONSERVER_InferenceRequestTimeoutMicroseconds" = call::timeout;
        "TRITONSERVER_InferenceRequestSetCorrelationId" = call::set_correlation_id;
        "TRITONSERVER_InferenceRequestSetCorrelationIdString" = call::set_correlation_id_string;
        "TRITONSERVER_InferenceRequestSetPriority" = call::set_priority;
        "TRITONSERVER_InferenceRequestSetPriorityUInt64" = call::set_priority_u64;
        "TRITONSERVER_InferenceRequestSetTimeoutMicroseconds" = call::set_timeout;
        "TRITONSERVER_InferenceRequestCancel" = call::cancel;
        "TRITONSERVER_InferenceRequestIsCancelled" = call::is_cancelled;
        "TRITONSERVER_InferenceRequestSetReleaseCallback" = call::set_release_callback;
        "TRITONSERVER_InferenceRequestSetResponseCallback" = call::set_response_callback;
        "TRITONSERVER_InferenceRequestAddInput" = part::add_input;
        "TRITONSERVER_InferenceRequestRemoveInput" = part::remove_input;
        "TRITONSERVER_InferenceRequestRemoveAllInputs" = part::remove_all_inputs;
        "TRITONSERVER_InferenceRequestAppendInputData" = part::append_input_data;
        "TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy" = part::append_input_data_with_host_policy;
        "TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes" = part::append_input_data_with_attributes;
        "TRITONSERVER_InferenceRequestRemoveAllInputData" = part::remove_all_input_data;
        "TRITONSERVER_InferenceRequestAddRequestedOutput" = part::add_requested_output;
        "TRITONSERVER_InferenceRequestRemoveRequestedOutput" = part::remove_requested_output;
        "TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs" = part::remove_all_requested_outputs;
        "TRITONSERVER_InferenceRequestSetStringParameter" = part::set_string_parameter;
        "TRITONSERVER_InferenceRequestSetIntParameter" = part::set_int_parameter;
        "TRITONSERVER_InferenceRequestSetBoolParameter" = part::set_bool_parameter;
        "TRITONSERVER_InferenceRequestSetDoubleParameter" = part::set_double_parameter;
        "TRITONSERVER_InferenceResponseDelete" = answer::response_delete;
        "TRITONSERVER_InferenceResponseError" = answer::response_error;
        "TRITONSERVER_InferenceResponseModel" = answer::response_model;
        "TRITONSERVER_InferenceResponseId" = answer::response_id;
        "TRITONSERVER_InferenceResponseParameterCount" = answer::response_parameter_count;
        "TRITONSERVER_InferenceResponseParameter" = answer::response_parameter;
        "TRITONSERVER_InferenceResponseOutputCount" = answer::response_output_count;
        "TRITONSERVER_InferenceResponseOutput" = answer::response_output;
        "TRITONSERVER_InferenceTraceLevelString" = trace::level_string;
        "TRITONSERVER_InferenceTraceActivityString" = trace::activity_string;
    }
    unsupported {
        "TRITONSERVER_InferenceRequestAddRawInput"
        "TRITONSERVER_InferenceRequestPriority"
        "TRITONSERVER_InferenceRequestPriorityUInt64"
        "TRITONSERVER_InferenceResponseOutputClassificationLabel"
        "TRITONSERVER_InferenceTraceNew"
        "TRITONSERVER_InferenceTraceTensorNew"
        "TRITONSERVER_InferenceTraceDelete"
        "TRITONSERVER_InferenceTraceId"
        "TRITONSERVER_InferenceTraceParentId"
        "TRITONSERVER_InferenceTraceModelName"
        "TRITONSERVER_InferenceTraceModelVersion"
        "TRITONSERVER_InferenceTraceRequestId"
        "TRITONSERVER_InferenceTraceReportActivity"
        "TRITONSERVER_InferenceTraceSpawnChildTrace"
        "TRITONSERVER_InferenceTraceSetContext"
        "TRITONSERVER_InferenceTraceContext"
        "TRITONSERVER_MetricsDelete"
        "TRITONSERVER_MetricsFormatted"
        "TRITONSERVER_ServerNew"
        "TRITONSERVER_ServerDelete"
        "TRITONSERVER_ServerStop"
        "TRITONSERVER_ServerIsReady"
        "TRITONSERVER_ServerMetadata"
        "TRITONSERVER_ServerMetrics"
        "TRITONSERVER_ServerModelBatchProperties"
        "TRITONSERVER_ServerModelConfig"
        "TRITONSERVER_ServerModelIndex"
        "TRITONSERVER_ServerModelMetadata"
        "TRITONSERVER_ServerModelStatistics"
        "TRITONSERVER_ServerPollModelRepository"
        "TRITONSERVER_ServerRegisterModelRepository"
        "TRITONSERVER_ServerUnregisterModelRepository"
        "TRITONSERVER_ServerSetExitTimeout"
    }
}
