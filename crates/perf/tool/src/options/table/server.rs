//! Options for the server's address and connection.

use galatea_client::{Compression, Protocol, read_header};
use galatea_command_line::{Kind, Occurrence, set};

use super::{
    super::{
        error::OptionError,
        reading::{choice, existing_file, failed, invalid},
    },
    row::{Row, switch, value},
};

pub const ROWS: &[Row] = &[
    value(
        "",
        "url",
        "Where the server is: host:port; for HTTP also with https:// before it and a path behind it. \
         Default localhost:8000, for gRPC localhost:8001.",
        |given, v| v.put(&mut given.url),
    )
    .short('u'),
    value("", "http|grpc", "Protocol, in any case. Default http.", set!(|given, text| given.settings.protocol = match text.text.to_ascii_lowercase().as_str() {
            "http" => Protocol::Http,
            "grpc" => Protocol::Grpc,
            _ => return Err(failed(text, "The value should be either HTTP or gRPC.")),
        }))
    .short('i')
    .meaning("protocol"),
    switch(
        "streaming",
        "Send through one bidirectional gRPC stream per worker; decoupled models need it.",
        |given, v| v.put(&mut given.settings.calls.streaming),
    ),
    value(
        "",
        "header:value",
        "A header of every request (metadata over gRPC). May be repeated.",
        |given, text| {
            let header = read_header(&text.text);
            let (name, value) = header.ok_or_else(|| invalid(text, "Header:Value"))?;
            given.settings.headers.retain(|(other, _)| *other != name);
            given.settings.headers.push((name, value));
            Ok(())
        },
    )
    .short('H'),
    value(
        "grpc-compression-algorithm",
        "none|gzip|deflate",
        "Compression of requests over gRPC. Default none.",
        |given, text| {
            let choices = [
                ("none", Compression::None),
                ("gzip", Compression::Gzip),
                ("deflate", Compression::Deflate),
            ];
            let available = "The available options are 'gzip', 'deflate', or 'none'.";
            given.compression = Some(choice(text, &choices, available)?);
            Ok(())
        },
    ),
    Row::new("ssl-grpc-use-ssl", Kind::OptionalBool, "gRPC over TLS.").stores(|given, v| v.put(&mut given.uses_grpc_tls)),
    value(
        "ssl-grpc-root-certifications-file",
        "file",
        "PEM certificates of the authorities to trust. Default: the system's.",
        set!(|given, text| given.grpc_tls.roots = Some(existing_file(text, FILE_PATH)?)),
    ),
    value(
        "ssl-grpc-private-key-file",
        "file",
        "The client's own key, PEM.",
        set!(|given, text| given.grpc_tls.private_key = Some(existing_file(text, FILE_PATH)?)),
    ),
    value(
        "ssl-grpc-certificate-chain-file",
        "file",
        "The client's own certificates, PEM.",
        set!(|given, text| given.grpc_tls.certificate_chain = Some(existing_file(text, FILE_PATH)?)),
    ),
    value(
        "ssl-https-verify-peer",
        "0|1",
        "Whether the server's certificate must be signed by a trusted authority. Default 1.",
        set!(|given, text| given.https.skips_peer = number_to(1, text, "The value must be either 0 or 1.")? == 0),
    ),
    value(
        "ssl-https-verify-host",
        "0|1|2",
        "Whether the server's certificate must carry its name: 0 no, 1 and 2 yes. Default 2.",
        set!(|given, text| given.https.skips_host =
                number_to(2, text, "The value must be either 0, 1, or 2.")? == 0),
    ),
    value(
        "ssl-https-ca-certificates-file",
        "file",
        "PEM certificates of the authorities to trust. Default: the system's.",
        set!(|given, text| given.https.roots = Some(existing_file(text, FILE_PATH)?)),
    ),
    value(
        "ssl-https-client-certificate-file",
        "file",
        "The client's own certificate.",
        set!(|given, text| given.https.certificate_chain = Some(existing_file(text, FILE_PATH)?)),
    ),
    value(
        "ssl-https-client-certificate-type",
        "PEM|DER",
        "Form of that file. Default PEM.",
        set!(|given, text| given.https.certificate_is_der = is_der(text)?),
    ),
    value(
        "ssl-https-private-key-file",
        "file",
        "The client's own key.",
        set!(|given, text| given.https.private_key = Some(existing_file(text, FILE_PATH)?)),
    ),
    value(
        "ssl-https-private-key-type",
        "PEM|DER",
        "Form of that file. Default PEM.",
        set!(|given, text| given.https.private_key_is_der = is_der(text)?),
    ),
];

const FILE_PATH: &str = "The value must be a valid file path.";

fn number_to(max: u8, text: &Occurrence, requirement: &str) -> Result<u8, OptionError> {
    match text.text.trim().parse() {
        Ok(number) if number <= max => Ok(number),
        _ => Err(failed(text, requirement)),
    }
}

fn is_der(text: &Occurrence) -> Result<bool, OptionError> {
    choice(text, &[("PEM", false), ("DER", true)], "The available options are 'PEM' or 'DER'.")
}
