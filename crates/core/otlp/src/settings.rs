//! The options of mode `opentelemetry`, checked.

use std::time::Duration;

use galatea_types::{Environment, Error};
use galatea_web_client::{HttpFailure, any_uri};
use http::{HeaderMap, HeaderName, HeaderValue, Uri, uri::PathAndQuery};

use crate::{
    attribute::{self, Attribute},
    options::{BatchLimits, BatchOptions, ExportOptions, ExportProtocol},
};

/// The address without any other, as the OpenTelemetry SDKs have it.
const DEFAULT_HTTP: &str = "http://localhost:4318/v1/traces";
const DEFAULT_GRPC: &str = "http://localhost:4317";
/// The path below the address that serves all signals.
const TRACES_PATH: &str = "v1/traces";
/// The path of the call over gRPC.
const GRPC_PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// The name of the service, as Triton gives it.
const SERVICE: &str = "triton-inference-server";

/// An option or an environment variable with which no span can be sent.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The address cannot be used.
    #[error("{name}: {failure}")]
    Address {
        /// The option or the variable.
        name: &'static str,
        /// The reason.
        failure: HttpFailure,
    },
    /// The environment names a protocol that OTLP does not have.
    #[error("{name} is '{given}'; use http/json, http/protobuf or grpc")]
    Protocol {
        /// The variable.
        name: &'static str,
        /// Its value.
        given: String,
    },
    /// A variable holds no number.
    #[error("{name} is '{given}', which is no number from 0 to 4294967295")]
    Number {
        /// The variable.
        name: &'static str,
        /// Its value.
        given: String,
    },
    /// A variable holds no list of names and values. Its value may be secret.
    #[error("{name} is no list of <name>=<value>, separated by commas")]
    List {
        /// The variable.
        name: &'static str,
    },
}

impl From<SettingsError> for Error {
    fn from(error: SettingsError) -> Self {
        Self::invalid_arg(error.to_string()).with_source(error)
    }
}

/// Checked settings of mode `opentelemetry`.
#[derive(Clone, Debug)]
pub struct ExportSettings {
    /// The address of each request.
    pub(crate) uri: Uri,
    pub(crate) protocol: ExportProtocol,
    /// Further headers, which may be secret.
    pub(crate) headers: HeaderMap,
    /// Attributes of the resource, in their order, each name once.
    pub(crate) resource: Vec<Attribute>,
    pub(crate) limits: BatchLimits,
    /// The limits that no option gives, in the order in which Triton shows them.
    defaults: Vec<Attribute>,
}

impl ExportSettings {
    /// Returns the names and values of the limits that no option gives.
    pub fn defaults(&self) -> &[Attribute] {
        &self.defaults
    }
}

impl ExportOptions {
    /// Checks the options. Those that are not given come from the variables that OpenTelemetry defines.
    ///
    /// # Errors
    /// When an address, a protocol or a list cannot be used.
    pub fn check(&self, environment: &Environment) -> Result<ExportSettings, SettingsError> {
        let protocol = match self.protocol {
            Some(protocol) => protocol,
            None => protocol_of(environment)?.unwrap_or_default(),
        };
        let BatchOptions { max_queue_size, schedule_delay, max_export_batch_size } = self.batch;
        let mut defaults = Vec::new();
        let mut limit = |given: Option<u32>, default: &Limit| -> Result<u32, SettingsError> {
            if let Some(given) = given {
                return Ok(given);
            }
            let value = default.value(environment)?;
            defaults.push(Attribute::new(default.name, value.to_string()));
            Ok(value)
        };
        let max_export_batch_size = limit(max_export_batch_size, &BATCH_SIZE)?;
        let schedule_delay = limit(schedule_delay, &DELAY)?;
        let max_queue_size = limit(max_queue_size, &QUEUE_SIZE)?;
        let schedule_delay = Duration::from_millis(schedule_delay.into());
        let limits = BatchLimits { max_queue_size, schedule_delay, max_export_batch_size };
        Ok(ExportSettings {
            uri: self.uri(protocol, environment)?,
            protocol,
            headers: headers(environment)?,
            resource: self.resource(environment)?,
            limits: limits.usable(),
            defaults,
        })
    }

