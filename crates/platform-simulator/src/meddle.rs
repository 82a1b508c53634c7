//! Counts the requests, and answers them with faults.

use std::time::Duration;

use actix_web::{
    Error, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::StatusCode,
    middleware::Next,
    web,
};

use super::{faults::FaultKind, kinds, world::World};

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
        "feeds" => {
            let name = rest.split(['.', '/']).next().unwrap_or_default();
            Some(format!("feed:{name}"))
        }
        _ => kinds::answer_of(first).map(|_| first.to_owned()),
    }
}
