//! The routes: an operation for each method and path.
//!
//! actix gets its routes from this table, a 405 response gets its `Allow` header from it, and tests compare it with
//! `openapi.yaml`.
//!
//! A custom method is a POST to a separate path, `…/{managerId}:apply` (AIP-136). Ids contain no colon, so an
//! unknown verb is an unknown path, and a known one answers 405 to other methods.

use std::{panic::AssertUnwindSafe, sync::LazyLock};

use actix_web::{
    Error, FromRequest, Handler, Responder, ResponseError, Route,
    body::{BoxBody, EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    guard,
    http::Method,
    middleware::{Next, from_fn},
    web,
};
use futures::FutureExt;

use crate::{
    ApiError,
    authenticate::{authenticate, authenticate_reader},
    console, feeds_of_scans,
    handlers::{
        audit_events, backfills, caller, connections, deliveries, docs, documents, feeds, mail,
        managers, mcp, namespaces, previews, replays, scans, stats, trial_deliveries,
    },
    sign_in,
};

const VERSION: &str = "/v1";
const FEEDS: &str = "/feeds";
const MCP: &str = "/mcp";
/// Pattern of a path parameter, in actix's syntax.
const ID_FORM: &str = ":[^/:]+";

/// The operations of one path.
struct Path {
    path: &'static str,
    operations: Vec<Operation>,
}

struct Operation {
    method: Method,
    route: Route,
}

/// Paths below `/v1`, which need a key. They are tried in this order, so polled paths come first.
fn resources() -> Vec<Path> {
    vec![
        path(
            "/namespaces/{namespaceId}/managers/{managerId}/scans",
            [get(scans::list)],
        ),
        path("/caller", [get(caller::get)]),
        path(
            "/namespaces",
            [get(namespaces::list), post(namespaces::create)],
        ),
        path(
            "/namespaces/{namespaceId}/auditEvents",
            [get(audit_events::list)],
        ),
        path(
            "/namespaces/{namespaceId}/stats",
            [get(stats::of_namespace)],
        ),
        path(
            "/namespaces/{namespaceId}/managers/{managerId}/stats",
            [get(stats::of_manager)],
        ),
        path(
            "/namespaces/{namespaceId}/connections/{connectionId}/stats",
            [get(stats::of_connection)],
        ),
        path(
            "/namespaces/{namespaceId}",
            [
                get(namespaces::get),
                patch(namespaces::update),
                delete(namespaces::delete),
            ],
        ),
        path(
            "/namespaces/{namespaceId}/managers",
            [get(managers::list), post(managers::create)],
        ),
        path(
            "/namespaces/{namespaceId}/managers:preview",
            [post(previews::preview_draft)],
        ),
        path(
            "/namespaces/{namespaceId}/managers/{managerId}",
            [
                get(managers::get),
                patch(managers::update),
                delete(managers::delete),
            ],
        ),
        path(
            "/namespaces/{namespaceId}/managers/{managerId}:apply",
            [post(managers::apply)],
        ),
        path(
            "/namespaces/{namespaceId}/managers/{managerId}:preview",
            [post(previews::preview)],
        ),
        path(
            "/namespaces/{namespaceId}/managers/{managerId}:backfill",
            [post(backfills::create)],
        ),
        path(
            "/namespaces/{namespaceId}/managers/{managerId}/feeds",
            [get(feeds::of_manager)],
        ),
        path(
            "/namespaces/{namespaceId}/managers/{managerId}/scans/{scanId}",
            [get(scans::get), patch(scans::update)],
        ),
        path(
            "/namespaces/{namespaceId}/connections",
            [get(connections::list), post(connections::create)],
        ),
        path(
            "/namespaces/{namespaceId}/connections/{connectionId}",
            [
                get(connections::get),
                patch(connections::update),
                delete(connections::delete),
            ],
        ),
        path(
            "/namespaces/{namespaceId}/connections/{connectionId}:enable",
            [post(connections::enable)],
        ),
        path(
            "/namespaces/{namespaceId}/connections/{connectionId}:test",
            [post(trial_deliveries::test)],
        ),
        path(
            "/namespaces/{namespaceId}/connections/{connectionId}:replay",
            [post(replays::create)],
        ),
        path(
            "/namespaces/{namespaceId}/connections/{connectionId}/replays",
            [get(replays::list)],
        ),
        path(
            "/namespaces/{namespaceId}/connections/{connectionId}/replays/{replayId}",
            [get(replays::get), delete(replays::cancel)],
        ),
        path(
            "/namespaces/{namespaceId}/connections/{connectionId}/deliveries",
            [get(deliveries::list)],
        ),
        path(
            "/namespaces/{namespaceId}/connections/{connectionId}/deliveries/{deliveryId}",
            [get(deliveries::get)],
        ),
        path(
            "/namespaces/{namespaceId}/connections/{connectionId}/deliveries/{deliveryId}:retry",
            [post(deliveries::retry)],
        ),
    ]
}

/// Paths for feed readers, which also accept the key as a Basic password.
fn readers() -> Vec<Path> {
    vec![
        path(
            "/{namespaceId}/{managerId}.atom",
            [get(feeds_of_scans::atom)],
        ),
        path(
            "/{namespaceId}/{managerId}.json",
            [get(feeds_of_scans::json)],
        ),
    ]
}

/// The path below `/mcp`, which needs a key. It is not in `openapi.yaml`, because the Model Context Protocol specifies it.
fn protocol() -> Path {
    path("", [post(mcp::serve)])
}

/// Public paths.
fn documents() -> Vec<Path> {
    vec![
        path("/docs", [get(docs::page)]),
        path("/openapi.json", [get(documents::json)]),
        path("/openapi.yaml", [get(documents::yaml)]),
    ]
}

/// Pages and their assets, and sign-in to the console, which are not part of the API.
fn files() -> Vec<Path> {
    vec![
        path("/docs/{file}", [get(docs::file)]),
        path("/console", [get(console::folder)]),
        path("/console/", [get(console::page)]),
        path("/console/sign-in", [get(sign_in::describe)]),
        path("/console/sign-in/begin", [get(sign_in::begin)]),
        path("/console/sign-in/callback", [get(sign_in::callback)]),
        path("/console/sign-in/token", [post(sign_in::token)]),
        path("/console/sign-in/end", [post(sign_in::end)]),
        path("/console/{file}", [get(console::file)]),
        path(
            "/mail/confirm/{token}",
            [get(mail::confirm_page), post(mail::confirm)],
        ),
        path(
            "/mail/unsubscribe/{token}",
            [get(mail::unsubscribe_page), post(mail::unsubscribe)],
        ),
    ]
}

/// Every operation, as method and path template.
pub fn operations() -> Vec<(String, String)> {
    let below = |prefix: &'static str, paths: Vec<Path>| {
        paths.into_iter().flat_map(move |path| {
            path.operations.into_iter().map(move |operation| {
                let template = format!("{prefix}{}", path.path);
                (operation.method.to_string(), template)
            })
        })
    };
    below(VERSION, resources())
        .chain(below(FEEDS, readers()))
        .chain(below("", documents()))
        .collect()
}

