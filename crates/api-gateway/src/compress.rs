//! Compressed responses: brotli or gzip, for clients that accept it, when it is worth it.
//!
//! actix compresses; here is decided whether. Answers shorter than [`WORTH_IT`] go out as they are. Answers
//! hold nothing that a client's page could guess at by their length (keys are in no answer), so compressing
//! over TLS gives nothing away.

use actix_web::{
    Error,
    body::{BodySize, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header::{self, HeaderMap, HeaderValue},
    middleware::Next,
};

/// About what a packet holds.
const WORTH_IT: u64 = 1_024;
/// A mark for actix, taken off again by [`unmark`].
const AS_IT_IS: HeaderValue = HeaderValue::from_static("identity");

/// Leaves short answers uncompressed. Directly below the compression.
pub(crate) async fn spare_short(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let mut answer = next.call(request).await?;
    let short = match answer.response().body().size() {
        BodySize::None => true,
        BodySize::Sized(length) => length < WORTH_IT,
        BodySize::Stream => false,
    };
    let headers = answer.headers_mut();
    if short && !headers.contains_key(header::CONTENT_ENCODING) {
        headers.insert(header::CONTENT_ENCODING, AS_IT_IS);
    }
    Ok(answer)
}

/// Takes the mark off. Above the compression.
pub(crate) fn unmark(headers: &mut HeaderMap) {
    if headers.get(header::CONTENT_ENCODING) == Some(&AS_IT_IS) {
        headers.remove(header::CONTENT_ENCODING);
    }
}

/// Rewrites what the client accepts to the one coding that it gets. An answer goes out as it is to whoever
/// asks for neither, and is never refused for its coding (RFC 9110 12.5.3 leaves both to the server).
pub(crate) fn choose(headers: &mut HeaderMap) {
    let mut best: Option<(f32, &'static str)> = None;
    for value in headers.get_all(header::ACCEPT_ENCODING) {
        for coding in value.to_str().unwrap_or_default().split(',') {
            let mut parts = coding.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let Some(known) = ["br", "gzip"]
                .into_iter()
                .find(|k| name.eq_ignore_ascii_case(k))
            else {
                continue;
            };
            let weight = match parts.next() {
                None => 1.0,
                Some(part) => part
                    .strip_prefix("q=")
                    .or_else(|| part.strip_prefix("Q="))
                    .and_then(|q| q.trim().parse::<f32>().ok())
                    .filter(|q| (0.0..=1.0).contains(q))
                    .unwrap_or(0.0),
            };
            let better = best
                .is_none_or(|(most, chosen)| weight > most || (weight >= most && chosen == "gzip"));
            if weight > 0.0 && better {
                best = Some((weight, known));
            }
        }
    }
    headers.remove(header::ACCEPT_ENCODING);
    if let Some((_, coding)) = best {
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(coding));
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};

    use super::choose;

    #[test]
    fn the_client_decides_and_brotli_is_the_better_of_equals() {
        for (accepted, chosen) in [
            (&["gzip, deflate, br, zstd"][..], Some("br")),
            (&["br, gzip"], Some("br")),
            (&["gzip", "BR"], Some("br")),
            (&["gzip;q=1.0, br;q=0.5"], Some("gzip")),
            (&["br;q=0, gzip;q=0.1"], Some("gzip")),
            (&["br;q=0.000"], None),
            (&["gzip; q = 1"], None),
            (&["gzip;q=7, br;q=-1, gzip;q=NaN"], None),
            (&["*", "identity;q=0", "zstd"], None),
            (&["", ",;,=;q", "\u{7f}"], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for value in accepted {
                if let Ok(value) = HeaderValue::from_str(value) {
                    headers.append(ACCEPT_ENCODING, value);
                }
            }
            choose(&mut headers);
            let value = headers.get(ACCEPT_ENCODING).map(|v| v.to_str().unwrap());
            assert_eq!(value, chosen, "{accepted:?}");
        }
    }
}
