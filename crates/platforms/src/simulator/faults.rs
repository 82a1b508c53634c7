//! Faulty responses on demand.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use actix_web::{
    Error, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::StatusCode,
    middleware::Next,
    web,
};
use serde::{Deserialize, Serialize};

use super::world::World;

/// A fault in the next responses of a platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Same as [`super::NewPost::platform`].
    pub platform: String,
    pub kind: FaultKind,
    /// Number of requests.
    #[serde(default = "once")]
    pub times: u32,
    #[serde(default)]
    pub value: u64,
    /// Only requests whose path contains this.
    #[serde(default)]
    pub path: Option<String>,
}

/// The kinds of faulty responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Status `value`, with an HTML body.
    Status,
    /// A correct response, `value` milliseconds late.
    Delay,
    /// The connection closes in the middle of the response.
    Reset,
    /// Status 200 and an unreadable body.
    Garbage,
    /// 429 with `Retry-After: value`.
    RetryAfter,
    /// Status 200 and a body of `value` bytes.
    Huge,
}

fn once() -> u32 {
    1
}

#[derive(Default)]
pub(super) struct Faults {
    waiting: Mutex<Vec<Fault>>,
}

impl Faults {
    pub(super) fn add(&self, fault: Fault) {
        self.waiting().push(fault);
    }

    pub(super) fn clear(&self) {
        self.waiting().clear();
    }

    /// Takes the fault for a request, which counts as one use.
    fn take(&self, platform: &str, path: &str) -> Option<Fault> {
        let mut waiting = self.waiting();
        waiting.retain(|fault| fault.times > 0);
        let fault = waiting.iter_mut().find(|fault| {
            let here = fault.path.as_deref();
            fault.platform == platform && here.is_none_or(|part| path.contains(part))
        })?;
        fault.times -= 1;
        Some(fault.clone())
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the request, and applies a fault if there is one.
pub(super) async fn meddle(
    world: web::Data<World>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let path = request.path().to_owned();
    let Some(platform) = platform_of(&path) else {
        return Ok(next.call(request).await?.map_into_boxed_body());
    };
    world.count(&path);
    let Some(fault) = world.faults.take(&platform, &path) else {
        return Ok(next.call(request).await?.map_into_boxed_body());
    };
    let value = fault.value;
    let answer = match fault.kind {
        FaultKind::Delay => {
            actix_web::rt::time::sleep(Duration::from_millis(value)).await;
            return Ok(next.call(request).await?.map_into_boxed_body());
        }
        FaultKind::Status => {
            let status = u16::try_from(value).ok();
            let status = status.and_then(|status| StatusCode::from_u16(status).ok());
            HttpResponse::build(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
                .content_type("text/html")
                .body("<html><body><h1>Something went wrong</h1></body></html>")
        }
        FaultKind::RetryAfter => HttpResponse::TooManyRequests()
            .insert_header(("retry-after", value.to_string()))
            .body("slow down"),
        FaultKind::Garbage => HttpResponse::Ok()
            .content_type("application/json")
            .body("\u{feff}<!-- {\"posts\": [}]] \u{0} -->"),
        FaultKind::Reset => {
            let begun = Ok(web::Bytes::from_static(b"{\"po"));
            let broken = Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
            HttpResponse::Ok().streaming(futures::stream::iter([begun, broken]))
        }
        FaultKind::Huge => {
            let piece = web::Bytes::from_static(&[b' '; 65_536]);
            let count = usize::try_from(value / 65_536 + 1).unwrap_or(usize::MAX);
            let pieces = futures::stream::iter(std::iter::repeat_n(piece, count));
            HttpResponse::Ok().streaming(futures::StreamExt::map(pieces, Ok::<_, Error>))
        }
    };
    Ok(request.into_response(answer))
}

/// The path's platform; `None` for the simulator's own API.
fn platform_of(path: &str) -> Option<String> {
    let (first, rest) = path.trim_start_matches('/').split_once('/')?;
    match first {
        "hackernews" | "lemmy" | "discourse" | "reddit" | "linkedin" | "facebook" | "bluesky"
        | "mastodon" | "x" => Some(first.to_owned()),
        "feeds" => {
            let name = rest.split(['.', '/']).next().unwrap_or_default();
            Some(format!("feed:{name}"))
        }
        _ => super::simulated_as(first).map(|_| first.to_owned()),
    }
}
