//! gRPC calls other than inference.

use bytes::Bytes;
use galatea_proto::inference::{
    InferBatchStatistics, ModelConfig, ModelConfigRequest, ModelConfigResponse,
    ModelMetadataRequest, ModelMetadataResponse, ModelRepositoryParameter,
    ModelStatistics as StatisticsMessage, ModelStatisticsRequest, ModelStatisticsResponse,
    RepositoryIndexRequest, RepositoryIndexResponse, RepositoryModelLoadRequest,
    RepositoryModelLoadResponse, RepositoryModelUnloadRequest, RepositoryModelUnloadResponse,
    ServerMetadataRequest, ServerMetadataResponse, ServerReadyRequest, ServerReadyResponse,
    StatisticDuration, SystemSharedMemoryRegisterRequest, SystemSharedMemoryRegisterResponse,
    SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse, TraceSettingRequest,
    TraceSettingResponse, model_config::SchedulingChoice, model_input::Format,
    model_metadata_response::TensorMetadata as TensorMessage,
    model_repository_parameter::ParameterChoice, repository_index_response::ModelIndex,
    trace_setting_request::SettingValue,
};
use galatea_types::{DataType, Result};
use prost::Message;

use super::{GrpcCaller, metadata, unary::framed};
use crate::{
    BatchStatistics, CountAndTime, ModelConfigFacts, ModelIndexEntry, ModelMetadata,
    ModelStatistics, ServerMetadata, TensorMetadata, facts::unknown_data_type,
    response_error::ResponseError,
};

pub(crate) struct GrpcAdmin {
    caller: GrpcCaller,
}

impl GrpcAdmin {
    pub fn new(caller: GrpcCaller) -> Self {
        Self { caller }
    }

    pub async fn server_metadata(&mut self) -> Result<ServerMetadata> {
        let request = ServerMetadataRequest {};
        let ServerMetadataResponse { name, version, extensions, implementation } =
            self.call("ServerMetadata", &request).await?;
        Ok(ServerMetadata { name, version, extensions, implementation })
    }

    pub async fn is_ready(&mut self) -> Result<bool> {
        let ServerReadyResponse { ready } =
            self.call("ServerReady", &ServerReadyRequest {}).await?;
        Ok(ready)
    }

    pub async fn load_model(&mut self, model: &str, config: Option<&str>) -> Result<()> {
        let text = |config: &str| ParameterChoice::StringParam(config.to_owned());
        let config = config.map(|config| ("config".to_owned(), parameter(text(config))));
        let request = RepositoryModelLoadRequest {
            model_name: model.into(),
            parameters: config.into_iter().collect(),
            ..Default::default()
        };
        let answer = self.call("RepositoryModelLoad", &request).await;
        answer.map(|_: RepositoryModelLoadResponse| ())
    }

    pub async fn unload_model(&mut self, model: &str, dependents: bool) -> Result<()> {
        let dependents = parameter(ParameterChoice::BoolParam(dependents));
        let request = RepositoryModelUnloadRequest {
            model_name: model.into(),
            parameters: [("unload_dependents".to_owned(), dependents)].into(),
            ..Default::default()
        };
        let answer = self.call("RepositoryModelUnload", &request).await;
        answer.map(|_: RepositoryModelUnloadResponse| ())
    }

    pub async fn model_metadata(&mut self, model: &str, version: &str) -> Result<ModelMetadata> {
        let request = ModelMetadataRequest { name: model.into(), version: version.into() };
        let ModelMetadataResponse { name, versions, platform, inputs, outputs } =
            self.call("ModelMetadata", &request).await?;
        let tensors = |tensors: Vec<TensorMessage>| {
            tensors.into_iter().map(|tensor| tensor_metadata(&name, tensor)).collect::<Result<_>>()
        };
        let (inputs, outputs) = (tensors(inputs)?, tensors(outputs)?);
        Ok(ModelMetadata { name, versions, platform, inputs, outputs })
    }

    pub async fn model_config(&mut self, model: &str, version: &str) -> Result<ModelConfigFacts> {
        let request = ModelConfigRequest { name: model.into(), version: version.into() };
        let response: ModelConfigResponse = self.call("ModelConfig", &request).await?;
        Ok(model_config(response.config.unwrap_or_default()))
    }

    pub async fn statistics(&mut self, model: &str, version: &str) -> Result<Vec<ModelStatistics>> {
        let request = ModelStatisticsRequest { name: model.into(), version: version.into() };
        let response: ModelStatisticsResponse = self.call("ModelStatistics", &request).await?;
        Ok(response.model_stats.into_iter().map(model_statistics).collect())
    }

    pub async fn repository_index(&mut self) -> Result<Vec<ModelIndexEntry>> {
        let request = RepositoryIndexRequest::default();
        let response: RepositoryIndexResponse = self.call("RepositoryIndex", &request).await?;
        let entries = response.models.into_iter().map(|model| {
            let ModelIndex { name, version, state, reason } = model;
            ModelIndexEntry { name, version, state, reason }
        });
        Ok(entries.collect())
    }

