//! `/docs`: a page that renders `openapi.json`, and the files that it is made of.
//!
//! The renderer is Swagger UI, unchanged from its package (`.ci/docs-renderer`) and embedded compressed. The page
//! loads only files that the gateway serves, runs no inline scripts, and cannot be framed. The browser enforces
//! this ([`POLICY`]). All addresses in it are relative, so it also works below a path prefix.
//!
//! The names of files change with their content, so a browser may cache them permanently.

use std::{
    io::Read as _,
    sync::{LazyLock, OnceLock},
};

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{
        ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
        REFERRER_POLICY, VARY,
    },
    web,
};
use flate2::read::GzDecoder;

use super::documents::fingerprint;
use crate::ApiError;

/// `data:` allows the pictures in the renderer's styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let script = "text/javascript; charset=utf-8";
    let style = "text/css; charset=utf-8";
    vec![
        File::new(
            "swagger-ui.js",
            script,
            Content::Packed {
                gzip: include_bytes!("../docs/swagger-ui/swagger-ui-bundle.js.gz"),
                brotli: include_bytes!("../docs/swagger-ui/swagger-ui-bundle.js.br"),
            },
        ),
        File::new(
            "swagger-ui.css",
            style,
            Content::Packed {
                gzip: include_bytes!("../docs/swagger-ui/swagger-ui.css.gz"),
                brotli: include_bytes!("../docs/swagger-ui/swagger-ui.css.br"),
            },
        ),
        File::new(
            "docs.js",
            script,
            Content::Plain(include_bytes!("../docs/docs.js")),
        ),
        File::new(
            "docs.css",
            style,
            Content::Plain(include_bytes!("../docs/docs.css")),
        ),
    ]
});

static PAGE: LazyLock<String> = LazyLock::new(|| {
    let page = include_str!("../docs/index.html").to_owned();
    FILES.iter().fold(page, |page, file| {
        page.replace(&format!("{{{{{}}}}}", file.plain_name), &file.name)
    })
});

struct File {
    plain_name: &'static str,
    /// Contains the fingerprint of the content.
    name: String,
    content_type: &'static str,
    content: Content,
    /// Decompressed content, for the rare client that accepts neither encoding.
    unpacked: OnceLock<Vec<u8>>,
}

#[derive(Clone, Copy)]
enum Content {
    Plain(&'static [u8]),
    /// Compressed in advance, because compressing for every request would let clients keep the CPU busy.
    Packed {
        gzip: &'static [u8],
        brotli: &'static [u8],
    },
}

impl File {
    fn new(plain_name: &'static str, content_type: &'static str, content: Content) -> Self {
        let (Content::Plain(bytes) | Content::Packed { gzip: bytes, .. }) = content;
        let (stem, extension) = plain_name.rsplit_once('.').unwrap_or((plain_name, ""));
        Self {
            plain_name,
            name: format!("{stem}.{}.{extension}", fingerprint(bytes)),
            content_type,
            content,
            unpacked: OnceLock::new(),
        }
    }
}

/// `GET /docs`
pub(crate) async fn page() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header((CACHE_CONTROL, "no-cache"))
        .body(PAGE.as_str())
}

/// `GET /docs/{file}`
pub(crate) async fn file(
    request: HttpRequest,
    name: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let file = FILES
        .iter()
        .find(|file| file.name == *name)
        .ok_or(ApiError::NotFound("path"))?;
    let mut answer = HttpResponse::Ok();
    answer
        .insert_header((CONTENT_TYPE, file.content_type))
        .insert_header((CACHE_CONTROL, "public, max-age=31536000, immutable"));
    match file.content {
        Content::Plain(bytes) => Ok(answer.body(bytes)),
        Content::Packed { gzip, brotli } => {
            answer.insert_header((VARY, "accept-encoding"));
            let (coding, bytes) = match coding(&request) {
                Some("br") => ("br", brotli),
                Some("gzip") => ("gzip", gzip),
                _ => (
                    "identity",
                    file.unpacked.get_or_init(|| unpack(gzip)).as_slice(),
                ),
            };
            // Set for uncompressed files too, to prevent compression.
            answer.insert_header((CONTENT_ENCODING, coding));
            Ok(answer.body(bytes))
        }
    }
}

/// Returns the one encoding that `observe` has chosen for the client.
fn coding(request: &HttpRequest) -> Option<&str> {
    request.headers().get(ACCEPT_ENCODING)?.to_str().ok()
}

fn unpack(bytes: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    GzDecoder::new(bytes)
        .read_to_end(&mut unpacked)
        .expect("tests unpack the same bytes");
    unpacked
}

#[cfg(test)]
mod tests {
    use super::{FILES, PAGE};

    #[test]
    fn docs_page_refers_to_every_file_and_nothing_else() {
        for file in &*FILES {
            assert!(PAGE.contains(&format!("\"docs/{}\"", file.name)));
        }
        assert!(!PAGE.contains("{{"), "{}", *PAGE);
        assert!(!PAGE.contains("//"), "an address of another origin");
    }
}
