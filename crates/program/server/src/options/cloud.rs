//! The front ends of cloud platforms, from flags and the platform's environment.

use galatea_command_line::{BadValue, ValueError};
use galatea_http::{CloudFrontEnd, CloudInference, PathPattern, SageMakerModels};
use galatea_serve::{CloudOptions, Endpoint, Place, PortPlace};
use galatea_types::Environment;

use super::endpoint::is_unix;
use crate::flags::{FlagError, ServeFlags};

/// Port of either platform, unless another is named.
const DEFAULT_PORT: u16 = 8080;
/// Start of Triton's message about a front end that it cannot start.
const NOT_STARTED: &str = "failed to start Vertex AI service: Invalid argument - ";
/// The folder into which SageMaker unpacks models in its many-model mode.
const SAGEMAKER_MODELS: &str = "/opt/ml/models";
/// A name that no model has, the same as in Triton.
const NO_MODEL: &str = "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME";

/// Applies Vertex AI's defaults for missing flags: it has one port, and its own place for the models.
pub(super) fn complete(flags: &mut ServeFlags, environment: &Environment) {
    let is_allowed = !is_vertex_ai(environment);
    for endpoint in [&mut flags.http, &mut flags.grpc] {
        endpoint.is_allowed.get_or_insert(is_allowed);
    }
    if flags.serve.repositories.is_empty() && flags.serve.paths.is_empty() {
        flags.serve.repositories.extend(environment.path("AIP_STORAGE_URI"));
    }
}

fn is_vertex_ai(environment: &Environment) -> bool {
    environment.text("AIP_MODE").as_deref() == Some("PREDICTION")
}

/// Returns the platforms that are served.
pub(super) fn platforms(
    flags: &ServeFlags,
    environment: &Environment,
) -> Result<Vec<CloudOptions>, FlagError> {
    let mut platforms = Vec::new();
    if flags.allows_sagemaker {
        let endpoint = endpoint("SageMaker", flags, flags.sagemaker_port)?;
        platforms.push(CloudOptions { endpoint, platform: sagemaker(environment)? });
    }
    if flags.allows_vertex_ai.unwrap_or_else(|| is_vertex_ai(environment)) {
        let port = match flags.vertex_ai_port {
            Some(port) => port,
            None => port_of(environment)?,
        };
        let platform = vertex_ai(flags, environment)?;
        platforms.push(CloudOptions { endpoint: endpoint("Vertex AI", flags, port)?, platform });
    }
    Ok(platforms)
}

fn endpoint(service: &'static str, flags: &ServeFlags, port: u16) -> Result<Endpoint, FlagError> {
    let address = flags.http.address.clone();
    if is_unix(&address) {
        return Err(FlagError::Rule(format!(
            "Error: {service} requests come to a port at the address of HTTP, which --http-address={address} makes a Unix \
             socket."
        )));
    }
    let place = Place::Port(PortPlace { address, port, is_shared: false });
    Ok(Endpoint { service, place })
}

fn sagemaker(environment: &Environment) -> Result<CloudFrontEnd, FlagError> {
    let inference = match environment.text("SAGEMAKER_TRITON_INFERENCE_TYPE").as_deref() {
        None | Some("infer") => CloudInference::Infer,
        Some("generate") => CloudInference::Generate,
        Some("generate_stream") => CloudInference::GenerateStream,
        Some(other) => {
            return Err(FlagError::Rule(format!(
                "SAGEMAKER_TRITON_INFERENCE_TYPE is '{other}'. Must be one of: infer, generate, generate_stream."
            )));
        }
    };
    let model = environment.text("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME");
    Ok(CloudFrontEnd::SageMaker {
        pings_liveness: environment.text("SAGEMAKER_TRITON_PING_MODE").as_deref() == Some("live"),
        model: model.unwrap_or_else(|| NO_MODEL.to_owned()),
        inference,
        models: SageMakerModels::below(SAGEMAKER_MODELS),
    })
}

fn vertex_ai(flags: &ServeFlags, environment: &Environment) -> Result<CloudFrontEnd, FlagError> {
    let refused = |text: String| FlagError::Rule(format!("{NOT_STARTED}{text}"));
    let route = |variable: &str, named: &str| {
        let route = environment.text(variable);
        let route = route
            .ok_or_else(|| refused(format!("{named} is not defined for Vertex AI endpoint")))?;
        PathPattern::new(&route).map_err(|error| refused(format!("{variable}: {error}")))
    };
    Ok(CloudFrontEnd::VertexAi {
        // Triton misspells this one, and scripts match on it.
        predict_route: route("AIP_PREDICT_ROUTE", "API_PREDICT_ROUTE")?,
        health_route: route("AIP_HEALTH_ROUTE", "AIP_HEALTH_ROUTE")?,
        model: flags.vertex_ai_default_model.clone(),
    })
}

fn port_of(environment: &Environment) -> Result<u16, FlagError> {
    const VARIABLE: &str = "AIP_HTTP_PORT";
    let Some(text) = environment.text(VARIABLE) else { return Ok(DEFAULT_PORT) };
    let not_a_port = |_| {
        let (option, reason) = (VARIABLE.to_owned(), ValueError::NotANumber(text.clone()));
        BadValue { option, reason }.into()
    };
    text.parse().map_err(not_a_port)
}
