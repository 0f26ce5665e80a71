use super::super::{
    setting,
    spec::{Action, Spec, Takes},
};

pub const SPECS: &[Spec] = &[
    Spec::value("", "model", "Name of the model to load. Required.", |given, name| {
        given.model_name.clone_from(&name.text);
        Ok(())
    })
    .short('m'),
    Spec::value("", "version", "Version of the model. Without it the server chooses.", |given, name| {
        given.model_version.clone_from(&name.text);
        Ok(())
    })
    .short('x'),
    Spec::value(
        "bls-composing-models",
        "model[:version],...",
        "Models which the one under load calls by itself (BLS): their share of the time is reported \
         like that of an ensemble's steps.",
        |given, models| {
            given.bls_composing_models.extend(setting::composing_models(models)?);
            Ok(())
        },
    ),
    Spec::value(
        "service-kind",
        "kind",
        "Only triton, which is any KServe v2 server. perf_analyzer's other kinds are refused.",
        |_, kind| match kind.text.as_str() {
            "triton" => Ok(()),
            "triton_c_api" | "tfserving" | "torchserve" | "openai" | "dynamic_grpc" => Err(format!(
                "--service-kind {} is not supported: the one kind is 'triton', any KServe v2 server \
                 over HTTP or gRPC",
                kind.text
            )),
            _ => Err(kind.unsupported("The available option is 'triton'.")),
        },
    ),
    Spec::ignored(
        "model-signature-name",
        "name",
        "Accepted without effect: it is for the service kind tfserving.",
    ),
    Spec::ignored("endpoint", "path", "Accepted without effect: it is for the service kind openai."),
    Spec::value(
        "grpc-method",
        "package.service/method",
        "Accepted without effect: it is for the service kind dynamic_grpc.",
        |_, method| {
            if setting::is_grpc_method(&method.text) {
                return Ok(());
            }
            Err(format!(
                "Received gRPC method name '{}' that does not match the format: \
                 <package>.<service>/<method>.",
                method.text
            ))
        },
    ),
    Spec::ignored(
        "triton-server-directory",
        "path",
        "Accepted without effect: it is for the service kind triton_c_api.",
    ),
    Spec::ignored(
        "model-repository",
        "path",
        "Accepted without effect: it is for the service kind triton_c_api.",
    ),
    Spec::new(
        "enable-mpi",
        Takes::Nothing,
        "Refused: several tools started by MPI do not wait for each other here.",
        Action::Refuse("runs are not coordinated over MPI"),
    ),
    Spec::switch(
        "",
        "Report every window as it ends, and split up the client's time. Given twice: in more detail.",
        |given, _| {
            given.verbosity = given.verbosity.saturating_add(1);
            Ok(())
        },
    )
    .short('v'),
    Spec::new("version", Takes::Nothing, "Print the version.", Action::Version),
];
