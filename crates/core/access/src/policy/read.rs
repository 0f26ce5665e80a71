//! Reads the text of a policy.

use std::sync::Arc;

use galatea_types::{Identity, suggest::nearest};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    CertificateRule, GrantTarget, OpenRoute, Policy, PolicyError,
    table::{Fields, PlacedValue, Result, Source, shown},
};
use crate::{
    digest::Digest,
    grantee::{Grant, IdentityProof},
    jwt::{JwtRules, KeySource, SigningAlgorithm},
    pattern::Pattern,
    role::{Role, RoleSet},
};

/// Longest policy, in bytes.
pub const MAX_POLICY: usize = 4 << 20;
/// Longest name of an identity, in bytes.
const MAX_NAME: usize = 256;
/// Largest allowed difference between clocks, in seconds.
const MAX_LEEWAY: u64 = 600;
/// Longest time between two fetches of an issuer's keys: a day, in seconds.
const MAX_REFRESH: u64 = 86_400;

const ROLES: &str = r#"["infer", "read"]"#;
const MODELS: &str = r#"["resnet*"]"#;

impl Policy {
    /// Reads the text of the file `file`. The first mistake is the error.
    pub fn parse(file: &str, text: &str) -> std::result::Result<Self, PolicyError> {
        let source = Source { file, text };
        if text.len() > MAX_POLICY {
            let reason = format!("the policy is longer than {MAX_POLICY} bytes");
            return Err(source.error(0..0, reason, "grant roles to patterns of names"));
        }
        let document = DeTable::parse(text).map_err(|error| {
            let message = error.message().replace('\n', ", ");
            source.error(error.span().unwrap_or(0..0), message, "the file must be TOML")
        })?;
        let known = ["keys", "certificates", "jwt", "grants", "open"];
        let root = Spanned::new(document.span(), document.get_ref());
        Fields::of(source, "the policy", root, &known)?;
        read(source, document.get_ref())
    }
}

fn read(source: Source<'_>, root: &DeTable<'_>) -> Result<Policy> {
    let mut policy = Policy::default();
    if let Some(open) = table(source, root, "open")? {
        policy.open = open_routes(&Fields::of(source, "[open]", open, &["routes"])?)?;
    }
    if let Some(jwt) = table(source, root, "jwt")? {
        policy.jwt = Some(jwt_rules(&Fields::of(source, "[jwt]", jwt, JWT)?)?);
    }
    for grant in tables(source, root, "grants")? {
        let known = ["identity", "group", "roles", "models"];
        let grant = named_grant(&Fields::of(source, "[[grants]]", grant, &known)?, &policy)?;
        policy.grants.push(grant);
    }
    for rule in tables(source, root, "certificates")? {
        let known = ["subject", "name", "roles", "models"];
        let rule = certificate(&Fields::of(source, "[[certificates]]", rule, &known)?)?;
        policy.certificates.push(rule);
    }
    for key in tables(source, root, "keys")? {
        let known = ["name", "sha256", "roles", "models", "expires"];
        read_key(&mut policy, &Fields::of(source, "[[keys]]", key, &known)?)?;
    }
    Ok(policy)
}

type Table<'s> = Spanned<&'s DeTable<'s>>;

fn as_table<'s>(value: &'s Spanned<DeValue<'s>>) -> Option<Table<'s>> {
    value.get_ref().as_table().map(|table| Spanned::new(value.span(), table))
}

fn table<'s>(source: Source<'_>, root: &'s DeTable<'s>, name: &str) -> Result<Option<Table<'s>>> {
    let Some(value) = root.get(name) else { return Ok(None) };
    as_table(value).map(Some).ok_or_else(|| {
        source.error(value.span(), format!("'{name}' must be one table"), format!("write [{name}]"))
    })
}

fn tables<'s>(source: Source<'_>, root: &'s DeTable<'s>, name: &str) -> Result<Vec<Table<'s>>> {
    let Some(value) = root.get(name) else { return Ok(Vec::new()) };
    let all = value.get_ref().as_array().map(|list| list.iter().map(as_table).collect());
    all.flatten().ok_or_else(|| {
        let text = format!("'{name}' must be a list of tables");
        source.error(value.span(), text, format!("write [[{name}]] before each"))
    })
}

/// Returns the values with these names. `wrong` returns text and advice for a name that is none of `known`.
fn named<T: Copy, const N: usize>(
    fields: &Fields<'_>,
    names: Option<Vec<PlacedValue<'_>>>,
    known: [T; N],
    name_of: fn(T) -> &'static str,
    wrong: impl Fn(&str) -> (String, String),
) -> Result<Option<Vec<T>>> {
    let Some(names) = names else { return Ok(None) };
    let meant = names.iter().map(|name| {
        known.into_iter().find(|one| name_of(*one) == name.value).ok_or_else(|| {
            let (text, advice) = wrong(name.value);
            fields.wrong_value(name, text, advice)
        })
    });
    meant.collect::<Result<_>>().map(Some)
}

