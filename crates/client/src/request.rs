//! One request, before it is sent.

use reqwest::Method;
use serde_json::Value;
use url::Url;

use crate::Error;

/// The changes to a resource.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    pub body: &'a Value,
    /// Value of `updateMask`.
    pub mask: Option<&'a str>,
}

#[derive(Debug, Clone)]
pub struct Request {
    pub(crate) method: Method,
    path: String,
    query: Vec<(String, String)>,
    pub(crate) body: Option<String>,
    pub(crate) idempotency_key: Option<String>,
}

impl Request {
    /// `path` is the part after `/v1/`, for example a resource's name.
    pub fn new(method: Method, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            query: Vec::new(),
            body: None,
            idempotency_key: None,
        }
    }

    pub fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    #[must_use]
    pub fn query(mut self, parameters: impl IntoIterator<Item = (String, String)>) -> Self {
        self.query.extend(parameters);
        self
    }

    #[must_use]
    pub fn json(mut self, body: &Value) -> Self {
        self.body = Some(body.to_string());
        self
    }

    /// Makes a create request safe to repeat.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.idempotent_by(format!("{:032x}", rand::random::<u128>()))
    }

    /// Like [`Request::idempotent`], with a key that a later run can repeat.
    #[must_use]
    pub fn idempotent_by(mut self, key: String) -> Self {
        self.idempotency_key = Some(key);
        self
    }

    /// Returns true if the request may be sent again after this error.
    pub(crate) fn may_be_repeated(&self, error: &Error) -> bool {
        // The rate limit refuses before anything is done. A POST can be refused for other reasons, too.
        let limited = error.refusal().is_some_and(|it| it.status == 429);
        self.method == Method::GET
            // It stores nothing.
            || self.path.ends_with(":preview")
            || self.idempotency_key.is_some()
            || (limited && matches!(self.method, Method::PATCH | Method::DELETE))
    }

    /// The URL, which is always below `/v1/`, for any path.
    pub(crate) fn url(&self, base: &Url) -> Url {
        let mut url = base.clone();
        let last = base.path().trim_end_matches('/').rsplit('/').next();
        let has_version = last == Some("v1");
        url.set_query(None);
        url.set_fragment(None);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            if !has_version {
                segments.push("v1");
            }
            // A segment of dots would point to the parent.
            let parts = self.path.split('/').filter(|part| !is_dots(part));
            segments.extend(parts);
        }
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        url
    }
}

fn is_dots(part: &str) -> bool {
    matches!(part, "." | "..")
}

#[cfg(test)]
mod tests {
    use reqwest::Method;

    use super::Request;

    #[test]
    fn paths_stay_below_the_version() {
        for (base, path, expected) in [
            ("http://a", "namespaces", "http://a/v1/namespaces"),
            (
                "http://a/x/",
                "namespaces/n:m",
                "http://a/x/v1/namespaces/n:m",
            ),
            ("http://a/v1", "namespaces", "http://a/v1/namespaces"),
            ("http://a/x/v1/", "namespaces", "http://a/x/v1/namespaces"),
            ("http://a/xv1/", "namespaces", "http://a/xv1/v1/namespaces"),
            ("http://a?b#c", "n/../../x", "http://a/v1/n/x"),
            ("http://a", "n/a?b#c d", "http://a/v1/n/a%3Fb%23c%20d"),
        ] {
            let request = Request::new(Method::GET, path);
            let base = base.parse().unwrap();
            assert_eq!(request.url(&base).as_str(), expected);
        }
    }
}
