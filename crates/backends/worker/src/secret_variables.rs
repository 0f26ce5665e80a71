//! The names of environment variables that hold secrets: one list for every kind of worker.

/// Whole names.
const NAMES: &str = "\
    AMQP_URL BOTO_CONFIG BROKER_URL CELERY_BROKER_URL DATABASE_URL DOCKER_AUTH_CONFIG DOCKER_CONFIG GNUPGHOME \
    GOOGLE_APPLICATION_CREDENTIALS GPG_AGENT_INFO HF_TOKEN_PATH KUBECONFIG MONGODB_URI MONGO_URL MYSQL_PWD NETRC \
    PGPASSFILE PIP_EXTRA_INDEX_URL PIP_INDEX_URL POSTGRES_URL REDIS_URL SSH_AUTH_SOCK UV_EXTRA_INDEX_URL UV_INDEX_URL";

/// Beginnings of names: a cloud's tools use such variables for credentials, or for paths to them.
const PREFIXES: &str = "ALIBABA_CLOUD_ ARM_CLIENT_ AWS_ AZURE_ CLOUDSDK_AUTH_ OCI_CLI_ VAULT_";

/// Texts anywhere in a name.
const PARTS: &str = "\
    ACCESS_KEY APIKEY API_KEY CREDENTIAL PASSPHRASE PASSWD PASSWORD PRIVATE_KEY SECRET";

/// Ends of names.
const SUFFIXES: &str = "AUTH CONNECTION_STRING DATABASE_URL _DSN _KEY _PAT _SAS TOKEN";

/// Names that are not secret, though their beginnings are.
const PLAIN: &str = "\
    AWS_CA_BUNDLE AWS_DEFAULT_REGION AWS_EC2_METADATA_DISABLED AWS_REGION AZURE_CLOUD_NAME";

/// Returns true if a variable's name says that its value, or the file it leads to, is secret. Upper and lower case are the
/// same, as some programs read `http_token` like `HTTP_TOKEN`.
pub fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_secret = words(NAMES).any(|known| known == name)
        || words(PREFIXES).any(|prefix| name.starts_with(prefix))
        || words(PARTS).any(|part| name.contains(part))
        || words(SUFFIXES).any(|suffix| name.ends_with(suffix));
    is_secret && words(PLAIN).all(|plain| plain != name)
}

fn words(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognized_by_their_names() {
        for name in [
            "AWS_ACCESS_KEY_ID",
            "AWS_PROFILE",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AZURE_STORAGE_KEY",
            "AZURE_STORAGE_SAS_TOKEN",
            "DATABASE_URL",
            "GALATEA_LICENCE_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_MAPS_KEY",
            "GOOGLE_OAUTH_TOKEN",
            "HF_TOKEN",
            "HUGGING_FACE_HUB_TOKEN",
            "MY_DATABASE_URL",
            "OPENAI_API_KEY",
            "PGPASSWORD",
            "SENTRY_DSN",
            "SIGNING_PRIVATE_KEY_FILE",
            "TRITON_AWS_MOUNT_DIRECTORY_SECRET",
            "TRITON_CLOUD_CREDENTIAL_PATH",
            "github_token",
        ] {
            assert!(is_secret_variable(name), "{name}");
        }
    }

    #[test]
    fn variables_of_libraries_and_models_are_not_secret() {
        for name in [
            "AWS_CA_BUNDLE",
            "AWS_REGION",
            "CUDA_VISIBLE_DEVICES",
            "GALATEA_HOME",
            "HF_HOME",
            "HOME",
            "HTTPS_PROXY",
            "LD_LIBRARY_PATH",
            "MAX_TOKENS",
            "MODEL_DIRECTORY",
            "OMP_NUM_THREADS",
            "PATH",
            "PYTHONPATH",
            "PYTORCH_CUDA_ALLOC_CONF",
            "TOKENIZERS_PARALLELISM",
            "TRITON_CACHE_DIR",
            "VIRTUAL_ENV",
        ] {
            assert!(!is_secret_variable(name), "{name}");
        }
    }
}
