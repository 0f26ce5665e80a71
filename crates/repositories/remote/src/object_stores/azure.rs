//! Azure Blob Storage.

use galatea_types::Environment;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};

use super::{
    connector::Connector, credential_file::Credential, no_retries, not_opened, plain, store::Store,
};
use crate::{
    address::Address,
    error::{FailureKind, RemoteError},
};

/// Opens a store. As in Triton, `auth_type` selects the kind of credentials; without it the account's key is used, or none.
pub fn open(
    address: &Address,
    credential: &Credential,
    environment: &Environment,
    connector: Connector,
) -> Result<Store, RemoteError> {
    let get = |member, variable| credential.get(member, environment, variable);
    let account = get("account_str", "AZURE_STORAGE_ACCOUNT").or_else(|| address.account.clone());
    let mut builder = MicrosoftAzureBuilder::new()
        .with_account(account.unwrap_or_default())
        .with_container_name(&address.bucket)
        .with_retry(no_retries())
        .with_http_connector(connector);
    let endpoint = address.endpoint.clone().or_else(|| environment.text("AZURE_STORAGE_ENDPOINT"));
    if let Some(endpoint) = endpoint {
        builder = builder.with_allow_http(endpoint.starts_with("http://")).with_endpoint(endpoint);
    }
    let key = get("account_key", "AZURE_STORAGE_KEY");
    let key = key.or_else(|| get("account_key", "AZURE_STORAGE_ACCOUNT_KEY"));
    let builder = match (get("auth_type", "AZURE_STORAGE_AUTH_TYPE").as_deref(), key) {
        (Some("managed_identity"), _) => {
            let id = get("client_id", "AZURE_STORAGE_CLIENT_ID");
            let builder = of_machine(builder, environment).with_credential_type("managed_identity");
            id.into_iter().fold(builder, MicrosoftAzureBuilder::with_client_id)
        }
        (Some("default"), _) => of_environment(of_machine(builder, environment), environment),
        (Some("key") | None, Some(key)) => builder.with_access_key(key),
        (Some("key") | None, None) => match environment.text("AZURE_STORAGE_SAS_TOKEN") {
            Some(token) => builder.with_config(AzureConfigKey::SasKey, token),
            None => builder.with_skip_signature(true),
        },
        (Some(other), _) => {
            let text = format!(
                "AZURE_STORAGE_AUTH_TYPE (auth_type in a credential file) is \"key\", \"managed_identity\" or \"default\", \
                 not {other:?}"
            );
            return Err(RemoteError::new(FailureKind::Invalid, text));
        }
    };
    Ok(plain(builder.build().map_err(|error| not_opened(&error))?))
}

/// Sets the address of the service for the machine's identity, if it is not the usual one.
fn of_machine(builder: MicrosoftAzureBuilder, environment: &Environment) -> MicrosoftAzureBuilder {
    environment
        .text("IDENTITY_ENDPOINT")
        .into_iter()
        .fold(builder, MicrosoftAzureBuilder::with_msi_endpoint)
}

/// Uses the variables of Azure's default chain: a workload's identity, a client's secret; else the machine's identity.
fn of_environment(
    builder: MicrosoftAzureBuilder,
    environment: &Environment,
) -> MicrosoftAzureBuilder {
    let variables = [
        ("AZURE_CLIENT_ID", AzureConfigKey::ClientId),
        ("AZURE_CLIENT_SECRET", AzureConfigKey::ClientSecret),
        ("AZURE_TENANT_ID", AzureConfigKey::AuthorityId),
        ("AZURE_AUTHORITY_HOST", AzureConfigKey::AuthorityHost),
        ("AZURE_FEDERATED_TOKEN_FILE", AzureConfigKey::FederatedTokenFile),
    ];
    variables.into_iter().fold(builder, |builder, (name, key)| match environment.text(name) {
        Some(value) => builder.with_config(key, value),
        None => builder,
    })
}