fn open_routes(fields: &Fields<'_>) -> Result<Option<Vec<OpenRoute>>> {
    let wrong = |name: &str| {
        let known = OpenRoute::ALL.map(OpenRoute::name);
        (format!("'{}' cannot be open", shown(name)), advice(name, known, "these can be open: "))
    };
    let routes = fields.texts("routes", r#"["health"]"#)?;
    named(fields, routes, OpenRoute::ALL, OpenRoute::name, wrong)
}

/// Returns advice for a name that is none of `known`; `list` introduces the known names.
fn advice<const N: usize>(name: &str, known: [&str; N], list: &str) -> String {
    match nearest(name, known)[..] {
        [one, ..] => format!("did you mean \"{one}\"?"),
        [] => format!("{list}{}", known.join(", ")),
    }
}

/// Reads `roles` and `models`; `None` without roles.
fn grant(fields: &Fields<'_>) -> Result<Option<Grant>> {
    let models = models(fields)?;
    let wrong = |name: &str| {
        let advice = advice(name, Role::ALL.map(Role::name), "roles are ");
        (format!("there is no role '{}'", shown(name)), advice)
    };
    let roles = fields.texts("roles", ROLES)?;
    let Some(roles) = named(fields, roles, Role::ALL, Role::name, wrong)? else {
        if models.is_some() {
            let text = "'models' limits roles to models, but there are no 'roles'";
            return Err(fields.wrong("models", text, format!("add roles = {ROLES}")));
        }
        return Ok(None);
    };
    let roles: RoleSet = roles.into_iter().collect();
    if roles.is_empty() {
        return Err(fields.wrong("roles", "'roles' is empty", format!("write roles = {ROLES}")));
    }
    Ok(Some(Grant { roles, models: models.unwrap_or_else(every_model) }))
}

fn every_model() -> Arc<[Pattern]> {
    Arc::new([Pattern::new("*")])
}

fn models(fields: &Fields<'_>) -> Result<Option<Arc<[Pattern]>>> {
    let Some(names) = fields.texts("models", MODELS)? else { return Ok(None) };
    if names.is_empty() {
        let advice = format!("write models = {MODELS}, or leave it out for all");
        return Err(fields.wrong("models", "'models' is empty", advice));
    }
    Ok(Some(names.iter().map(|name| Pattern::new(name.value)).collect()))
}

fn named_grant(fields: &Fields<'_>, policy: &Policy) -> Result<(GrantTarget, Grant)> {
    let identity = fields.text("identity", r#""ci-*""#)?;
    let group = fields.text("group", r#""ml-team""#)?;
    let whose = match (identity, group) {
        (Some(name), None) => GrantTarget::Identity(Pattern::new(name.value)),
        (None, Some(name)) => {
            let claim = policy.jwt.as_ref().and_then(|jwt| jwt.roles_claim.as_ref());
            if claim.is_none() {
                let text = "no token can name a group";
                let advice = r#"say in [jwt] which claim does: roles_claim = "groups""#;
                return Err(fields.wrong("group", text, advice));
            }
            GrantTarget::Group(Pattern::new(name.value))
        }
        _ => {
            let text = "[[grants]] needs one of 'identity' and 'group'";
            return Err(fields.wrong("group", text, r#"write identity = "*" for everyone"#));
        }
    };
    let missing =
        || fields.wrong("roles", "[[grants]] has no 'roles'", format!("add roles = {ROLES}"));
    Ok((whose, grant(fields)?.ok_or_else(missing)?))
}

fn certificate(fields: &Fields<'_>) -> Result<CertificateRule> {
    let subject = fields.needed_text("subject", r#""CN=trainer,O=Example""#)?;
    if !subject.value.contains('=') {
        let text = format!("'{}' is not the subject of a certificate", shown(subject.value));
        let advice =
            "write it as openssl x509 -noout -subject -nameopt RFC2253 prints it: CN=...,O=...";
        return Err(fields.wrong("subject", text, advice));
    }
    let name = fields.text("name", r#""trainer""#)?.map(|name| name.value);
    if let Some(name) = name {
        check_name(fields, name)?;
    }
    Ok(CertificateRule {
        subject: Pattern::new(subject.value),
        name: name.map(Into::into),
        grants: grant(fields)?.into_iter().collect(),
    })
}

/// Checks a name, which is logged and sent to its owner.
fn check_name(fields: &Fields<'_>, name: &str) -> Result<()> {
    if name.len() <= MAX_NAME && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let text = format!("a name has at most {MAX_NAME} bytes and no control characters");
    Err(fields.wrong("name", text, "choose another one"))
}

fn read_key(policy: &mut Policy, fields: &Fields<'_>) -> Result<()> {
    let name = fields.needed_text("name", r#""trainer""#)?.value;
    check_name(fields, name)?;
    let sha256 = fields.needed_text("sha256", r#""..." as `galatea auth key` prints it"#)?;
    let digest = Digest::parse(sha256.value).ok_or_else(|| {
        let text = format!("'sha256' of key '{name}' must be 64 hexadecimal digits");
        let advice = "put there what `galatea auth key` prints, never the key itself";
        fields.wrong("sha256", text, advice)
    })?;
    // Two keys of one name belong to one client: the old and the new key during a change.
    if policy.keys.contains_key(&digest) {
        let text = format!("the key of '{name}' is listed twice");
        return Err(fields.wrong("sha256", text, "remove one of the two"));
    }
    let own = grant(fields)?.into_iter().collect();
    let grantee = policy.grantee(
        Identity::new("keys", name),
        IdentityProof::Key(digest),
        own,
        fields.second("expires")?,
    );
    policy.keys.insert(digest, Arc::new(grantee));
    Ok(())
}

const JWT: &[&str] = &[
    "issuer",
    "audience",
    "jwks_file",
    "jwks_url",
    "algorithms",
    "leeway_secs",
    "refresh_secs",
    "identity_claim",
    "roles_claim",
    "models",
];

fn jwt_rules(fields: &Fields<'_>) -> Result<JwtRules> {
    let issuer = fields.needed_text("issuer", r#""https://login.example.com/""#)?;
    let audience = fields.texts("audience", r#""galatea""#)?.unwrap_or_default();
    if audience.is_empty() {
        let text = "[jwt] has no 'audience': tokens for other services would be accepted";
        return Err(fields.wrong("audience", text, r#"add audience = "galatea""#));
    }
    let claim = |name, default: Option<&str>| -> Result<Option<String>> {
        let given = fields.text(name, r#""sub""#)?.map(|claim| claim.value);
        Ok(given.or(default).map(str::to_owned))
    };
    Ok(JwtRules {
        issuer: issuer.value.to_owned(),
        audience: audience.iter().map(|one| one.value.to_owned()).collect(),
        keys: key_source(fields)?,
        algorithms: algorithms(fields)?,
        leeway: fields.number("leeway_secs", MAX_LEEWAY, 60)?,
        identity_claim: claim("identity_claim", Some("sub"))?.unwrap_or_default(),
        roles_claim: claim("roles_claim", None)?,
        models: models(fields)?.unwrap_or_else(every_model),
    })
}

fn algorithms(fields: &Fields<'_>) -> Result<Vec<SigningAlgorithm>> {
    const ALL: [SigningAlgorithm; 3] = SigningAlgorithm::ALL;
    let wrong = |name: &str| {
        let text = format!("tokens signed by '{}' are not accepted", shown(name));
        (text, "algorithms are RS256, ES256, EdDSA".to_owned())
    };
    let names = fields.texts("algorithms", r#"["RS256", "ES256", "EdDSA"]"#)?;
    match named(fields, names, ALL, SigningAlgorithm::name, wrong)? {
        None => Ok(ALL.to_vec()),
        Some(all) if all.is_empty() => {
            Err(fields.wrong("algorithms", "'algorithms' is empty", "leave it out for all"))
        }
        Some(all) => Ok(all),
    }
}

fn key_source(fields: &Fields<'_>) -> Result<KeySource> {
    let file = fields.text("jwks_file", r#""jwks.json""#)?;
    let url = fields.text("jwks_url", r#""https://login.example.com/jwks.json""#)?;
    let refresh = fields.number("refresh_secs", MAX_REFRESH, 300)?.max(1);
    match (file, url) {
        (Some(file), None) => Ok(KeySource::File(file.value.to_owned())),
        (None, Some(url)) if is_safe_url(url.value) => {
            Ok(KeySource::Url { url: url.value.to_owned(), refresh_secs: refresh })
        }
        (None, Some(_)) => {
            let text =
                "'jwks_url' must be https: whoever can answer in its place could sign tokens";
            Err(fields.wrong(
                "jwks_url",
                text,
                "http is accepted on this machine only (http://127.0.0.1:...)",
            ))
        }
        _ => {
            let text = "[jwt] needs one of 'jwks_file' and 'jwks_url': the keys that sign tokens";
            Err(fields.wrong("jwks_url", text, r#"add jwks_url = "https://..."#))
        }
    }
}

fn is_safe_url(url: &str) -> bool {
    if url.starts_with("https://") {
        return true;
    }
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    // A name before an `@` would hide the host.
    !authority.contains('@') && matches!(host, "127.0.0.1" | "::1" | "localhost")
}

#[cfg(test)]
mod tests {
    use super::is_safe_url;

    #[test]
    fn key_addresses_must_be_https_or_local() {
        for good in
            ["https://a/jwks", "http://127.0.0.1:1/", "http://localhost", "http://[::1]:80/k"]
        {
            assert!(is_safe_url(good), "{good}");
        }
        for bad in [
            "http://a/",
            "ftp://127.0.0.1",
            "http://127.0.0.1@evil/",
            "http://127.0.0.1.evil/",
            "x",
        ] {
            assert!(!is_safe_url(bad), "{bad}");
        }
    }
}
