//! Traces in a collector: the steps from a request to a webhook are one trace, through RabbitMQ.

use std::time::Duration;

use http::Method;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind::{
    self, Client, Consumer, Internal, Producer, Server,
};
use serde_json::json;

use super::support::{Customer, PATIENCE, name};
use crate::{
    customer,
    harness::{
        Part, Stack, api,
        collector::{Collector, Span},
        eventually,
        receiver::{Behaviour, Receiver},
    },
    posts::Post,
};

const WORD: &str = "larkspindle";
const EXPORT: Duration = Duration::from_secs(120);
const BACKFILLS: usize = 10;
const KNOWN_TRACE: u128 = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c;
const UNKNOWN_TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;

const POLLED: &[Step] = &[
    ("earshot-webhook-dispatcher", "POST", Client),
    ("earshot-webhook-dispatcher", "deliver webhook", Internal),
    ("earshot-webhook-dispatcher", "fan out", Internal),
    (
        "earshot-webhook-dispatcher",
        "process earshot.events.v1:scan.created:webhook-dispatcher.wakeups",
        Consumer,
    ),
    ("", "publish earshot.events.v1:scan.created", Producer),
    ("earshot-scanner", "store scans", Internal),
    ("earshot-scanner", "poll feed", Internal),
];
const BACKFILLED: &[Step] = &[
    POLLED[0],
    POLLED[1],
    POLLED[2],
    POLLED[3],
    POLLED[4],
    ("earshot-scanner", "backfill feed", Internal),
    (
        "earshot-api-gateway",
        "POST /v1/namespaces/{namespaceId}/managers/{managerId}:backfill",
        Server,
    ),
];
const CREATED: &[Step] = &[
    ("", "publish earshot.events.v1:manager.applied", Producer),
    ("earshot-manager-compiler", "compile manager", Internal),
    (
        "earshot-manager-compiler",
        "process earshot.events.v1:manager.submitted:manager-compiler.wakeups",
        Consumer,
    ),
    ("", "publish earshot.events.v1:manager.submitted", Producer),
    (
        "earshot-api-gateway",
        "POST /v1/namespaces/{namespaceId}/managers",
        Server,
    ),
];

/// Service (empty matches any), name and kind.
type Step = (&'static str, &'static str, SpanKind);

pub(crate) async fn run(stack: &Stack) {
    let collector = Collector::start().await;
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
        ("OTEL_TRACES_SAMPLER", "always_on".to_owned()),
    ];
    stack.set_variables(
        variables
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
    );
    for part in Part::SERVICES {
        stack.ask_to_end(part);
    }
    for part in Part::SERVICES {
        stack.wait_for_end(part);
        stack.restart(part).await;
    }
    let spans = traced(stack, &collector).await;
    // Processes that start from here on are not traced.
    stack.set_variables(Vec::new());

    for (steps, what) in [
        (POLLED, "a poll"),
        (BACKFILLED, "a request that looks through the past"),
        (CREATED, "the creation of a manager"),
    ] {
        assert!(!ways(&spans, steps).is_empty(), "the trace of {what}");
    }
    let poll = ways(&spans, POLLED)[0];
    for (name, kind) in [("GET", Client), ("match posts", Internal)] {
        let found = spans
            .iter()
            .any(|span| span.trace == poll.trace && span.name == name && span.kind == kind);
        assert!(found, "{name} of a poll");
    }
    retries_are_linked(&spans, poll);
    only_known_callers_choose_a_trace(&spans);
    statements_are_told_without_values(&spans);
}

/// Creates traces: one polled post whose first delivery fails, and the same post found by a backfill of another
/// Manager.
async fn traced(stack: &Stack, collector: &Collector) -> Vec<Span> {
    let receiver = Receiver::scripted([Behaviour::Answer(500)]).await;
    let customer = Customer::new(stack, WORD, receiver).await;
    customer.watch_word(WORD).await;
    let post = Post::about(WORD, 0).json();
    stack.simulator.publish(&[post]).await;
    customer.receiver.wait_for(2, PATIENCE).await;
    bring_trace_contexts(stack).await;

    // A backfill that shares its search with an earlier Manager's is linked, and is not part of the trace.
    for nth in 0..BACKFILLS {
        let later = customer::word_manager("FORUM", WORD, &customer.connection);
        let later = stack.api.create_manager(&customer.namespace, &later).await;
        let later = stack.api.applied(&later, PATIENCE).await;
        let path = format!("/v1/{}:backfill", name(&later));
        let answer = stack.api.post(&path, &json!({"notify": true})).await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        customer.receiver.wait_for(3 + nth, PATIENCE).await;
        let found = eventually("the spans of the backfill", EXPORT, async || {
            let spans = collector.spans();
            let found = !ways(&spans, BACKFILLED).is_empty();
            let count = |(_, name, _): Step| spans.iter().filter(|span| span.name == name).count();
            // The first and the last step. Two attempts were made for the post that was polled.
            let is_over = count(BACKFILLED[6]) > nth && count(BACKFILLED[1]) > 2 + nth;
            (found || is_over).then_some(found)
        });
        if found.await {
            break;
        }
    }

    eventually("the spans", EXPORT, async || {
        let spans = collector.spans();
        let whole = [POLLED, BACKFILLED, CREATED];
        let all_there = whole.iter().all(|steps| !ways(&spans, steps).is_empty());
        (all_there && retried(&spans).is_some()).then_some(spans)
    })
    .await
}

