//! pip's settings for package indexes on this machine, from the environment first, then from its configuration files.

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use galatea_types::Environment;

const PUBLIC_INDEX: &str = "https://pypi.org/simple";
const TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of pip that affect the source and the download of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipSettings {
    /// Indexes in the order to ask.
    pub indexes: Vec<String>,
    /// Folders that may contain the file already.
    pub folders: Vec<PathBuf>,
    /// File of certificates to trust instead of the system's.
    pub certificates: Option<PathBuf>,
    /// Proxy from `--proxy`; others come from the usual variables.
    pub proxy: Option<String>,
    /// Time limit for connecting, and for each read.
    pub timeout: Duration,
}

impl PipSettings {
    /// Reads the settings from these variables and the configuration files that they name.
    pub fn read(environment: &Environment) -> Self {
        let files = FileSettings::read(environment);
        let get = |variable: &str, key: &str| {
            environment.text(variable).or_else(|| files.get(key).map(str::to_owned))
        };
        let is_offline = get("PIP_NO_INDEX", "no-index").is_some_and(|v| is_true(&v));
        let mut indexes = Vec::new();
        if !is_offline {
            let main = get("PIP_INDEX_URL", "index-url");
            indexes.push(main.unwrap_or_else(|| PUBLIC_INDEX.to_owned()));
            indexes.extend(words(get("PIP_EXTRA_INDEX_URL", "extra-index-url")));
        }
        let folders = words(get("PIP_FIND_LINKS", "find-links"));
        let certificates = ["PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"];
        let timeout = get("PIP_DEFAULT_TIMEOUT", "timeout").and_then(|t| t.trim().parse().ok());
        Self {
            indexes,
            folders: folders.iter().filter_map(|f| local_folder(f)).collect(),
            certificates: environment
                .path(certificates[0])
                .or_else(|| files.get("cert").map(PathBuf::from))
                .or_else(|| certificates.iter().find_map(|v| environment.path(v))),
            proxy: get("PIP_PROXY", "proxy"),
            timeout: timeout.map_or(TIMEOUT, Duration::from_secs),
        }
    }
}

fn words(text: Option<String>) -> Vec<String> {
    text.map(|t| t.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
}

fn is_true(text: &str) -> bool {
    matches!(text.trim().to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on" | "y" | "t")
}

/// Returns the folder of a link. Pages of links elsewhere are left to pip itself.
fn local_folder(link: &str) -> Option<PathBuf> {
    let path = link.strip_prefix("file://").unwrap_or(link);
    (!path.contains("://")).then(|| PathBuf::from(path))
}

/// pip's configuration files. Later ones override earlier ones, and `[install]` overrides `[global]`.
struct FileSettings {
    sections: BTreeMap<(String, String), String>,
}

impl FileSettings {
    fn read(environment: &Environment) -> Self {
        let mut sections = BTreeMap::new();
        for path in paths(environment) {
            if let Ok(text) = fs::read_to_string(path) {
                parse(&text, &mut sections);
            }
        }
        Self { sections }
    }

    fn get(&self, key: &str) -> Option<&str> {
        let of = |section: &str| self.sections.get(&(section.to_owned(), key.to_owned()));
        of("download").or_else(|| of("install")).or_else(|| of("global")).map(String::as_str)
    }
}

fn paths(environment: &Environment) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from("/etc/xdg/pip/pip.conf"), PathBuf::from("/etc/pip.conf")];
    if let Some(home) = environment.path("HOME") {
        paths.push(home.join(".pip/pip.conf"));
        let config = environment.path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        paths.push(config.join("pip/pip.conf"));
    }
    paths.extend(environment.path("VIRTUAL_ENV").map(|v| v.join("pip.conf")));
    match environment.path("PIP_CONFIG_FILE") {
        // By pip's documentation this means that no file is read.
        Some(file) if file.as_os_str() == "/dev/null" => paths.clear(),
        file => paths.extend(file),
    }
    paths
}

/// Parses the usual form: `[section]`, `key = value`, comments, and values that continue on indented lines.
fn parse(text: &str, sections: &mut BTreeMap<(String, String), String>) {
    let mut section = String::new();
    let mut last: Option<(String, String)> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            section = name.trim().to_ascii_lowercase();
            last = None;
        } else if line.starts_with([' ', '\t'])
            && let Some(value) = last.as_ref().and_then(|k| sections.get_mut(k))
        {
            value.push(' ');
            value.push_str(trimmed);
        } else if let Some((key, value)) = trimmed.split_once(['=', ':']) {
            let key = (section.clone(), key.trim().to_ascii_lowercase().replace('_', "-"));
            sections.insert(key.clone(), value.trim().to_owned());
            last = Some(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_index_is_the_default() {
        let settings = PipSettings::read(&Environment::of([("PIP_CONFIG_FILE", "/dev/null")]));
        assert_eq!(settings.indexes, [PUBLIC_INDEX]);
        assert_eq!((settings.certificates, settings.proxy), (None, None));
    }

    #[test]
    fn pip_files_are_read_and_the_environment_overrides_them() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("pip.conf");
        let text = "# mine\n[global]\nindex-url = https://a.example/simple\ncert: /a.pem\n\
                    extra_index_url =\n    https://b.example/simple\n    https://c.example/simple\n\
                    [install]\nfind-links = /wheels https://d.example/links\n";
        fs::write(&file, text).expect("written");
        let mut variables = vec![("PIP_CONFIG_FILE", file.to_str().expect("text"))];
        let settings = PipSettings::read(&Environment::of(variables.clone()));
        let indexes =
            ["https://a.example/simple", "https://b.example/simple", "https://c.example/simple"];
        assert_eq!(settings.indexes, indexes);
        assert_eq!(settings.folders, [PathBuf::from("/wheels")]);
        assert_eq!(settings.certificates, Some("/a.pem".into()));

        variables.push(("PIP_INDEX_URL", "https://e.example/simple"));
        variables.push(("PIP_CERT", "/e.pem"));
        variables.push(("PIP_DEFAULT_TIMEOUT", "7"));
        let settings = PipSettings::read(&Environment::of(variables));
        assert_eq!(settings.indexes[0], "https://e.example/simple");
        assert_eq!(settings.certificates, Some("/e.pem".into()));
        assert_eq!(settings.timeout, Duration::from_secs(7));
    }

    #[test]
    fn no_index_leaves_only_find_links_folders() {
        let variables =
            [("PIP_CONFIG_FILE", "/dev/null"), ("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", "/w")];
        let settings = PipSettings::read(&Environment::of(variables));
        assert!(settings.indexes.is_empty());
        assert_eq!(settings.folders, [PathBuf::from("/w")]);
    }
}
