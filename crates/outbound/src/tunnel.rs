//! A tunnel through a proxy: `CONNECT` (RFC 9110 9.3.6).

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{Failure, USER_AGENT};

const MAX_HEAD_BYTES: usize = 8 * 1_024;

/// Asks the proxy at the other end for a connection to `target`, a host with a port.
///
/// # Errors
/// [`Failure::Proxy`].
pub async fn open_tunnel(
    proxy: &mut (impl AsyncRead + AsyncWrite + Unpin),
    target: &str,
    authorization: Option<&str>,
) -> Result<(), Failure> {
    let authorization = authorization.map_or_else(String::new, |value| {
        format!("Proxy-Authorization: {value}\r\n")
    });
    let request = format!(
        "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nUser-Agent: {USER_AGENT}\r\n{authorization}\r\n"
    );
    let failure = |reason: &str| Failure::Proxy {
        reason: reason.to_owned(),
    };
    proxy
        .write_all(request.as_bytes())
        .await
        .map_err(|error| failure(&error.to_string()))?;
    let mut head = Vec::new();
    // Byte by byte, because what follows the head belongs to the target. It is short.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_HEAD_BYTES {
            return Err(failure("its answer is too long"));
        }
        match proxy.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return Err(failure("it closed the connection")),
        }
    }
    match status(&head) {
        Some(200..=299) => Ok(()),
        Some(407) => Err(failure("it wants other credentials (407)")),
        Some(status) => Err(failure(&format!("it answered {status}"))),
        None => Err(failure("its answer is not http")),
    }
}

fn status(head: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(head.split(|byte| *byte == b'\r').next()?).ok()?;
    let (version, rest) = line.split_once(' ')?;
    let status = rest.split(' ').next()?;
    (version.starts_with("HTTP/1.") && status.len() == 3)
        .then(|| status.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::status;

    #[test]
    fn status_is_read_from_the_first_line() {
        for (head, expected) in [
            ("HTTP/1.1 200 Connection established\r\n\r\n", Some(200)),
            ("HTTP/1.0 407\r\nx: y\r\n\r\n", Some(407)),
            ("HTTP/1.1 20\r\n\r\n", None),
            ("SSH-2.0-OpenSSH\r\n\r\n", None),
            ("\r\n\r\n", None),
        ] {
            assert_eq!(status(head.as_bytes()), expected, "{head}");
        }
    }
}
