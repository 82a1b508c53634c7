//! Reads requests, for the servers of the benches: one after the other on each connection.

use anyhow::Result;
use tokio::{io::AsyncReadExt, net::TcpStream};

/// Reads the next request into `buffer`. Returns its path in lower case and the start of its body, or `None` if the
/// client closed the connection.
pub(crate) async fn next(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> Result<Option<(String, usize)>> {
    buffer.clear();
    let head = loop {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
    let length: usize = text
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.split("\r\n").next()?.parse().ok())
        .unwrap_or(0);
    while buffer.len() < head + length {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(Some((path, head)))
}
