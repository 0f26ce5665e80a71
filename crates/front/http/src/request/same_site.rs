//! Requests that a page of another site makes its visitor's browser send. Such a page cannot read the answers, but must
//! not change anything in a visitor's name.

use galatea_http1::RequestHead;
use galatea_types::Error;

use crate::response::{
    Response,
    answers::{JSON, forbidden},
};

/// The header in which browsers state the site of the page. Pages cannot change it; other clients do not send it.
const FETCH_SITE: &str = "sec-fetch-site";

/// Refuses a request of another site's page, even if that site is another port of this host.
pub(crate) fn refusal(headers: &RequestHead) -> Option<Response> {
    let site = headers.get(FETCH_SITE)?;
    let is_foreign = site != b"same-origin" && site != b"none";
    is_foreign.then(|| {
        forbidden(Error::invalid_arg(
            "this call is refused to pages of other sites: the browser sent it with 'Sec-Fetch-Site: cross-site' or \
             'same-site'; make it from the server's own page or from a program",
        ), JSON)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::sent_head;

    #[test]
    fn only_requests_of_pages_from_other_sites_are_refused() {
        assert!(refusal(&sent_head::with(&[])).is_none());
        for (site, is_refused) in
            [("same-origin", false), ("none", false), ("same-site", true), ("cross-site", true)]
        {
            let headers = sent_head::with(&[("Sec-Fetch-Site", site)]);
            assert_eq!(refusal(&headers).is_some(), is_refused, "{site}");
        }
    }
}
