//! The inference service of the generated code, on top of the engine.

use std::sync::Arc;

use galatea_frontend::{Action, Caller};
use galatea_proto::inference as pb;
use galatea_proto::inference::grpc_inference_service_server::GrpcInferenceService;
use galatea_protocol::parse_model_version;
use galatea_types::Error;
use tonic::{Request, Response, Status, Streaming, codegen::tokio_stream::Empty};

use crate::{
    log_settings, metadata, repository, state::ServerState, statistics, status::status_of,
};

/// Answers every call of the inference service but those with long messages.
pub(crate) struct InferenceService {
    pub state: Arc<ServerState>,
}

type Reply<T> = Result<Response<T>, Status>;

fn reply<T>(result: Result<T, Error>) -> Reply<T> {
    result.map(Response::new).map_err(|e| status_of(&e))
}

impl InferenceService {
    /// Who sends the call: the dispatcher has put it beside the message.
    fn caller_of<T>(&self, request: &Request<T>) -> Result<Caller, Status> {
        let caller = request.extensions().get().cloned();
        match self.state.options.authentication.is_active() {
            true => caller.ok_or_else(|| Status::internal("the call has lost its sender")),
            false => Ok(caller.unwrap_or_default()),
        }
    }

    /// Whether the client may do that, now that the message says with which model.
    fn check<T>(&self, request: &Request<T>, action: &Action<'_>) -> Result<Caller, Status> {
        let caller = self.caller_of(request)?;
        caller.check(action).map_err(|error| status_of(&error.into()))?;
        Ok(caller)
    }
}

fn not_supported<T>(what: &str) -> Reply<T> {
    Err(Status::unimplemented(format!("{what} is not supported by this server")))
}

#[tonic::async_trait]
impl GrpcInferenceService for InferenceService {
    type ModelStreamInferStream = Empty<Result<pb::ModelStreamInferResponse, Status>>;

    async fn server_live(
        &self,
        _: Request<pb::ServerLiveRequest>,
    ) -> Reply<pb::ServerLiveResponse> {
        reply(Ok(pb::ServerLiveResponse { live: self.state.engine.is_live() }))
    }

    async fn server_ready(
        &self,
        _: Request<pb::ServerReadyRequest>,
    ) -> Reply<pb::ServerReadyResponse> {
        reply(Ok(pb::ServerReadyResponse { ready: self.state.engine.is_ready() }))
    }

    async fn model_ready(
        &self,
        request: Request<pb::ModelReadyRequest>,
    ) -> Reply<pb::ModelReadyResponse> {
        self.check(&request, &Action::ModelReady(&request.get_ref().name))?;
        let request = request.into_inner();
        let ready = match parse_model_version(&request.version) {
            Ok(version) => {
                let control = self.state.engine.control();
                control.is_model_ready(&request.name, version).await
            }
            Err(error) => Err(error),
        };
        reply(ready.map(|ready| pb::ModelReadyResponse { ready }))
    }

    async fn server_metadata(
        &self,
        _: Request<pb::ServerMetadataRequest>,
    ) -> Reply<pb::ServerMetadataResponse> {
        reply(Ok(metadata::server_metadata(&self.state.engine)))
    }

    async fn model_metadata(
        &self,
        request: Request<pb::ModelMetadataRequest>,
    ) -> Reply<pb::ModelMetadataResponse> {
        self.check(&request, &Action::Read(&request.get_ref().name))?;
        let request = request.into_inner();
        let found = parse_model_version(&request.version)
            .and_then(|version| Ok((self.state.engine.model(&request.name, version)?, version)));
        reply(found.map(|(model, version)| metadata::model_metadata(&model, version)))
    }

    async fn model_config(
        &self,
        request: Request<pb::ModelConfigRequest>,
    ) -> Reply<pb::ModelConfigResponse> {
        self.check(&request, &Action::Read(&request.get_ref().name))?;
        let request = request.into_inner();
        let model = parse_model_version(&request.version)
            .and_then(|version| self.state.engine.model(&request.name, version));
        reply(
            model.map(|m| pb::ModelConfigResponse {
                config: Some(m.current_config().raw().clone()),
            }),
        )
    }

    /// The dispatcher answers this call itself, without the generated codec.
    async fn model_infer(
        &self,
        _: Request<pb::ModelInferRequest>,
    ) -> Reply<pb::ModelInferResponse> {
        not_supported("ModelInfer by the generated codec")
    }

    /// The same.
    async fn model_stream_infer(
        &self,
        _: Request<Streaming<pb::ModelInferRequest>>,
    ) -> Reply<Self::ModelStreamInferStream> {
        not_supported("ModelStreamInfer by the generated codec")
    }

