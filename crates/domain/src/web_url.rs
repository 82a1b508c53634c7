//! web_url
