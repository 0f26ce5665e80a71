//! Finds a file on a package index by its exact name: the simple API, as JSON (PEP 691) or HTML (PEP 503).

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use url::Url;

/// Content types to accept from an index.
pub(crate) const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// Returns the address of `filename` on a project page that came from `base`.
pub(crate) fn find_link(
    base: &str,
    content_type: &str,
    page: &str,
    filename: &str,
) -> Option<String> {
    let link = if content_type.contains("json") {
        find_in_json(page, filename)?
    } else {
        find_in_html(page, filename)?
    };
    let link = link.split('#').next().unwrap_or_default();
    Some(Url::parse(base).ok()?.join(link).ok()?.into())
}

#[derive(Deserialize)]
struct Project {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    filename: String,
    url: String,
}

fn find_in_json(page: &str, filename: &str) -> Option<String> {
    let project: Project = serde_json::from_str(page).ok()?;
    project.files.into_iter().find(|f| f.filename == filename).map(|f| f.url)
}

fn find_in_html(page: &str, filename: &str) -> Option<String> {
    links(page).find(|link| file_name(link) == filename)
}

/// Returns the values of all `href` attributes.
fn links(page: &str) -> impl Iterator<Item = String> {
    page.split("href").skip(1).filter_map(|rest| {
        let rest = rest.trim_start().strip_prefix('=')?.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let link = rest.get(1..)?.split(quote).next()?;
        Some(link.replace("&amp;", "&"))
    })
}

fn file_name(link: &str) -> String {
    let path = link.split(['#', '?']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    percent_decode_str(name).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "a-1.0-cp311-manylinux_2_28_x86_64.whl";

    #[track_caller]
    fn check(base: &str, content_type: &str, page: &str, expected: Option<&str>) {
        assert_eq!(find_link(base, content_type, page, NAME).as_deref(), expected);
    }

    #[test]
    fn json_index_pages_are_parsed() {
        let page = format!(
            r#"{{"meta":{{}},"files":[{{"filename":"a-0.9.whl","url":"https://f/a-0.9.whl"}},
               {{"filename":"{NAME}","url":"../../p/{NAME}","hashes":{{}}}}]}}"#
        );
        let expected = format!("https://h/p/{NAME}");
        check("https://h/simple/a/", "application/vnd.pypi.simple.v1+json", &page, Some(&expected));
        check("https://h/simple/a/", "application/json", "{}", None);
    }

    #[test]
    fn html_index_pages_are_parsed() {
        let base = "http://user:pass@h:81/x/simple/a/";
        let page = |link: &str| {
            format!("<html><a href=\"a-0.9.whl\">a</a><a class='b' href=\"{link}\">b</a>")
        };
        let absolute = format!("https://f.example/p/{NAME}#sha256=00");
        check(base, "text/html", &page(&absolute), Some(&format!("https://f.example/p/{NAME}")));
        let escaped = NAME.replace('_', "%5F");
        let expected = format!("http://user:pass@h:81/x/simple/a/{escaped}");
        check(base, "text/html", &page(&escaped), Some(&expected));
        let expected = format!("http://user:pass@h:81/p/{NAME}?a=1&b=2");
        check(base, "text/html", &page(&format!("/p/{NAME}?a=1&amp;b=2")), Some(&expected));
        check(base, "text/html", &page("other.whl"), None);
        check(base, "text/html", "no links", None);
    }
}
