//! The calls of the inference service that only have names and flags, on top of the engine.

use std::sync::Arc;

use galatea_frontend::{Action, Caller};
use galatea_proto::inference as pb;
use galatea_protocol::{self as protocol, grpc::Pieces, parse_model_version};
use galatea_types::Error;
use tonic::Status;

use crate::{
    log_settings, message::decode, repository, response_body::MessageBody, shared_memory,
    state::ServerState, status::status_of, trace_settings,
};

/// A call of the inference service with a short message: any except inference and loads.
pub(crate) struct ShortCall {
    pub state: Arc<ServerState>,
    pub caller: Caller,
}

type Reply<T> = Result<T, Status>;

fn reply<T>(result: Result<T, Error>) -> Reply<T> {
    result.map_err(|e| status_of(&e))
}

impl ShortCall {
    pub async fn answer(&self, method: &str, message: Pieces) -> Reply<MessageBody> {
        let most = self.state.options.max_response_size;
        match method {
            "ServerLive" => MessageBody::of(&self.server_live(decode(message)?), most),
            "ServerReady" => MessageBody::of(&self.server_ready(decode(message)?), most),
            "ModelReady" => MessageBody::of(&self.model_ready(decode(message)?).await?, most),
            "ServerMetadata" => MessageBody::of(&self.server_metadata(decode(message)?), most),
            "ModelMetadata" => MessageBody::of(&self.model_metadata(decode(message)?)?, most),
            "ModelConfig" => MessageBody::of(&self.model_config(decode(message)?)?, most),
            "ModelStatistics" => MessageBody::of(&self.statistics(decode(message)?).await?, most),
            "RepositoryIndex" => MessageBody::of(&self.index(decode(message)?).await?, most),
            "RepositoryModelUnload" => {
                let request = decode(message)?;
                reply(repository::unload(&self.state.engine, request, &self.caller).await)?;
                Ok(MessageBody::empty())
            }
            "LogSettings" => {
                let settings = reply(log_settings::change(&decode(message)?))?;
                MessageBody::of(&settings, most)
            }
            "TraceSetting" => MessageBody::of(&self.trace_settings(&decode(message)?)?, most),
            method => shared_memory::answer(&self.state.engine, method, message, most).await,
        }
    }

    /// Checks the permission of the client for `action`, once the message names the model.
    fn check(&self, action: &Action<'_>) -> Result<(), Status> {
        reply(self.caller.check(action).map_err(Error::from))
    }

    fn server_live(&self, _: pb::ServerLiveRequest) -> pb::ServerLiveResponse {
        pb::ServerLiveResponse { live: self.state.engine.is_live() }
    }

    fn server_ready(&self, _: pb::ServerReadyRequest) -> pb::ServerReadyResponse {
        pb::ServerReadyResponse { ready: self.state.engine.is_ready() }
    }

    async fn model_ready(&self, request: pb::ModelReadyRequest) -> Reply<pb::ModelReadyResponse> {
        self.check(&Action::ModelReady(&request.name))?;
        let ready = match parse_model_version(&request.version) {
            Ok(version) => {
                let control = self.state.engine.control();
                control.is_model_ready(&request.name, version).await
            }
            Err(error) => Err(error),
        };
        reply(ready.map(|ready| pb::ModelReadyResponse { ready }))
    }

    fn server_metadata(&self, _: pb::ServerMetadataRequest) -> pb::ServerMetadataResponse {
        let engine = &self.state.engine;
        protocol::server_metadata(
            &engine.options().server_id,
            engine.version(),
            engine.extensions(),
        )
    }

    fn model_metadata(
        &self,
        request: pb::ModelMetadataRequest,
    ) -> Reply<pb::ModelMetadataResponse> {
        self.check(&Action::Read(&request.name))?;
        let found = parse_model_version(&request.version)
            .and_then(|version| Ok((self.state.engine.model(&request.name, version)?, version)));
        // A requested version is the only one shown.
        reply(found.map(|(model, version)| match version {
            Some(version) => protocol::model_metadata(model.config(), &[version]),
            None => protocol::model_metadata(model.config(), &model.ready_versions()),
        }))
    }

    fn trace_settings(&self, request: &pb::TraceSettingRequest) -> Reply<pb::TraceSettingResponse> {
        if !request.model_name.is_empty() {
            reply(
                self.state
                    .engine
                    .model(&request.model_name, None)
                    .map(drop)
                    .map_err(|_| galatea_trace::unknown_model(&request.model_name)),
            )?;
        }
        reply(trace_settings::change(self.state.options.requests.tracer(), request))
    }

    fn model_config(&self, request: pb::ModelConfigRequest) -> Reply<pb::ModelConfigResponse> {
        self.check(&Action::Read(&request.name))?;
        let model = parse_model_version(&request.version)
            .and_then(|version| self.state.engine.model(&request.name, version));
        let config = model.map(|model| Some(model.current_config().raw().clone()));
        reply(config.map(|config| pb::ModelConfigResponse { config }))
    }

    async fn statistics(
        &self,
        request: pb::ModelStatisticsRequest,
    ) -> Reply<pb::ModelStatisticsResponse> {
        if !request.name.is_empty() {
            self.check(&Action::Read(&request.name))?;
        }
        let (engine, caller) = (self.state.engine.clone(), self.caller.clone());
        let list = move || {
            let name = (!request.name.is_empty()).then_some(request.name.as_str());
            let version = parse_model_version(&request.version)?;
            let entries = engine.statistics(name, name.and(version))?.into_iter();
            let shown = entries.filter(|entry| caller.may_read(&entry.name));
            let stats = shown.map(|e| protocol::model_statistics(e.name, e.version, &e.statistics));
            Ok(pb::ModelStatisticsResponse { model_stats: stats.collect() })
        };
        reply(self.state.engine.control().query(list).await.flatten())
    }

    async fn index(
        &self,
        request: pb::RepositoryIndexRequest,
    ) -> Reply<pb::RepositoryIndexResponse> {
        let (engine, caller) = (self.state.engine.clone(), self.caller.clone());
        let list = move || {
            repository::refuse_repository_name(&request.repository_name)?;
            let entries = engine.repository_index(request.ready)?.into_iter();
            let shown = entries.filter(|entry| caller.may_read(&entry.name));
            let rows = shown.map(|e| protocol::index_row(e.name, e.version, e.state, e.reason));
            Ok(pb::RepositoryIndexResponse { models: rows.collect() })
        };
        reply(self.state.engine.control().query(list).await.flatten())
    }
}