    async fn model_statistics(
        &self,
        request: Request<pb::ModelStatisticsRequest>,
    ) -> Reply<pb::ModelStatisticsResponse> {
        let caller = self.caller_of(&request)?;
        if !request.get_ref().name.is_empty() {
            self.check(&request, &Action::Read(&request.get_ref().name))?;
        }
        let request = request.into_inner();
        let engine = self.state.engine.clone();
        let list = move || {
            let name = (!request.name.is_empty()).then_some(request.name.as_str());
            let version = parse_model_version(&request.version)?;
            let mut entries = engine.statistics(name, name.and(version))?;
            entries.retain(|entry| caller.may_read(&entry.name));
            let model_stats = entries.into_iter().map(statistics::model_statistics).collect();
            Ok(pb::ModelStatisticsResponse { model_stats })
        };
        reply(self.state.engine.control().query(list).await.flatten())
    }

    async fn repository_index(
        &self,
        request: Request<pb::RepositoryIndexRequest>,
    ) -> Reply<pb::RepositoryIndexResponse> {
        let caller = self.caller_of(&request)?;
        let request = request.into_inner();
        let engine = self.state.engine.clone();
        let list = move || {
            repository::refuse_repository_name(&request.repository_name)?;
            let mut entries = engine.repository_index(request.ready)?;
            entries.retain(|entry| caller.may_read(&entry.name));
            let models = entries.into_iter().map(repository::index_message).collect();
            Ok(pb::RepositoryIndexResponse { models })
        };
        reply(self.state.engine.control().query(list).await.flatten())
    }

    /// The dispatcher answers this call itself: its message may be long.
    async fn repository_model_load(
        &self,
        _: Request<pb::RepositoryModelLoadRequest>,
    ) -> Reply<pb::RepositoryModelLoadResponse> {
        not_supported("RepositoryModelLoad by the generated codec")
    }

    async fn repository_model_unload(
        &self,
        request: Request<pb::RepositoryModelUnloadRequest>,
    ) -> Reply<pb::RepositoryModelUnloadResponse> {
        let caller = self.caller_of(&request)?;
        repository::unload(&self.state.engine, request.into_inner(), &caller).await?;
        Ok(Response::new(Default::default()))
    }

    /// No region can be registered, so there is none to list.
    async fn system_shared_memory_status(
        &self,
        request: Request<pb::SystemSharedMemoryStatusRequest>,
    ) -> Reply<pb::SystemSharedMemoryStatusResponse> {
        reply(no_region("system", &request.into_inner().name))
    }

    async fn system_shared_memory_register(
        &self,
        _: Request<pb::SystemSharedMemoryRegisterRequest>,
    ) -> Reply<pb::SystemSharedMemoryRegisterResponse> {
        not_supported("system shared memory")
    }

    async fn system_shared_memory_unregister(
        &self,
        _: Request<pb::SystemSharedMemoryUnregisterRequest>,
    ) -> Reply<pb::SystemSharedMemoryUnregisterResponse> {
        not_supported("system shared memory")
    }

    async fn cuda_shared_memory_status(
        &self,
        request: Request<pb::CudaSharedMemoryStatusRequest>,
    ) -> Reply<pb::CudaSharedMemoryStatusResponse> {
        reply(no_region("cuda", &request.into_inner().name))
    }

    async fn cuda_shared_memory_register(
        &self,
        _: Request<pb::CudaSharedMemoryRegisterRequest>,
    ) -> Reply<pb::CudaSharedMemoryRegisterResponse> {
        not_supported("CUDA shared memory")
    }

    async fn cuda_shared_memory_unregister(
        &self,
        _: Request<pb::CudaSharedMemoryUnregisterRequest>,
    ) -> Reply<pb::CudaSharedMemoryUnregisterResponse> {
        not_supported("CUDA shared memory")
    }

    async fn trace_setting(
        &self,
        _: Request<pb::TraceSettingRequest>,
    ) -> Reply<pb::TraceSettingResponse> {
        not_supported("tracing")
    }

    async fn log_settings(
        &self,
        request: Request<pb::LogSettingsRequest>,
    ) -> Reply<pb::LogSettingsResponse> {
        reply(log_settings::change(&request.into_inner()))
    }
}

fn no_region<T: Default>(kind: &str, name: &str) -> Result<T, Error> {
    if name.is_empty() {
        return Ok(T::default());
    }
    Err(Error::not_found(format!("Unable to find {kind} shared memory region: '{name}'")))
}
