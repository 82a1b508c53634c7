//! `/feeds/{namespaceId}/{managerId}.atom` and `.json`: a Manager's newest Scans, for feed readers.
//!
//! These paths are outside of `/v1`, because feed readers support only Basic authentication. The key is the
//! password, and the user name is ignored. Only these two paths accept Basic; they accept Bearer too.
//!
//! Feed readers poll often. `ETag` and `Last-Modified` keep unchanged responses down to a few bytes.

mod atom;
mod feed;
mod json_feed;

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{
        CACHE_CONTROL, CONTENT_TYPE, ETAG, EntityTag, Header as _, HttpDate, IfModifiedSince,
        IfNoneMatch, LAST_MODIFIED, TryIntoHeaderValue, VARY,
    },
    web::Path,
};
use domain::list::{ListQuery, SCAN_FIELDS};
use std::time::{Duration, SystemTime};
use store::{managers, scans};

use self::feed::Feed;
use crate::{
    ApiError,
    authenticate::Caller,
    handlers::{ManagerPath, documents::fingerprint},
    query::Parameters,
};

/// Maximum number of entries. A reader that polls once a day finds older ones in the API.
const SCANS: &str = "50";

/// `GET /feeds/{namespaceId}/{managerId}.atom`
pub(crate) async fn atom(
    caller: Caller,
    path: Path<ManagerPath>,
    query: Parameters,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let feed = feed(&caller, &path, query).await?;
    let body = atom::write(&feed).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(answer(
        &request,
        &feed,
        "application/atom+xml; charset=utf-8",
        body,
    ))
}

/// `GET /feeds/{namespaceId}/{managerId}.json`
pub(crate) async fn json(
    caller: Caller,
    path: Path<ManagerPath>,
    query: Parameters,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let feed = feed(&caller, &path, query).await?;
    let body = json_feed::write(&feed).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(answer(&request, &feed, "application/feed+json", body))
}

async fn feed(caller: &Caller, path: &ManagerPath, query: Parameters) -> Result<Feed, ApiError> {
    caller.readable(path.namespace_id()).await?;
    let name = path.name()?;
    let newest = ListQuery::parse("", SCAN_FIELDS, Some(SCANS), None, None, None)?;
    caller.reserve_page().await?;
    let mut conn = caller.connection().await?;
    let manager = managers::get(&mut conn, name).await?;
    let manager = manager.ok_or(ApiError::NotFound("manager"))?;
    query.none()?;
    let scans = scans::list(&mut conn, name, &newest).await?.items;
    let times = scans.iter().map(|scan| scan.update_time);
    Ok(Feed {
        manager: name,
        title: manager.nickname,
        updated: times.max().unwrap_or(manager.create_time),
        scans,
    })
}

fn answer(
    request: &HttpRequest,
    feed: &Feed,
    content_type: &'static str,
    body: Vec<u8>,
) -> HttpResponse {
    // Weak, because the compressed response has the same tag.
    let tag = EntityTag::new_weak(fingerprint(&body));
    let seconds = u64::try_from(feed.updated.micros() / 1_000_000).unwrap_or(0);
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let mut answer = if is_known(request, &tag, modified) {
        HttpResponse::NotModified()
    } else {
        HttpResponse::Ok()
    };
    answer
        .insert_header((CACHE_CONTROL, "private, no-cache"))
        .insert_header((VARY, "authorization"))
        .insert_header((LAST_MODIFIED, HttpDate::from(modified)));
    if let Ok(tag) = tag.clone().try_into_value() {
        answer.insert_header((ETAG, tag));
    }
    if is_known(request, &tag, modified) {
        return answer.finish();
    }
    answer
        .insert_header((CONTENT_TYPE, content_type))
        .body(body)
}

/// Returns true if the client has this version. `If-None-Match` takes precedence over `If-Modified-Since` (RFC 9110
/// 13.1.3).
fn is_known(request: &HttpRequest, tag: &EntityTag, modified: SystemTime) -> bool {
    if request.headers().contains_key("if-none-match") {
        return match IfNoneMatch::parse(request) {
            Ok(IfNoneMatch::Any) => true,
            Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|one| one.weak_eq(tag)),
            Err(_) => false,
        };
    }
    IfModifiedSince::parse(request)
        .is_ok_and(|IfModifiedSince(since)| SystemTime::from(since) >= modified)
}
