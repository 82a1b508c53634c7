//! A request as bytes.

/// Builder of one request.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: Vec<u8>,
    pub(super) headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) body: Option<Vec<u8>>,
}

impl Request {
    pub(super) fn header(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.headers.push((name.into(), value.as_ref().to_vec()));
    }

    pub(super) fn bytes(mut self) -> Vec<u8> {
        if let Some(body) = &self.body {
            let length = body.len().to_string();
            self.header("content-length", length);
        }
        let mut bytes = self.method.into_bytes();
        bytes.push(b' ');
        bytes.extend(self.target);
        bytes.extend(b" HTTP/1.1\r\nhost: x\r\n");
        for (name, value) in self.headers {
            bytes.extend([&name[..], b": ", &value, b"\r\n"].concat());
        }
        bytes.extend(b"\r\n");
        bytes.extend(self.body.unwrap_or_default());
        bytes
    }
}
