//! Options for the model to measure, and general ones.

use galatea_command_line::{Kind, options, set};
use galatea_perf_types::settings::Verbosity;

use super::{
    super::{error::OptionError, readers::unsupported, setting},
    row::{Row, ignored, switch, value},
};

pub const ROWS: &[Row] = options! {
    /// Name of the model to load. Required.
    "" => value("model", |given, v| v.put(&mut given.settings.model_name)).short('m'),
    /// Version of the model. Without it the server chooses.
    "" => value("version", |given, v| v.put(&mut given.settings.model_version)).short('x'),
    /// Models which the one under load calls by itself (BLS): their share of the time is reported like that of an
    /// ensemble's steps.
    "bls-composing-models" => value("model[:version],...",
        set!(|given, models| given.settings.bls_composing_models.extend(setting::composing_models(models)?))),
    /// Only triton, which is any KServe v2 server. perf_analyzer's other kinds are refused.
    "service-kind" => value("kind", |_, kind| match kind.text.as_str() {
        "triton" => Ok(()),
        "triton_c_api" | "tfserving" | "torchserve" | "openai" | "dynamic_grpc" => Err(OptionError::Rule(format!(
            "--service-kind {} is not supported: the one kind is 'triton', any KServe v2 server \
             over HTTP or gRPC",
            kind.text
        ))),
        _ => Err(unsupported(kind, "The available option is 'triton'.")),
    }),
    /// Accepted without effect: it is for the service kind tfserving.
    "model-signature-name" => ignored("name"),
    /// Accepted without effect: it is for the service kind openai.
    "endpoint" => ignored("path"),
    /// Accepted without effect: it is for the service kind dynamic_grpc.
    "grpc-method" => value("package.service/method", |_, method| {
        if setting::is_grpc_method(&method.text) {
            return Ok(());
        }
        Err(OptionError::Rule(format!(
            "Received gRPC method name '{}' that does not match the format: \
             <package>.<service>/<method>.",
            method.text
        )))
    }),
    /// Accepted without effect: it is for the service kind triton_c_api.
    "triton-server-directory" => ignored("path"),
    /// Accepted without effect: it is for the service kind triton_c_api.
    "model-repository" => ignored("path"),
    /// Refused: several tools started by MPI do not wait for each other here.
    "enable-mpi" => Row::of(Kind::Switch).refused("runs are not coordinated over MPI"),
    /// Report every window as it ends, and split up the client's time. Given twice: in more detail.
    "" => switch(set!(|given, _| given.settings.verbosity = match given.settings.verbosity {
        Verbosity::Quiet => Verbosity::Verbose,
        Verbosity::Verbose | Verbosity::Extra => Verbosity::Extra,
    })).short('v'),
    /// Print the version.
    "version" => Row::version(""),
};
