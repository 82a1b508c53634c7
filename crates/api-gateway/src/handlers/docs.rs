//! `/docs`: a page that renders `openapi.json`, and the files that it is made of.
//!
//! The renderer is Swagger UI as its package holds it (`.ci/docs-renderer`), embedded compressed. The page
//! may load nothing but what the gateway itself serves, run nothing that stands inside of it, and be
//! framed by no one; the browser holds it to that ([`POLICY`]). All its addresses are relative, so it
//! works below a path prefix too.
//!
//! The names of files change with their content, so a browser may keep them permanently.

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

/// `data:` are the pictures within the renderer's styles.
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
    /// With the fingerprint of the content in it.
    name: String,
    content_type: &'static str,
    content: Content,
    /// For the rare client that takes neither coding.
    unpacked: OnceLock<Vec<u8>>,
}

#[derive(Clone, Copy)]
enum Content {
    Plain(&'static [u8]),
    /// The same, packed beforehand: to pack it for each who asks would be a way to keep us busy.
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
            // Said of the plain bytes too, it keeps the compression off them.
            answer.insert_header((CONTENT_ENCODING, coding));
            Ok(answer.body(bytes))
        }
    }
}

/// The one encoding that `observe` has chosen for the client.
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
    fn the_page_names_every_file_and_nothing_else() {
        for file in &*FILES {
            assert!(PAGE.contains(&format!("\"docs/{}\"", file.name)));
        }
        assert!(!PAGE.contains("{{"), "{}", *PAGE);
        assert!(!PAGE.contains("//"), "an address of another origin");
    }
}