    pub async fn set_trace(&mut self, model: &str, fields: &[(String, Vec<String>)]) -> Result<()> {
        let setting = |value: &Vec<String>| SettingValue { value: value.clone() };
        let request = TraceSettingRequest {
            settings: fields.iter().map(|(name, value)| (name.clone(), setting(value))).collect(),
            model_name: model.into(),
        };
        self.call("TraceSetting", &request).await.map(|_: TraceSettingResponse| ())
    }

    pub async fn register_system_region(
        &mut self,
        name: &str,
        key: &str,
        byte_size: usize,
    ) -> Result<()> {
        let request = SystemSharedMemoryRegisterRequest {
            name: name.into(),
            key: key.into(),
            offset: 0,
            byte_size: byte_size as u64,
        };
        let answer = self.call("SystemSharedMemoryRegister", &request).await;
        answer.map(|_: SystemSharedMemoryRegisterResponse| ())
    }

    pub async fn unregister_system_region(&mut self, name: &str) -> Result<()> {
        let request = SystemSharedMemoryUnregisterRequest { name: name.into() };
        let answer = self.call("SystemSharedMemoryUnregister", &request).await;
        answer.map(|_: SystemSharedMemoryUnregisterResponse| ())
    }

    async fn call<T: Message + Default>(
        &mut self,
        method: &'static str,
        request: &impl Message,
    ) -> Result<T> {
        let head = metadata::head(&self.caller.channel.route.target, method)?;
        let message: Bytes = self.caller.exchange(head, framed(request)?).await?;
        Ok(T::decode(message).map_err(ResponseError::Decode)?)
    }
}

fn parameter(choice: ParameterChoice) -> ModelRepositoryParameter {
    ModelRepositoryParameter { parameter_choice: Some(choice) }
}

fn tensor_metadata(model: &str, tensor: TensorMessage) -> Result<TensorMetadata> {
    let TensorMessage { name, datatype, shape } = tensor;
    let data_type = DataType::from_protocol_name(&datatype)
        .ok_or_else(|| unknown_data_type(model, &name, &datatype))?;
    Ok(TensorMetadata { name, data_type, shape })
}

fn model_config(config: ModelConfig) -> ModelConfigFacts {
    let flagged = |flag: fn(&galatea_proto::inference::ModelInput) -> bool| {
        let inputs = config.input.iter().filter(|input| flag(input));
        inputs.map(|input| input.name.clone()).collect()
    };
    let steps = match &config.scheduling_choice {
        Some(SchedulingChoice::EnsembleScheduling(ensemble)) => ensemble.step.as_slice(),
        _ => &[],
    };
    ModelConfigFacts {
        max_batch_size: config.max_batch_size.try_into().unwrap_or_default(),
        dynamic_batching: matches!(
            config.scheduling_choice,
            Some(SchedulingChoice::DynamicBatching(_))
        ),
        sequence_batching: matches!(
            config.scheduling_choice,
            Some(SchedulingChoice::SequenceBatching(_))
        ),
        decoupled: config.model_transaction_policy.as_ref().is_some_and(|policy| policy.decoupled),
        response_cache: config.response_cache.as_ref().is_some_and(|cache| cache.enable),
        ensemble_steps: steps
            .iter()
            .map(|step| (step.model_name.clone(), step.model_version))
            .collect(),
        shape_tensors: flagged(|input| input.is_shape_tensor),
        optional_inputs: flagged(|input| input.optional),
        image_formats: config
            .input
            .iter()
            .filter(|input| input.format() != Format::None)
            .map(|input| (input.name.clone(), input.format().as_str_name().to_owned()))
            .collect(),
        name: config.name,
    }
}

fn model_statistics(message: StatisticsMessage) -> ModelStatistics {
    let stats = message.inference_stats.unwrap_or_default();
    ModelStatistics {
        name: message.name,
        version: message.version,
        inference_count: message.inference_count,
        execution_count: message.execution_count,
        success: time(stats.success),
        fail: time(stats.fail),
        queue: time(stats.queue),
        compute_input: time(stats.compute_input),
        compute_infer: time(stats.compute_infer),
        compute_output: time(stats.compute_output),
        cache_hit: time(stats.cache_hit),
        cache_miss: time(stats.cache_miss),
        batches: message.batch_stats.into_iter().map(batch_statistics).collect(),
    }
}

fn batch_statistics(message: InferBatchStatistics) -> BatchStatistics {
    BatchStatistics {
        batch_size: message.batch_size,
        compute_input: time(message.compute_input),
        compute_infer: time(message.compute_infer),
        compute_output: time(message.compute_output),
    }
}

fn time(duration: Option<StatisticDuration>) -> CountAndTime {
    duration.map(|StatisticDuration { count, ns }| CountAndTime { count, ns }).unwrap_or_default()
}