pub(crate) fn configure(config: &mut web::ServiceConfig) {
    for path in documents().into_iter().chain(files()) {
        config.service(path.into_resource());
    }
    configure_resources(config);
    let mut feeds = web::scope(FEEDS);
    for path in readers() {
        feeds = feeds.service(path.into_resource());
    }
    config.service(
        feeds
            .default_service(web::to(not_found))
            .wrap(from_fn(authenticate_reader)),
    );
    config.service(
        web::scope(MCP)
            .service(protocol().into_resource())
            .default_service(web::to(not_found))
            .wrap(from_fn(authenticate)),
    );
    config.default_service(web::to(not_found));
}

/// The paths below `/v1`.
pub(crate) fn configure_resources(config: &mut web::ServiceConfig) {
    let mut version = web::scope(VERSION);
    for path in resources() {
        version = version.service(path.into_resource());
    }
    config.service(
        version
            .default_service(web::to(not_found))
            .wrap(from_fn(authenticate)),
    );
}

fn path<const N: usize>(path: &'static str, operations: [Operation; N]) -> Path {
    Path {
        path,
        operations: operations.into(),
    }
}

/// Route for GET that also answers HEAD (RFC 9110 9.3.2).
fn get<H, A>(handler: H) -> Operation
where
    H: Handler<A>,
    A: FromRequest + 'static,
    H::Output: Responder + 'static,
{
    let guard = guard::Any(guard::Get()).or(guard::Head());
    Operation {
        method: Method::GET,
        route: web::route().guard(guard).to(handler),
    }
}

