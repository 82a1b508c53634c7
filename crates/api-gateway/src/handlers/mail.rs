//! `/mail/`: where the links in mails lead, without a key.
//!
//! The token in the address names an address of a Connection ([`store::mail::token`]). A GET shows a page
//! with a button and changes nothing, because mail programs and scanners follow links. A POST acts: that of the button,
//! and that of a mail program that unsubscribes with one click (RFC 8058).

use std::time::Instant;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
            X_CONTENT_TYPE_OPTIONS,
        },
    },
    web::{Data, Path},
};
use domain::{Timestamp, connection::RecipientState};
use store::mail::{
    self, Changed,
    token::{self, Purpose},
};

use crate::{ApiError, authenticate::guesses::network, rates, state::AppState};

const POLICY: &str =
    "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// `GET /mail/confirm/{token}`
pub(crate) async fn confirm_page(
    state: Data<AppState>,
    request: HttpRequest,
    token: Path<String>,
) -> Result<HttpResponse, ApiError> {
    show(&state, &request, &token, Purpose::Confirm)
}

/// `POST /mail/confirm/{token}`
pub(crate) async fn confirm(
    state: Data<AppState>,
    request: HttpRequest,
    token: Path<String>,
) -> Result<HttpResponse, ApiError> {
    act(&state, &request, &token, Purpose::Confirm).await
}

/// `GET /mail/unsubscribe/{token}`
pub(crate) async fn unsubscribe_page(
    state: Data<AppState>,
    request: HttpRequest,
    token: Path<String>,
) -> Result<HttpResponse, ApiError> {
    show(&state, &request, &token, Purpose::Unsubscribe)
}

/// `POST /mail/unsubscribe/{token}`
pub(crate) async fn unsubscribe(
    state: Data<AppState>,
    request: HttpRequest,
    token: Path<String>,
) -> Result<HttpResponse, ApiError> {
    act(&state, &request, &token, Purpose::Unsubscribe).await
}

fn show(
    state: &AppState,
    request: &HttpRequest,
    token: &str,
    purpose: Purpose,
) -> Result<HttpResponse, ApiError> {
    throttle(state, request)?;
    Ok(
        match (token::open(&state.sealer, purpose, token), purpose) {
            (None, _) => broken(),
            (Some(_), Purpose::Confirm) => page(
                StatusCode::OK,
                "Do you want these mails?",
                "Posts from the web that match a search will be sent to your address.",
                Some("Yes, send them"),
            ),
            (Some(_), Purpose::Unsubscribe) => page(
                StatusCode::OK,
                "Unsubscribe?",
                "You will get no more mails of this list.",
                Some("Unsubscribe"),
            ),
        },
    )
}

async fn act(
    state: &AppState,
    request: &HttpRequest,
    token: &str,
    purpose: Purpose,
) -> Result<HttpResponse, ApiError> {
    throttle(state, request)?;
    let Some((connection, digest)) = token::open(&state.sealer, purpose, token) else {
        return Ok(broken());
    };
    let (wanted, title, text) = match purpose {
        Purpose::Confirm => (
            RecipientState::Confirmed,
            "Confirmed",
            "You will get these mails. Each has a link to unsubscribe.",
        ),
        Purpose::Unsubscribe => (
            RecipientState::Unsubscribed,
            "Unsubscribed",
            "You will get no more of these mails.",
        ),
    };
    let changed = {
        let mut conn = state.database.connection().await?;
        mail::set_state(&mut conn, connection, digest, wanted, Timestamp::now()).await?
    };
    tracing::info!(connection.name = %connection, state = wanted.as_str(), ?changed, "a recipient followed a link");
    Ok(match (changed, purpose) {
        // The address is in no Connection any more, which is what was wanted.
        (Changed::Gone, Purpose::Unsubscribe) | (Changed::Stored | Changed::Disabled, _) => {
            page(StatusCode::OK, title, text, None)
        }
        (Changed::Gone, Purpose::Confirm) => broken(),
    })
}

fn throttle(state: &AppState, request: &HttpRequest) -> Result<(), ApiError> {
    let address = network(state.guesses.origin(request));
    let taken = state.link_rates.take(address, Instant::now());
    taken.map_err(rates::too_many_failures)
}

fn broken() -> HttpResponse {
    page(
        StatusCode::NOT_FOUND,
        "This link does not work",
        "It may be incomplete or too old, or the sender has removed your address.",
        None,
    )
}

/// Returns a page of fixed words. Its button, if any, posts to the page's address.
fn page(status: StatusCode, title: &str, text: &str, button: Option<&str>) -> HttpResponse {
    let button = button.map(|label| {
        format!("<form method=\"post\"><button type=\"submit\">{label}</button></form>\n")
    });
    let button = button.unwrap_or_default();
    HttpResponse::build(status)
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title} – Earshot</title></head>\n\
             <body><main><h1>{title}</h1>\n<p>{text}</p>\n{button}</main></body></html>\n"
        ))
}