/// Returns the spans whose ancestors, up to the start of their trace, are these steps.
fn ways<'a>(spans: &'a [Span], steps: &[Step]) -> Vec<&'a Span> {
    let is = |span: &Span, (service, name, kind): Step| {
        (service.is_empty() || span.service == service) && span.name == name && span.kind == kind
    };
    let leads = |span: &&Span| {
        let mut at = *span;
        for (nth, step) in steps.iter().enumerate() {
            if !is(at, *step) {
                return false;
            }
            let above = spans
                .iter()
                .find(|span| span.trace == at.trace && span.id == at.parent);
            match above {
                Some(above) => at = above,
                None => return nth + 1 == steps.len() && at.parent.is_empty(),
            }
        }
        false
    };
    spans.iter().filter(leads).collect()
}

/// Sends one request with the valid key, and one without a key, each with a trace context.
async fn bring_trace_contexts(stack: &Stack) {
    let context = |trace: u128| format!("00-{trace:032x}-b7ad6b7169203331-01");
    let (known, unknown) = (context(KNOWN_TRACE), context(UNKNOWN_TRACE));
    let path = "/v1/namespaces";
    let headers = [("traceparent", known.as_str())];
    let answer = stack.api.request(Method::GET, path, &headers, None).await;
    assert_eq!(answer.status, 200);
    let url = format!("{}{path}", stack.api.base_url());
    let headers = [("traceparent", unknown.as_str())];
    let answer = api::send(&api::client(), Method::GET, &url, &headers, None).await;
    assert_eq!(answer.status, 401);
}

fn only_known_callers_choose_a_trace(spans: &[Span]) {
    let are_in = |trace: u128| spans.iter().any(|span| span.trace == trace.to_be_bytes());
    assert!(are_in(KNOWN_TRACE), "the trace of a caller with a key");
    assert!(
        !are_in(UNKNOWN_TRACE),
        "the trace of a caller without a key"
    );
}

/// Returns a first attempt and its retry. Deliveries of earlier scenarios may be retried now.
fn retried(spans: &[Span]) -> Option<(&Span, &Span)> {
    let attempt = |span: &&Span, nth: &str| {
        span.name == "deliver webhook" && span.attribute("http.request.resend_count") == Some(nth)
    };
    let of = |span: &Span| span.attribute("delivery.name").map(str::to_owned);
    spans
        .iter()
        .filter(|span| attempt(span, "1"))
        .find_map(|retry| {
            let mut firsts = spans.iter().filter(|span| attempt(span, "0"));
            let first = firsts.find(|first| of(first) == of(retry))?;
            Some((first, retry))
        })
}

/// A retry is a separate trace, with a link to the attempt that it repeats.
fn retries_are_linked(spans: &[Span], poll: &Span) {
    let (first, retry) = retried(spans).unwrap();
    assert!(retry.parent.is_empty() && retry.trace != poll.trace);
    let traces: Vec<&Vec<u8>> = retry.links.iter().map(|(trace, _)| trace).collect();
    assert_eq!(traces, [&first.trace]);
    assert_eq!(first.attribute("outcome"), Some("retrying"));
    assert_eq!(first.attribute("http.response.status_code"), Some("500"));
    assert_eq!(retry.attribute("outcome"), Some("succeeded"));
}

fn statements_are_told_without_values(spans: &[Span]) {
    let of_database = |span: &&Span| span.attribute("db.system.name") == Some("postgresql");
    let statements: Vec<&Span> = spans.iter().filter(of_database).collect();
    let names = ["INSERT managers", "INSERT audit_events"];
    for name in names {
        let found = statements
            .iter()
            .any(|span| span.name == name && span.kind == Client);
        assert!(found, "{name}");
    }
    for span in statements {
        let told = format!("{:?}", span.attributes);
        assert!(!told.contains(WORD) && !told.contains("binds"), "{told}");
    }
}
