//! Amazon S3, with credentials as its own tools find them.

use std::sync::Arc;

use galatea_types::Environment;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

use super::{
    connector::Connector,
    credential_file::Credential,
    no_retries, not_opened, plain,
    profile::Profile,
    store::{self, Store},
};
use crate::{address::Address, error::RemoteError};

/// Variable that forbids asking the machine for credentials.
const NO_METADATA: &str = "AWS_EC2_METADATA_DISABLED";

/// Settings that name a service for credentials, besides that of every EC2 machine.
const SERVICES: [AmazonS3ConfigKey; 3] = [
    AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
    AmazonS3ConfigKey::ContainerCredentialsFullUri,
    AmazonS3ConfigKey::WebIdentityTokenFile,
];

pub fn open(
    address: &Address,
    credential: &Credential,
    environment: &Environment,
    connector: Connector,
) -> Result<Store, RemoteError> {
    let settings = Settings::find(credential, environment)?;
    let builder = settings.builder(address, environment, connector);
    let build = |builder: AmazonS3Builder| builder.build().map_err(|error| not_opened(&error));
    if is_true(builder.get_config_value(&AmazonS3ConfigKey::SkipSignature)) {
        return Ok(plain(build(builder)?));
    }
    if settings.keys.is_some() || SERVICES.iter().any(|key| builder.get_config_value(key).is_some())
    {
        return Ok(plain(build(builder)?));
    }
    let unsigned = build(builder.clone().with_skip_signature(true))?;
    if is_true(environment.text(NO_METADATA)) {
        return Ok(plain(unsigned));
    }
    let signed = build(builder)?;
    let probe = store::probe(signed.credentials().clone());
    Ok(Store::new(Arc::new(signed), Some((Arc::new(unsigned), probe))))
}

/// Variable with `path` or `virtual`.
const ADDRESSING_STYLE: &str = "AWS_S3_ADDRESSING_STYLE";

fn is_true(value: Option<String>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
}

/// Settings from the credential file, the environment and the profile, in this order.
struct Settings {
    keys: Option<AccessKeys>,
    region: Option<String>,
    endpoint: Option<String>,
    /// For a profile with a role and no keys: the file with the token that proves the role.
    web_identity: Option<(String, String)>,
}

struct AccessKeys {
    id: String,
    secret: String,
    token: Option<String>,
}

impl Settings {
    fn find(credential: &Credential, environment: &Environment) -> Result<Self, RemoteError> {
        let get = |member, variable| credential.get(member, environment, variable);
        let given = match (
            get("key_id", "AWS_ACCESS_KEY_ID"),
            get("secret_key", "AWS_SECRET_ACCESS_KEY"),
        ) {
            (Some(id), Some(secret)) => {
                Some(AccessKeys { id, secret, token: get("session_token", "AWS_SESSION_TOKEN") })
            }
            _ => None,
        };
        let named = get("profile", "AWS_PROFILE");
        // Given keys make a profile's keys unnecessary, so it may be missing.
        let profile = match &given {
            Some(_) => Profile::find(environment, named.as_deref()).unwrap_or_default(),
            None => Profile::find(environment, named.as_deref())?,
        };
        let of_profile =
            |setting| profile.as_ref().and_then(|profile| profile.get(setting)).map(str::to_owned);
        let keys = given.or_else(|| {
            let (id, secret) =
                (of_profile("aws_access_key_id")?, of_profile("aws_secret_access_key")?);
            Some(AccessKeys { id, secret, token: of_profile("aws_session_token") })
        });
        let web_identity = of_profile("web_identity_token_file").zip(of_profile("role_arn"));
        if let (None, None, Some(profile)) = (&keys, &web_identity, &profile) {
            profile.check_supported()?;
        }
        let region = get("region", "AWS_REGION")
            .or_else(|| environment.text("AWS_REGION"))
            .or_else(|| environment.text("AWS_DEFAULT_REGION"))
            .or_else(|| of_profile("region"));
        Ok(Self { keys, region, endpoint: of_profile("endpoint_url"), web_identity })
    }

