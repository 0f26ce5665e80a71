//! Options for the model to measure, and general ones.

use galatea_command_line::{Kind, set};
use galatea_perf_types::settings::Verbosity;

use super::{
    super::{error::OptionError, reading::unsupported, setting},
    row::{Row, ignored, switch, value},
};

pub const ROWS: &[Row] = &[
    value("", "model", "Name of the model to load. Required.", |given, v| v.put(&mut given.settings.model_name))
    .short('m'),
    value("", "version", "Version of the model. Without it the server chooses.", |given, v| v.put(&mut given.settings.model_version))
    .short('x'),
    value(
        "bls-composing-models",
        "model[:version],...",
        "Models which the one under load calls by itself (BLS): their share of the time is reported \
         like that of an ensemble's steps.",
        set!(|given, models| given.settings.bls_composing_models.extend(setting::composing_models(models)?)),
    ),
    value(
        "service-kind",
        "kind",
        "Only triton, which is any KServe v2 server. perf_analyzer's other kinds are refused.",
        |_, kind| match kind.text.as_str() {
            "triton" => Ok(()),
            "triton_c_api" | "tfserving" | "torchserve" | "openai" | "dynamic_grpc" => Err(OptionError::Rule(format!(
                "--service-kind {} is not supported: the one kind is 'triton', any KServe v2 server \
                 over HTTP or gRPC",
                kind.text
            ))),
            _ => Err(unsupported(kind, "The available option is 'triton'.")),
        },
    ),
    ignored(
        "model-signature-name",
        "name",
        "Accepted without effect: it is for the service kind tfserving.",
    ),
    ignored("endpoint", "path", "Accepted without effect: it is for the service kind openai."),
    value(
        "grpc-method",
        "package.service/method",
        "Accepted without effect: it is for the service kind dynamic_grpc.",
        |_, method| {
            if setting::is_grpc_method(&method.text) {
                return Ok(());
            }
            Err(OptionError::Rule(format!(
                "Received gRPC method name '{}' that does not match the format: \
                 <package>.<service>/<method>.",
                method.text
            )))
        },
    ),
    ignored(
        "triton-server-directory",
        "path",
        "Accepted without effect: it is for the service kind triton_c_api.",
    ),
    ignored(
        "model-repository",
        "path",
        "Accepted without effect: it is for the service kind triton_c_api.",
    ),
    Row::new("enable-mpi", Kind::Switch, "Refused: several tools started by MPI do not wait for each other here.").refused("runs are not coordinated over MPI"),
    switch(
        "",
        "Report every window as it ends, and split up the client's time. Given twice: in more detail.",
        set!(|given, _| given.settings.verbosity = match given.settings.verbosity {
            Verbosity::Quiet => Verbosity::Verbose,
            Verbosity::Verbose | Verbosity::Extra => Verbosity::Extra,
        }),
    )
    .short('v'),
    Row::version("Print the version."),
];