    fn uri(
        &self,
        protocol: ExportProtocol,
        environment: &Environment,
    ) -> Result<Uri, SettingsError> {
        let is_grpc = protocol == ExportProtocol::Grpc;
        let named = |name| environment.text(name).map(|text| (name, text));
        let for_all = |(name, text): (_, String)| match is_grpc {
            true => (name, text),
            false => (name, format!("{}/{TRACES_PATH}", text.trim_end_matches('/'))),
        };
        let default = if is_grpc { DEFAULT_GRPC } else { DEFAULT_HTTP };
        let option = "--trace-config opentelemetry,url";
        let given = self.url.clone().map(|url| (option, url));
        let (name, text) = given
            .or_else(|| named("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
            .or_else(|| named("OTEL_EXPORTER_OTLP_ENDPOINT").map(for_all))
            .unwrap_or_else(|| (option, default.to_owned()));
        // Addresses of gRPC are often written without a scheme.
        let text = match is_grpc && !text.contains("://") {
            true => format!("http://{text}"),
            false => text,
        };
        let uri = any_uri(&text).map_err(|failure| SettingsError::Address { name, failure })?;
        let mut parts = uri.into_parts();
        if is_grpc {
            parts.path_and_query = Some(PathAndQuery::from_static(GRPC_PATH));
        }
        Uri::from_parts(parts).map_err(|error| {
            let failure = HttpFailure::new(galatea_web_client::Problem::Address, error.to_string());
            SettingsError::Address { name, failure }
        })
    }

    fn resource(&self, environment: &Environment) -> Result<Vec<Attribute>, SettingsError> {
        let mut all = vec![
            Attribute::new("service.name", SERVICE),
            Attribute::new("telemetry.sdk.language", "rust"),
            Attribute::new("telemetry.sdk.name", "galatea"),
            Attribute::new("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ];
        let variable = list_of(environment, "OTEL_RESOURCE_ATTRIBUTES")?;
        let service = environment.text("OTEL_SERVICE_NAME");
        let service = service.map(|name| Attribute::new("service.name", name));
        for attribute in variable.into_iter().chain(service).chain(self.resource.iter().cloned()) {
            match all.iter_mut().find(|known| known.name == attribute.name) {
                Some(known) => *known = attribute,
                None => all.push(attribute),
            }
        }
        Ok(all)
    }
}

/// A limit that an option or a variable gives, or else is the default.
struct Limit {
    name: &'static str,
    variable: &'static str,
    default: u32,
}

const BATCH_SIZE: Limit = Limit {
    name: "bsp_max_export_batch_size",
    variable: "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
    default: 512,
};
const DELAY: Limit =
    Limit { name: "bsp_schedule_delay", variable: "OTEL_BSP_SCHEDULE_DELAY", default: 5000 };
const QUEUE_SIZE: Limit =
    Limit { name: "bsp_max_queue_size", variable: "OTEL_BSP_MAX_QUEUE_SIZE", default: 2048 };

impl Limit {
    fn value(&self, environment: &Environment) -> Result<u32, SettingsError> {
        let Some(given) = environment.text(self.variable) else { return Ok(self.default) };
        let number = given.trim().parse();
        number.map_err(|_| SettingsError::Number { name: self.variable, given })
    }
}

fn protocol_of(environment: &Environment) -> Result<Option<ExportProtocol>, SettingsError> {
    for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        let Some(given) = environment.text(name) else { continue };
        let known = ExportProtocol::ALL.into_iter().find(|protocol| protocol.name() == given);
        return known.map(Some).ok_or(SettingsError::Protocol { name, given });
    }
    Ok(None)
}

fn headers(environment: &Environment) -> Result<HeaderMap, SettingsError> {
    let mut headers = HeaderMap::new();
    for name in ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"] {
        for attribute in list_of(environment, name)? {
            let header = HeaderName::try_from(attribute.name);
            let value = HeaderValue::try_from(attribute.value);
            let (Ok(header), Ok(mut value)) = (header, value) else {
                return Err(SettingsError::List { name });
            };
            value.set_sensitive(true);
            headers.insert(header, value);
        }
    }
    Ok(headers)
}

fn list_of(environment: &Environment, name: &'static str) -> Result<Vec<Attribute>, SettingsError> {
    let text = environment.text(name).unwrap_or_default();
    attribute::list(&text).ok_or(SettingsError::List { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(
        options: ExportOptions,
        variables: &[(&str, &str)],
    ) -> Result<ExportSettings, String> {
        let environment = Environment::of(variables.iter().copied());
        options.check(&environment).map_err(|error| error.to_string())
    }

    fn address(url: Option<&str>, protocol: ExportProtocol, variables: &[(&str, &str)]) -> String {
        let options = ExportOptions {
            url: url.map(str::to_owned),
            protocol: Some(protocol),
            ..ExportOptions::default()
        };
        checked(options, variables).expect("good").uri.to_string()
    }

    #[test]
    fn an_address_over_http_is_used_as_given() {
        use ExportProtocol::HttpJson;
        assert_eq!(address(None, HttpJson, &[]), DEFAULT_HTTP);
        assert_eq!(address(Some("http://h:1/x"), HttpJson, &[]), "http://h:1/x");
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://h/base/");
        assert_eq!(address(None, HttpJson, &[all]), "https://h/base/v1/traces");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://h/own");
        assert_eq!(address(None, HttpJson, &[all, own]), "https://h/own");
        assert_eq!(address(Some("http://h:1/x"), HttpJson, &[all, own]), "http://h:1/x");
    }

    #[test]
    fn an_address_over_grpc_has_the_path_of_the_call() {
        for (url, host) in [
            (None, "http://localhost:4317"),
            (Some("h:1"), "http://h:1"),
            (Some("https://h:1/x"), "https://h:1"),
        ] {
            assert_eq!(address(url, ExportProtocol::Grpc, &[]), format!("{host}{GRPC_PATH}"));
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let url = |url: &str| ExportOptions { url: Some(url.into()), ..ExportOptions::default() };
        let bad = |options, variables: &[_]| checked(options, variables).expect_err("bad");
        let error = bad(url("ftp://h"), &[]);
        assert!(error.starts_with("--trace-config opentelemetry,url: the address"), "{error}");
        let error = bad(ExportOptions::default(), &[("OTEL_EXPORTER_OTLP_PROTOCOL", "soap")]);
        assert!(error.contains("OTEL_EXPORTER_OTLP_PROTOCOL is 'soap'; use http/json"), "{error}");
        for secret in ["secret", "a b=secret"] {
            let error = bad(ExportOptions::default(), &[("OTEL_EXPORTER_OTLP_HEADERS", secret)]);
            assert!(error.contains("OTEL_EXPORTER_OTLP_HEADERS") && !error.contains("secret"));
        }
    }

    #[test]
    fn options_win_over_variables_and_variables_over_defaults() {
        let resource = vec![Attribute::new("zone", "a=b"), Attribute::new("zone", "c")];
        let variables = [
            ("OTEL_RESOURCE_ATTRIBUTES", "zone=x,team=y"),
            ("OTEL_SERVICE_NAME", "mine"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20t"),
        ];
        let options = ExportOptions { resource, ..ExportOptions::default() };
        let settings = checked(options, &variables).expect("good");
        let value = |name| settings.resource.iter().find(|a| a.name == name).map(|a| &*a.value);
        assert_eq!((value("service.name"), value("zone")), (Some("mine"), Some("c")));
        assert_eq!((value("team"), settings.resource.len()), (Some("y"), 6));
        assert_eq!(settings.protocol, ExportProtocol::Grpc);
        assert_eq!(settings.headers["authorization"], "Bearer t");
        assert!(!format!("{settings:?}").contains("Bearer"));
    }

    #[test]
    fn limits_that_are_not_given_are_shown_in_tritons_order() {
        let options = || {
            let batch = BatchOptions { schedule_delay: Some(7), ..BatchOptions::default() };
            ExportOptions { batch, ..ExportOptions::default() }
        };
        let settings = checked(options(), &[("OTEL_BSP_MAX_QUEUE_SIZE", "9")]).expect("good");
        let shown: Vec<_> =
            settings.defaults().iter().map(|a| format!("{}={}", a.name, a.value)).collect();
        assert_eq!(shown, ["bsp_max_export_batch_size=512", "bsp_max_queue_size=9"]);
        let BatchLimits { max_queue_size, schedule_delay, max_export_batch_size } = settings.limits;
        assert_eq!((max_queue_size, max_export_batch_size), (9, 9));
        assert_eq!(schedule_delay, Duration::from_millis(7));
        let error = checked(options(), &[("OTEL_BSP_MAX_QUEUE_SIZE", "-1")]).expect_err("bad");
        assert!(
            error.starts_with("OTEL_BSP_MAX_QUEUE_SIZE is '-1', which is no number"),
            "{error}"
        );
    }

    #[test]
    fn limits_that_send_nothing_are_raised() {
        let schedule_delay = Duration::ZERO;
        let limits = BatchLimits { max_queue_size: 0, schedule_delay, max_export_batch_size: 9 };
        let usable = limits.usable();
        assert_eq!((usable.max_queue_size, usable.max_export_batch_size), (1, 1));
        assert!(!usable.schedule_delay.is_zero());
    }
}
