//! Options for the server's address and connection.

use galatea_client::{Compression, Protocol, read_header};
use galatea_command_line::{Kind, Occurrence, options, set};

use super::{
    super::{
        error::OptionError,
        readers::{choice, existing_file, failed, invalid},
    },
    row::{Row, switch, value},
};

pub const ROWS: &[Row] = options! {
    /// Address of the server: host:port; for HTTP also with https:// before it and a path behind it; unix:path for a
    /// Unix socket. Default localhost:8000, for gRPC localhost:8001.
    "" => value("url", |given, v| v.put(&mut given.url)).short('u'),
    /// Protocol, in any case. Default http.
    "" => value("http|grpc",
        set!(|given, text| given.settings.protocol = match text.text.to_ascii_lowercase().as_str() {
            "http" => Protocol::Http,
            "grpc" => Protocol::Grpc,
            _ => return Err(failed(text, "The value should be either HTTP or gRPC.")),
        })).short('i').meaning("protocol"),
    /// Send through one bidirectional gRPC stream per worker; decoupled models need it.
    "streaming" => switch(|given, v| v.put(&mut given.settings.calls.streaming)),
    /// A header of every request (metadata over gRPC). May be repeated.
    "" => value("header:value", |given, text| {
        let header = read_header(&text.text);
        let (name, value) = header.ok_or_else(|| invalid(text, "Header:Value"))?;
        given.settings.headers.retain(|(other, _)| *other != name);
        given.settings.headers.push((name, value));
        Ok(())
    }).short('H'),
    /// Compression of requests over gRPC. Default none.
    "grpc-compression-algorithm" => value("none|gzip|deflate", |given, text| {
        let choices = [
            ("none", Compression::None),
            ("gzip", Compression::Gzip),
            ("deflate", Compression::Deflate),
        ];
        let available = "The available options are 'gzip', 'deflate', or 'none'.";
        given.compression = Some(choice(text, &choices, available)?);
        Ok(())
    }),
    /// gRPC over TLS.
    "ssl-grpc-use-ssl" => Row::of(Kind::OptionalBool)
        .stores(|given, v| v.put(&mut given.uses_grpc_tls)),
    /// PEM certificates of the authorities to trust. Default: the system's.
    "ssl-grpc-root-certifications-file" => value("file",
        set!(|given, text| given.grpc_tls.roots = Some(existing_file(text, FILE_PATH)?))),
    /// The client's own key, PEM.
    "ssl-grpc-private-key-file" => value("file",
        set!(|given, text| given.grpc_tls.private_key = Some(existing_file(text, FILE_PATH)?))),
    /// The client's own certificates, PEM.
    "ssl-grpc-certificate-chain-file" => value("file",
        set!(|given, text| given.grpc_tls.certificate_chain = Some(existing_file(text, FILE_PATH)?))),
    /// Require that a trusted authority has signed the server's certificate. Default 1.
    "ssl-https-verify-peer" => value("0|1",
        set!(|given, text| given.https.skips_peer = number_to(1, text, "The value must be either 0 or 1.")? == 0)),
    /// Require that the server's certificate carries its name: 0 no, 1 and 2 yes. Default 2.
    "ssl-https-verify-host" => value("0|1|2", set!(|given, text| given.https.skips_host =
            number_to(2, text, "The value must be either 0, 1, or 2.")? == 0)),
    /// PEM certificates of the authorities to trust. Default: the system's.
    "ssl-https-ca-certificates-file" => value("file",
        set!(|given, text| given.https.roots = Some(existing_file(text, FILE_PATH)?))),
    /// The client's own certificate.
    "ssl-https-client-certificate-file" => value("file",
        set!(|given, text| given.https.certificate_chain = Some(existing_file(text, FILE_PATH)?))),
    /// Form of that file. Default PEM.
    "ssl-https-client-certificate-type" => value("PEM|DER",
        set!(|given, text| given.https.certificate_is_der = is_der(text)?)),
    /// The client's own key.
    "ssl-https-private-key-file" => value("file",
        set!(|given, text| given.https.private_key = Some(existing_file(text, FILE_PATH)?))),
    /// Form of that file. Default PEM.
    "ssl-https-private-key-type" => value("PEM|DER",
        set!(|given, text| given.https.private_key_is_der = is_der(text)?)),
};

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
