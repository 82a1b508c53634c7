//! A page that has been read, with its address.

use url::Url;

use crate::extract::{self, PageText, Unreadable};

/// A page that has been read.
#[derive(Debug, Clone)]
pub struct Page {
    pub url: Url,
    pub text: PageText,
}

impl Page {
    /// # Errors
    /// Fails when the page has no usable text.
    pub fn read(url: &Url, content_type: Option<&str>, body: &[u8]) -> Result<Self, Unreadable> {
        let text = extract::extract(url, content_type, body)?;
        let url = url.clone();
        Ok(Self { url, text })
    }
}
