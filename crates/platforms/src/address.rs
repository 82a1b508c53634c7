//! Addresses of requests.

use url::Url;

/// Appends `path` to `base`, which may end in a slash.
pub(crate) fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}