fn post<H, A>(handler: H) -> Operation
where
    H: Handler<A>,
    A: FromRequest + 'static,
    H::Output: Responder + 'static,
{
    operation(Method::POST, handler)
}

fn patch<H, A>(handler: H) -> Operation
where
    H: Handler<A>,
    A: FromRequest + 'static,
    H::Output: Responder + 'static,
{
    operation(Method::PATCH, handler)
}

fn delete<H, A>(handler: H) -> Operation
where
    H: Handler<A>,
    A: FromRequest + 'static,
    H::Output: Responder + 'static,
{
    operation(Method::DELETE, handler)
}

fn operation<H, A>(method: Method, handler: H) -> Operation
where
    H: Handler<A>,
    A: FromRequest + 'static,
    H::Output: Responder + 'static,
{
    Operation {
        route: web::method(method.clone()).to(handler),
        method,
    }
}

/// All path templates of the table.
static TEMPLATES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let below = |prefix: &'static str, paths: Vec<Path>| {
        paths
            .into_iter()
            .map(move |path| format!("{prefix}{}", path.path))
    };
    below(VERSION, resources())
        .chain(below(FEEDS, readers()))
        .chain(below("", documents()))
        .chain(below("", files()))
        .chain(below(MCP, vec![protocol()]))
        .collect()
});

/// Returns the template of a request's path, or an empty string. Compares segments for each path that is tried;
/// uses no regular expression.
pub(crate) fn template(path: &str) -> &'static str {
    TEMPLATES
        .iter()
        .find(|template| is_of(path, template))
        .map_or("", String::as_str)
}

fn is_of(path: &str, template: &str) -> bool {
    let mut segments = path.split('/');
    template.split('/').all(|spelled| {
        let Some(segment) = segments.next() else {
            return false;
        };
        match spelled.strip_prefix('{').and_then(|it| it.split_once('}')) {
            Some((_, verb)) => segment
                .strip_suffix(verb)
                .is_some_and(|id| !id.is_empty() && !id.contains(':')),
            None => segment == spelled,
        }
    }) && segments.next().is_none()
}

impl Path {
    fn into_resource(self) -> impl actix_web::dev::HttpServiceFactory {
        let mut allow = Vec::new();
        let mut resource = web::resource(self.path.replace('}', &format!("{ID_FORM}}}")));
        for operation in self.operations {
            allow.push(operation.method.to_string());
            if operation.method == Method::GET {
                allow.push(Method::HEAD.to_string());
            }
            resource = resource.route(operation.route);
        }
        let allow = allow.join(", ");
        let refuse = move || {
            let allow = allow.clone();
            async move { Err::<String, _>(ApiError::MethodNotAllowed { allow }) }
        };
        resource
            .default_service(web::to(refuse))
            .wrap(from_fn(contain_panics))
    }
}

async fn not_found() -> Result<String, ApiError> {
    Err(ApiError::NotFound("path"))
}

