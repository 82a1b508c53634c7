//! `/console/`: the web console, which is a client of the public API like any other.
//!
//! Its files are in `console/dist` and embedded by `build.rs`. The page loads only files from its own folder, runs
//! no inline scripts, never treats text as markup, and cannot be framed. The browser enforces this ([`POLICY`]).
//! All addresses in it are relative, so it also works below a path prefix.
//!
//! The page is requested each time. The names of all other files change with their content, so a browser may cache
//! them permanently. A file is compressed once per encoding, when the first browser asks for it.
//!
//! `[gateway] console = false` disables it.

use std::sync::LazyLock;

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
        REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    },
    web::{self, Data},
};

use crate::{ApiError, packed::Packed, state::AppState};

const PAGE: &str = "index.html";
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
static EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/console.rs"));

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let files = EMBEDDED.iter();
    files.map(|(name, bytes)| File::new(name, bytes)).collect()
});

struct File {
    name: &'static str,
    content_type: &'static str,
    content: Packed,
}

impl File {
    fn new(name: &'static str, bytes: &'static [u8]) -> Self {
        let content_type = match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("txt") => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        };
        Self {
            name,
            content_type,
            content: Packed::new(bytes),
        }
    }

    fn find(name: &str) -> Option<&'static Self> {
        FILES.iter().find(|file| file.name == name)
    }

    fn answer(
        &'static self,
        request: &HttpRequest,
        mut answer: HttpResponseBuilder,
    ) -> HttpResponse {
        answer.insert_header((CONTENT_TYPE, self.content_type));
        self.content.answer(request, answer)
    }
}

/// `GET /console`: redirects to the page, whose addresses are relative to its folder.
pub(crate) async fn folder(state: Data<AppState>) -> Result<HttpResponse, ApiError> {
    allowed(&state)?;
    let mut answer = HttpResponse::PermanentRedirect();
    // A relative address keeps a path prefix.
    answer.insert_header((LOCATION, "console/"));
    // If a browser cached it, it would keep redirecting after the console was disabled.
    answer.insert_header((CACHE_CONTROL, "no-store"));
    Ok(answer.finish())
}

/// `GET /console/`
pub(crate) async fn page(
    state: Data<AppState>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    allowed(&state)?;
    let page = File::find(PAGE).ok_or(ApiError::NotFound("path"))?;
    Ok(page.answer(&request, head("no-store")))
}

/// `GET /console/{file}`
pub(crate) async fn file(
    state: Data<AppState>,
    request: HttpRequest,
    name: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    allowed(&state)?;
    let file = File::find(&name)
        .filter(|file| file.name != PAGE)
        .ok_or(ApiError::NotFound("path"))?;
    Ok(file.answer(&request, head("public, max-age=31536000, immutable")))
}

fn allowed(state: &AppState) -> Result<(), ApiError> {
    if state.serves_console {
        Ok(())
    } else {
        Err(ApiError::NotFound("path"))
    }
}

/// Headers of every response to the browser, including scripts, because each can be opened by itself.
fn head(caching: &'static str) -> HttpResponseBuilder {
    let mut answer = HttpResponse::Ok();
    answer
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((OPENER_POLICY, HeaderValue::from_static("same-origin")))
        .insert_header((CACHE_CONTROL, caching));
    answer
}

#[cfg(test)]
mod tests {
    use super::{FILES, File, PAGE};

    #[test]
    fn page_refers_only_to_existing_local_files() {
        let page = std::str::from_utf8(File::find(PAGE).unwrap().content.bytes()).unwrap();
        let named: Vec<_> = ["src=\"", "href=\""]
            .into_iter()
            .flat_map(|attribute| page.split(attribute).skip(1))
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(named.iter().any(|name| name.ends_with(".js")), "{page}");
        assert!(named.iter().any(|name| name.ends_with(".css")), "{page}");
        for name in named {
            assert!(File::find(name).is_some(), "{name}");
        }
        assert!(!page.contains("//"), "an address of another origin");
        // The policy forbids inline styles.
        assert!(!page.contains("style=") && !page.contains("<style"));
        assert_eq!(
            page.matches("<script").count(),
            page.matches("src=").count()
        );
    }

    #[test]
    fn files_have_a_content_type_and_a_hash_in_their_name() {
        for file in FILES.iter() {
            assert_ne!(
                file.content_type, "application/octet-stream",
                "{}",
                file.name
            );
            let hashed = file.name.split('.').count() >= 3;
            assert!(hashed || file.name == PAGE, "{}", file.name);
        }
    }
}
