//! Compressed responses: brotli or gzip, if the client accepts it and the response is long enough.
//!
//! actix compresses; this module decides whether. Responses shorter than [`WORTH_IT`] are sent uncompressed.
//! Compression over TLS reveals nothing: a page cannot guess any content from the length of a response, and no response
//! contains an API key.

use actix_web::{
    Error, HttpMessage as _,
    body::{BodySize, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header::{self, AcceptEncoding, ContentEncoding, Encoding, HeaderMap, HeaderValue},
    middleware::Next,
};

/// About the size of a packet.
const WORTH_IT: u64 = 1_024;
/// Tells actix not to compress. [`unmark`] removes it again.
const AS_IT_IS: HeaderValue = HeaderValue::from_static("identity");

/// Leaves short responses uncompressed. Install directly below the compression middleware.
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

/// Removes the marker. Install above the compression middleware.
pub(crate) fn unmark(headers: &mut HeaderMap) {
    if headers.get(header::CONTENT_ENCODING) == Some(&AS_IT_IS) {
        headers.remove(header::CONTENT_ENCODING);
    }
}

/// Reduces the client's `Accept-Encoding` to the one encoding that we use. A client that accepts neither gets an
/// uncompressed response, and no client is refused for its encoding (RFC 9110 12.5.3 allows both).
pub(crate) fn choose(request: &mut ServiceRequest) {
    let supported = [Encoding::identity(), Encoding::brotli(), Encoding::gzip()];
    let accepted = request.get_header::<AcceptEncoding>();
    let chosen = accepted.and_then(|accepted| accepted.negotiate(supported.iter()));
    let headers = request.headers_mut();
    headers.remove(header::ACCEPT_ENCODING);
    if let Some(Encoding::Known(coding @ (ContentEncoding::Brotli | ContentEncoding::Gzip))) =
        chosen
    {
        let coding = HeaderValue::from_static(coding.as_str());
        headers.insert(header::ACCEPT_ENCODING, coding);
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{http::header::ACCEPT_ENCODING, test::TestRequest};

    use super::choose;

    #[test]
    fn client_chooses_and_brotli_wins_a_tie() {
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
            (&["", ",;,=;q"], None),
            (&[], None),
        ] {
            let request = accepted
                .iter()
                .fold(TestRequest::default(), |request, value| {
                    request.append_header((ACCEPT_ENCODING, *value))
                });
            let mut request = request.to_srv_request();
            choose(&mut request);
            let value = request.headers().get(ACCEPT_ENCODING);
            let value = value.map(|value| value.to_str().unwrap());
            assert_eq!(value, chosen, "{accepted:?}");
        }
    }
}