    fn builder(
        &self,
        address: &Address,
        environment: &Environment,
        connector: Connector,
    ) -> AmazonS3Builder {
        let mut builder = AmazonS3Builder::new();
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        for (name, value) in environment.variables() {
            if let Some(key) = passed_on(&name.to_string_lossy())
                && let Some(value) = value.to_str().filter(|value| !value.is_empty())
            {
                builder = builder.with_config(key, value);
            }
        }
        if let Some(region) = &self.region {
            builder = builder.with_region(region);
        }
        if let Some((file, role)) = &self.web_identity {
            builder = builder
                .with_config(AmazonS3ConfigKey::WebIdentityTokenFile, file)
                .with_config(AmazonS3ConfigKey::RoleArn, role);
        }
        if let Some(keys) = &self.keys {
            builder = builder.with_access_key_id(&keys.id).with_secret_access_key(&keys.secret);
            builder = keys.token.iter().fold(builder, AmazonS3Builder::with_token);
        }
        if let Some(endpoint) = &address.endpoint {
            // Both are set, since the one for S3 alone would override the other.
            builder = builder
                .with_endpoint(endpoint)
                .with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
        }
        let is_plain = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint]
            .iter()
            .find_map(|key| builder.get_config_value(key))
            .is_some_and(|endpoint| endpoint.starts_with("http://"));
        if has_virtual_hosts(environment) {
            builder = builder.with_virtual_hosted_style_request(true);
            // With virtual hosts the library takes its endpoint to be that of the bucket.
            if let Some(endpoint) = &address.endpoint {
                let endpoint = of_bucket(endpoint, &address.bucket);
                builder = builder
                    .with_endpoint(&endpoint)
                    .with_config(AmazonS3ConfigKey::S3Endpoint, &endpoint);
            }
        }
        builder
            .with_bucket_name(&address.bucket)
            .with_allow_http(is_plain)
            .with_retry(no_retries())
            .with_http_connector(connector)
    }
}

/// Returns true if the host name contains the bucket. Other programs read the same variable.
fn has_virtual_hosts(environment: &Environment) -> bool {
    environment.text(ADDRESSING_STYLE).is_some_and(|style| style.eq_ignore_ascii_case("virtual"))
}

/// Returns the endpoint whose host begins with the bucket.
fn of_bucket(endpoint: &str, bucket: &str) -> String {
    match endpoint.split_once("://") {
        Some((scheme, host)) => format!("{scheme}://{bucket}.{host}"),
        None => format!("{bucket}.{endpoint}"),
    }
}

/// Variables that the store's library reads by these names in lower case: endpoints, and the sources of the machine's
/// credentials. Variables with the credentials themselves are read here.
const PASSED_ON: &str = "\
    AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_CREDENTIALS_RELATIVE_URI \
    AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3 AWS_ENDPOINT_URL_STS AWS_IMDSV1_FALLBACK AWS_METADATA_ENDPOINT AWS_REQUEST_PAYER \
    AWS_ROLE_ARN AWS_ROLE_SESSION_NAME AWS_SKIP_SIGNATURE AWS_VIRTUAL_HOSTED_STYLE_REQUEST AWS_WEB_IDENTITY_TOKEN_FILE";

fn passed_on(variable: &str) -> Option<AmazonS3ConfigKey> {
    if variable == "AWS_EC2_METADATA_SERVICE_ENDPOINT" {
        return Some(AmazonS3ConfigKey::MetadataEndpoint);
    }
    PASSED_ON.split_whitespace().find(|name| *name == variable)?.to_ascii_lowercase().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Settings {
        let environment = Environment::of(variables.iter().copied());
        Settings::find(&Credential::default(), &environment).expect("fine")
    }

    #[test]
    fn keys_and_region_are_read_from_the_environment() {
        let found = find(&[
            ("AWS_ACCESS_KEY_ID", "A"),
            ("AWS_SECRET_ACCESS_KEY", "B"),
            ("AWS_SESSION_TOKEN", "C"),
            ("AWS_DEFAULT_REGION", "eu-west-1"),
        ]);
        let keys = found.keys.expect("given");
        assert_eq!(
            (keys.id.as_str(), keys.secret.as_str(), keys.token.as_deref()),
            ("A", "B", Some("C"))
        );
        assert_eq!(found.region.as_deref(), Some("eu-west-1"));
        assert!(
            find(&[("AWS_ACCESS_KEY_ID", "A")]).keys.is_none(),
            "half a pair is none, as in Triton"
        );
    }

    #[test]
    fn passed_variables_are_known_to_the_library() {
        for variable in PASSED_ON.split_whitespace() {
            assert!(passed_on(variable).is_some(), "{variable}");
        }
        use AmazonS3ConfigKey::{Endpoint, MetadataEndpoint, S3Endpoint, WebIdentityTokenFile};
        for (variable, expected) in [
            ("AWS_ENDPOINT_URL", Some(Endpoint)),
            ("AWS_ENDPOINT_URL_S3", Some(S3Endpoint)),
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", Some(MetadataEndpoint)),
            ("AWS_METADATA_ENDPOINT", Some(MetadataEndpoint)),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", Some(WebIdentityTokenFile)),
            ("AWS_SECRET_ACCESS_KEY", None),
            ("aws_role_arn", None),
        ] {
            assert_eq!(passed_on(variable), expected, "{variable}");
        }
    }

    #[test]
    fn the_bucket_may_be_part_of_the_host_name() {
        let is_virtual = |style| has_virtual_hosts(&Environment::of([(ADDRESSING_STYLE, style)]));
        assert_eq!(["virtual", "Virtual", "path", ""].map(is_virtual), [true, true, false, false]);
        assert_eq!(of_bucket("http://store:9000", "models"), "http://models.store:9000");
        assert_eq!(of_bucket("store", "models"), "models.store");
    }
}
