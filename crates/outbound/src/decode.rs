//! Decompresses as bytes arrive, into a buffer with a fixed bound: a few kilobytes that expand to gigabytes
//! stop at the limit and cost no more memory.

use std::io::{self, Write};

use brotli_decompressor::{BrotliDecoderParameter, DecompressorWriter};
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::Error;

/// Codings that [`Decoder`] supports, for the request.
pub(crate) const ACCEPTED: &str = "gzip, br, deflate";

pub(crate) struct Decoder {
    state: State,
    limit: usize,
}

enum State {
    Identity(Sink),
    Gzip(MultiGzDecoder<Sink>),
    /// Zlib according to the standard, raw deflate from some servers: the first byte shows which.
    Deflate(Sink),
    Zlib(ZlibDecoder<Sink>),
    BareDeflate(DeflateDecoder<Sink>),
    Brotli(Box<DecompressorWriter<Sink>>),
}

impl Decoder {
    /// Creates a decoder for the value of `content-encoding`. Multiple codings are refused: honest servers do
    /// not use them.
    pub(crate) fn new(encoding: Option<&str>, limit: usize) -> Result<Self, Error> {
        let sink = Sink {
            bytes: Vec::new(),
            limit,
        };
        let encoding = encoding.unwrap_or_default().trim().to_ascii_lowercase();
        let state = match encoding.as_str() {
            "" | "identity" => State::Identity(sink),
            "gzip" | "x-gzip" => State::Gzip(MultiGzDecoder::new(sink)),
            "deflate" => State::Deflate(sink),
            "br" => {
                let mut brotli = DecompressorWriter::new(sink, 4_096);
                // Not part of the web's brotli, and a window of up to a gigabyte.
                brotli.set_parameter(BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW, 0);
                State::Brotli(Box::new(brotli))
            }
            other => {
                return Err(Error::Encoding {
                    reason: format!("unknown coding `{}`", other.escape_debug()),
                });
            }
        };
        Ok(Self { state, limit })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let State::Deflate(sink) = &mut self.state
            && let Some(first) = bytes.first()
        {
            let sink = std::mem::take(sink);
            self.state = if first & 0x0f == 8 {
                State::Zlib(ZlibDecoder::new(sink))
            } else {
                State::BareDeflate(DeflateDecoder::new(sink))
            };
        }
        let written = match &mut self.state {
            State::Identity(sink) | State::Deflate(sink) => sink.write_all(bytes),
            State::Gzip(decoder) => decoder.write_all(bytes),
            State::Zlib(decoder) => decoder.write_all(bytes),
            State::BareDeflate(decoder) => decoder.write_all(bytes),
            State::Brotli(decoder) => decoder.write_all(bytes),
        };
        written.map_err(|error| self.error(&error))
    }

    /// Returns the whole body, or an error if the compressed form ends early.
    pub(crate) fn finish(self) -> Result<Vec<u8>, Error> {
        let limit = self.limit;
        let finished = match self.state {
            State::Identity(sink) | State::Deflate(sink) => Ok(sink),
            State::Gzip(decoder) => decoder.finish(),
            State::Zlib(decoder) => decoder.finish(),
            State::BareDeflate(decoder) => decoder.finish(),
            State::Brotli(mut decoder) => {
                decoder.close().map(|()| std::mem::take(decoder.get_mut()))
            }
        };
        finished
            .map(|sink| sink.bytes)
            .map_err(|error| to_error(&error, limit))
    }

    fn error(&self, error: &io::Error) -> Error {
        to_error(error, self.limit)
    }
}

fn to_error(error: &io::Error, limit_bytes: usize) -> Error {
    if error.get_ref().is_some_and(|cause| cause.is::<Full>()) {
        Error::TooLarge {
            limit_bytes,
            wire: false,
        }
    } else {
        Error::Encoding {
            reason: error.to_string(),
        }
    }
}

/// The sink is full.
#[derive(Debug, thiserror::Error)]
#[error("full")]
struct Full;

#[derive(Default)]
struct Sink {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit - self.bytes.len() {
            return Err(io::Error::other(Full));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };

    use super::Decoder;
    use crate::Error;

    const TEXT: &[u8] = b"a page about gardens, and gardens, and gardens";

    fn decode(encoding: &str, bytes: &[u8], limit: usize) -> Result<Vec<u8>, Error> {
        let mut decoder = Decoder::new(Some(encoding), limit)?;
        for chunk in bytes.chunks(3) {
            decoder.write(chunk)?;
        }
        decoder.finish()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn every_offered_coding_is_understood() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(TEXT).unwrap();
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::best());
        bare.write_all(TEXT).unwrap();
        for (encoding, bytes) in [
            ("", TEXT.to_vec()),
            ("identity", TEXT.to_vec()),
            ("GZIP", gzip(TEXT)),
            ("x-gzip", gzip(TEXT)),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", bare.finish().unwrap()),
        ] {
            assert_eq!(decode(encoding, &bytes, 1_000).unwrap(), TEXT, "{encoding}");
        }
        // "hello" in brotli's uncompressed form.
        let brotli = [0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03];
        assert_eq!(decode("br", &brotli, 1_000).unwrap(), b"hello");
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let bomb = gzip(&vec![0; 10 << 20]);
        let expected = Error::TooLarge {
            limit_bytes: 1_000,
            wire: false,
        };
        assert_eq!(decode("gzip", &bomb, 1_000), Err(expected.clone()));
        let brotli = [0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03];
        let tiny = Error::TooLarge {
            limit_bytes: 4,
            wire: false,
        };
        assert_eq!(decode("br", &brotli, 4), Err(tiny));
        assert_eq!(decode("", &[0; 1_001], 1_000), Err(expected));
    }

    #[test]
    fn truncated_garbled_and_unknown_content_is_an_error() {
        let whole = gzip(TEXT);
        for (encoding, bytes) in [
            ("gzip", &whole[..whole.len() - 9]),
            ("gzip", TEXT),
            ("deflate", TEXT),
            ("br", &[0x0b, 0x02, 0x80, b'h'][..]),
            ("br", &[0xff; 64]),
            ("gzip, gzip", &whole),
            ("zstd", TEXT),
        ] {
            let error = decode(encoding, bytes, 1_000).unwrap_err();
            assert_eq!(error.word(), "invalid_encoding", "{encoding}");
        }
    }
}