/// Turns a panic of a handler into a 500, without effect on other requests.
async fn contain_panics(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, BoxBody>>, Error> {
    let original = request.request().clone();
    match AssertUnwindSafe(next.call(request)).catch_unwind().await {
        Ok(answer) => Ok(answer?.map_into_left_body()),
        Err(panic) => {
            let words = panic
                .downcast_ref::<&str>()
                .map(|words| (*words).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            let error = ApiError::Internal(anyhow::anyhow!("a handler panicked: {words}"));
            Ok(ServiceResponse::new(original, error.error_response()).map_into_right_body())
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{App, test as app_test};

    use super::{get, path, post, template};

    #[actix_web::test]
    async fn custom_methods_have_separate_paths() {
        async fn plain() -> &'static str {
            "plain"
        }
        async fn verb(id: actix_web::web::Path<String>) -> String {
            format!("verb of {id}")
        }
        let app = App::new()
            .service(path("/things/{thingId}", [get(plain)]).into_resource())
            .service(path("/things/{thingId}:apply", [post(verb)]).into_resource());
        let app = app_test::init_service(app).await;
        for (request, status, body) in [
            (app_test::TestRequest::get().uri("/things/a"), 200, "plain"),
            (
                app_test::TestRequest::post().uri("/things/a:apply"),
                200,
                "verb of a",
            ),
            (
                app_test::TestRequest::post().uri("/things/a%3Aapply"),
                200,
                "verb of a",
            ),
            (app_test::TestRequest::get().uri("/things/a:apply"), 405, ""),
            (app_test::TestRequest::post().uri("/things/a"), 405, ""),
            (
                app_test::TestRequest::post().uri("/things/a:other"),
                404,
                "",
            ),
            (app_test::TestRequest::get().uri("/things/a:b"), 404, ""),
            (
                app_test::TestRequest::post().uri("/things/a:b:apply"),
                404,
                "",
            ),
            (app_test::TestRequest::post().uri("/things/:apply"), 404, ""),
            (
                app_test::TestRequest::post().uri("/things/a:apply/b"),
                404,
                "",
            ),
        ] {
            let request = request.to_request();
            let what = format!("{} {}", request.method(), request.uri());
            let answer = app_test::call_service(&app, request).await;
            assert_eq!(answer.status(), status, "{what}");
            if status == 200 {
                assert_eq!(app_test::read_body(answer).await, body, "{what}");
            }
        }
    }

    #[actix_web::test]
    async fn templates_equal_those_of_openapi_yaml() {
        let scans = "/v1/namespaces/{namespaceId}/managers/{managerId}/scans";
        for (path, expected) in [
            ("/v1/namespaces/n/managers/m/scans", scans),
            ("/v1/namespaces/-/managers/-/scans", scans),
            (
                "/v1/namespaces/n/managers/m:apply",
                "/v1/namespaces/{namespaceId}/managers/{managerId}:apply",
            ),
            ("/v1/namespaces/n/managers/m:other", ""),
            ("/v1/namespaces/n/managers/:apply", ""),
            ("/v1/namespaces//managers/m", ""),
            ("/v1/namespaces/n/", ""),
            ("/v1/namespaces/n/managers/m/scans/s/t", ""),
            ("/v1", ""),
            ("/docs/style.css", "/docs/{file}"),
            ("/openapi.json", "/openapi.json"),
            ("", ""),
        ] {
            assert_eq!(template(path), expected, "{path}");
        }
    }

    /// Metrics and logs of a request use the route that answers it.
    #[actix_web::test]
    async fn requests_are_routed_by_their_templates() {
        let app = App::new().service(actix_web::web::scope(super::VERSION).configure(|config| {
            for each in super::resources() {
                let to: &'static str = each.path;
                let resource =
                    actix_web::web::resource(to.replace('}', &format!("{}}}", super::ID_FORM)));
                let answer = move || async move { to };
                config.service(resource.to(answer));
            }
        }));
        let app = app_test::init_service(app).await;
        for each in super::resources() {
            let filled = each.path.split('/').map(|segment| {
                match segment.strip_prefix('{').and_then(|it| it.split_once('}')) {
                    Some((_, verb)) => format!("01ARZ3NDEKTSV4RRFFQ69G5FAV{verb}"),
                    None => segment.to_owned(),
                }
            });
            let path = format!("/v1{}", filled.collect::<Vec<_>>().join("/"));
            let request = app_test::TestRequest::get().uri(&path).to_request();
            let routed = app_test::read_body(app_test::call_service(&app, request).await).await;
            assert_eq!(routed, each.path, "{path}");
            assert_eq!(template(&path), format!("/v1{}", each.path));
        }
    }

    async fn panics() -> String {
        panic!("the password is hush")
    }

    #[actix_web::test]
    async fn panic_in_a_handler_becomes_an_internal_error() {
        let app = App::new().service(path("/panics", [get(panics)]).into_resource());
        let app = app_test::init_service(app).await;
        for _ in 0..2 {
            let request = app_test::TestRequest::get().uri("/panics").to_request();
            let answer = app_test::call_service(&app, request).await;
            assert_eq!(answer.status(), 500);
            let body: serde_json::Value = app_test::read_body_json(answer).await;
            let expected = serde_json::json!({"code": 500, "message": "internal error"});
            assert_eq!(body, expected);
        }
    }
}
