//! Fixed content that is compressed once, and not for every request: clients could keep the CPU busy.

use std::{borrow::Cow, io::Write as _, sync::OnceLock};

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY},
};
use flate2::{Compression, write::GzEncoder};

/// Content below this size fits into one packet uncompressed.
const WORTH_PACKING: usize = 1_024;
/// Best quality that is fast: 11 takes a second for a file of 150 KiB.
const BROTLI_QUALITY: i32 = 9;
const BROTLI_WINDOW: i32 = 22;

pub(crate) struct Packed {
    bytes: Cow<'static, [u8]>,
    gzip: OnceLock<Vec<u8>>,
    brotli: OnceLock<Vec<u8>>,
}

impl Packed {
    pub(crate) fn new(bytes: impl Into<Cow<'static, [u8]>>) -> Self {
        Self {
            bytes: bytes.into(),
            gzip: OnceLock::new(),
            brotli: OnceLock::new(),
        }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the content in the encoding that the client prefers.
    pub(crate) fn answer(
        &'static self,
        request: &HttpRequest,
        mut answer: HttpResponseBuilder,
    ) -> HttpResponse {
        let bytes: &'static [u8] = &self.bytes;
        if bytes.len() < WORTH_PACKING {
            return answer.body(bytes);
        }
        // `observe` has reduced the header to the one encoding that we use.
        let wished = request.headers().get(ACCEPT_ENCODING);
        let (coding, bytes) = match wished.and_then(|wished| wished.to_str().ok()) {
            Some("br") => ("br", packed(&self.brotli, bytes, brotli)),
            Some("gzip") => ("gzip", packed(&self.gzip, bytes, gzip)),
            _ => ("identity", bytes),
        };
        // Set for uncompressed content too, to prevent compression.
        answer.insert_header((CONTENT_ENCODING, coding));
        answer.insert_header((VARY, "accept-encoding"));
        answer.body(bytes)
    }
}

fn packed(
    place: &'static OnceLock<Vec<u8>>,
    bytes: &[u8],
    pack: fn(&[u8]) -> std::io::Result<Vec<u8>>,
) -> &'static [u8] {
    place.get_or_init(|| pack(bytes).expect("writing to memory does not fail"))
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes)?;
    packed.finish()
}

fn brotli(mut bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let parameters = ::brotli::enc::BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: BROTLI_WINDOW,
        ..Default::default()
    };
    let mut packed = Vec::new();
    ::brotli::BrotliCompress(&mut bytes, &mut packed, &parameters)?;
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, sync::OnceLock};

    use super::{brotli, gzip, packed};

    #[test]
    fn compressed_content_decompresses_to_the_original() {
        let bytes = include_bytes!("../openapi.yaml");
        let (mut plain, packed) = (Vec::new(), gzip(bytes).unwrap());
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_end(&mut plain)
            .unwrap();
        assert_eq!(plain, bytes);
        let (mut plain, packed) = (Vec::new(), brotli(bytes).unwrap());
        ::brotli::BrotliDecompress(&mut &packed[..], &mut plain).unwrap();
        assert_eq!(plain, bytes);
        assert!(packed.len() * 2 < bytes.len());
    }

    #[test]
    fn content_is_compressed_once() {
        static PLACE: OnceLock<Vec<u8>> = OnceLock::new();
        let first = packed(&PLACE, b"page", brotli);
        let again = packed(&PLACE, b"page", |_| unreachable!("it is compressed"));
        assert!(std::ptr::eq(first, again));
    }
}
