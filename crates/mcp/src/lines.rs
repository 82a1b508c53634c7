//! One message per line, in both directions.
//!
//! The library's own transport drops lines that are not JSON or too long, and a client waits for their answers until it
//! gives up. Here each gets one, with its `id` where it can be found.

use std::{io, sync::Arc};

use rmcp::{
    RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::{Mutex, mpsc},
};

use crate::broken;

/// Longer lines are refused.
const MAX_LINE_BYTES: usize = 1024 * 1024;
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;

type Message = RxJsonRpcMessage<RoleServer>;

pub(crate) struct Lines<W> {
    messages: mpsc::Receiver<Message>,
    output: Arc<Mutex<W>>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Lines<W> {
    /// Reads until the input ends. It begins at once, so call it within a runtime.
    pub(crate) fn new(input: impl AsyncBufRead + Send + Unpin + 'static, output: W) -> Self {
        let output = Arc::new(Mutex::new(output));
        let (sender, messages) = mpsc::channel(1);
        tokio::spawn(read_all(input, sender, Arc::clone(&output)));
        Self { messages, output }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for Lines<W> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move { write(&output, serde_json::to_vec(&message)?).await }
    }

    async fn receive(&mut self) -> Option<Message> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.flush().await
    }
}

async fn write(output: &Mutex<impl AsyncWrite + Unpin>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

/// Ends when the input does, or no one reads the messages or the answers any more.
async fn read_all(
    mut input: impl AsyncBufRead + Unpin,
    sender: mpsc::Sender<Message>,
    output: Arc<Mutex<impl AsyncWrite + Unpin>>,
) {
    let mut line = Vec::new();
    while let Ok(true) = read_line(&mut input, &mut line).await {
        let refusal = match parse(&line) {
            Ok(None) => continue,
            Ok(Some(message)) => match sender.send(message).await {
                Ok(()) => continue,
                Err(_) => return,
            },
            Err(refusal) => refusal,
        };
        if write(&output, refusal.to_string().into()).await.is_err() {
            return;
        }
    }
}

/// Reads a line, of one that is too long its beginning. Returns false at the end.
async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<bool> {
    let most = MAX_LINE_BYTES as u64 + 1;
    line.clear();
    (&mut *input).take(most).read_until(b'\n', line).await?;
    let mut rest = Vec::new();
    let mut is_whole = line.len() <= MAX_LINE_BYTES || line.ends_with(b"\n");
    while !is_whole {
        rest.clear();
        let read = (&mut *input)
            .take(most)
            .read_until(b'\n', &mut rest)
            .await?;
        is_whole = read == 0 || rest.ends_with(b"\n");
    }
    Ok(!line.is_empty())
}

/// Returns the message, if it is one for us, or the answer to a line that is not a message.
fn parse(line: &[u8]) -> Result<Option<Message>, Value> {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    let line = line.strip_prefix(BOM).unwrap_or(line).trim_ascii();
    if line.len() > MAX_LINE_BYTES {
        let message = format!("a message has at most {MAX_LINE_BYTES} bytes");
        return Err(refusal(broken::id(line), INVALID_REQUEST, &message));
    }
    if line.is_empty() {
        return Ok(None);
    }
    match parse_json(line) {
        Ok(parsed) => parsed,
        Err(_) => parse_json(&broken::with_whole_characters(line)).unwrap_or_else(|error| {
            let message = format!("the message is not JSON: {error}");
            Err(refusal(broken::id(line), PARSE_ERROR, &message))
        }),
    }
}

/// The outer error is that of a text that is not JSON.
fn parse_json(text: &[u8]) -> serde_json::Result<Result<Option<Message>, Value>> {
    if let Ok(message) = serde_json::from_slice(text) {
        return Ok(Ok(Some(message)));
    }
    let other: Value = serde_json::from_slice(text)?;
    let is_notification = other.get("method").is_some() && other.get("id").is_none();
    let is_answer = other.get("result").is_some() || other.get("error").is_some();
    if is_notification || is_answer {
        return Ok(Ok(None));
    }
    let message = "the message is not a request of JSON-RPC 2.0";
    let id = broken::checked(other["id"].clone());
    Ok(Err(refusal(id, INVALID_REQUEST, message)))
}

fn refusal(id: Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests;
