//! The command line of `galatea deploy envoy`.

use galatea_command_line::{
    Group, Kind, Occurrence, OptionRow, OptionSet, options, read as read_options,
};

use super::host::Host;
use crate::flags::FlagError;

pub(super) const USAGE: &str = "\
Usage: galatea deploy envoy --hosts <host>,<host>... [options]

Prints a configuration of Envoy 1.40 that spreads HTTP and gRPC over servers by the load that they report. A server that is not
ready, fails or is gone gets no requests, and another one answers those that it lost. Check and run it:

  galatea deploy envoy --hosts 10.0.0.1,10.0.0.2 > envoy.yaml
  envoy --mode validate -c envoy.yaml && envoy -c envoy.yaml

";

#[derive(Debug, Default)]
pub struct EnvoyFlags {
    pub hosts: Vec<Host>,
    pub address: String,
    pub http_port: u64,
    pub grpc_port: u64,
    pub admin_port: u64,
    pub sequence_header: String,
    pub retries: u64,
    /// Seconds without a byte of an answer; 0: no bound.
    pub try_timeout: u64,
    pub buffer_mb: u64,
}

/// Reads the words after `envoy`; `None`: the user asks for the help.
pub(super) fn read(words: Vec<String>) -> Result<Option<EnvoyFlags>, FlagError> {
    let Some(flags) = read_options::<EnvoyFlags>(words)? else { return Ok(None) };
    if flags.hosts.is_empty() {
        return Err(FlagError::rule(
            "the option --hosts is missing: it names the servers".to_owned(),
        ));
    }
    if flags.address.parse::<std::net::IpAddr>().is_err() {
        return Err(FlagError::rule(format!(
            "--address={}: an address of IP is expected, such as 0.0.0.0",
            flags.address
        )));
    }
    let is_token = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if flags.sequence_header.is_empty() || !flags.sequence_header.chars().all(is_token) {
        return Err(FlagError::rule(format!(
            "--sequence-header={}: the name of a header is expected, in lower case",
            flags.sequence_header
        )));
    }
    Ok(Some(flags))
}

type Row = OptionRow<EnvoyFlags>;

fn read_hosts(flags: &mut EnvoyFlags, given: &Occurrence) -> Result<(), FlagError> {
    let wrong = |error| FlagError::rule(format!("--hosts={}: {error}", given.text));
    flags.hosts = Host::read_list(&given.text).map_err(wrong)?;
    Ok(())
}

const PORT: Kind = Kind::Integer { min: 1, max: 65_535 };

const ROWS: &[Row] = options! {
    /// Servers: a name or an address each, and the ports of HTTP and gRPC if they are not 8000 and 8001.
    "hosts" => Row::of(Kind::Form("<host>[:<http>[:<grpc>]],...")).stores(read_hosts),
    /// Address at which Envoy takes requests.
    "address" => Row::of(Kind::Text).default("0.0.0.0").fills(|o| &mut o.address),
    /// Port at which Envoy takes HTTP.
    "http-port" => Row::of(PORT).default("8000").fills(|o| &mut o.http_port),
    /// Port at which Envoy takes gRPC.
    "grpc-port" => Row::of(PORT).default("8001").fills(|o| &mut o.grpc_port),
    /// Port of Envoy's own interface, at 127.0.0.1.
    "admin-port" => Row::of(PORT).default("9901").fills(|o| &mut o.admin_port),
    /// Header (metadata in gRPC) by which requests of one sequence go to one server. A client sends the sequence's id in it.
    "sequence-header" => Row::of(Kind::Text).default("x-sequence-id").fills(|o| &mut o.sequence_header),
    /// Attempts on other servers after one that failed.
    "retries" => Row::of(Kind::Integer { min: 0, max: 10 }).default("2").fills(|o| &mut o.retries),
    /// Seconds without a byte of the answer after which another server gets the request. It must be longer than any model computes.
    /// 0: a server may take as long as it likes.
    "try-timeout-secs" => Row::of(Kind::Integer { min: 0, max: 86_400 }).default("0").fills(|o| &mut o.try_timeout),
    /// Megabytes of a request that Envoy keeps for another attempt. A larger one is not retried.
    "retry-buffer-mb" => Row::of(Kind::Integer { min: 1, max: 1024 }).default("16").fills(|o| &mut o.buffer_mb),
    /// Print this text.
    "help" => Row::help(""),
};

impl OptionSet for EnvoyFlags {
    type Error = FlagError;

    fn groups() -> &'static [Group<Self>] {
        &[Group { title: "", rows: ROWS, is_own: false }]
    }

    fn word(&mut self, word: String) -> Result<(), FlagError> {
        Err(FlagError::rule(format!("Unexpected argument: {word}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> Result<Option<EnvoyFlags>, String> {
        read(line.split_whitespace().map(str::to_owned).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn hosts_are_required_and_the_rest_has_defaults() {
        assert!(given("--help").expect("help").is_none());
        assert!(given("").expect_err("nothing").contains("--hosts is missing"));
        let flags = given("--hosts a,b:1:2").expect("good").expect("no help");
        assert_eq!((flags.hosts.len(), flags.http_port, flags.retries), (2, 8000, 2));
    }

    #[test]
    fn wrong_values_are_named() {
        for (line, told) in [
            ("--hosts a:0", "'a:0' is no host"),
            ("--hosts a --address x", "--address=x"),
            ("--hosts a --sequence-header X:y", "--sequence-header=X:y"),
            ("--hosts a --http-port 0", "--http-port"),
            ("--hosts a b", "Unexpected argument: b"),
        ] {
            let error = given(line).expect_err(line);
            assert!(error.contains(told), "{line}: {error}");
        }
    }
}
