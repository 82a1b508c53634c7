//! The rules of lanes, without requests.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use domain::{
    ConnectionName, DeliveryName, Id, ScanName, Timestamp,
    connection::{Format, Headers, Method},
};
use store::deliveries::{Age, Subject, Task};

use super::{LARGEST_POST, Lanes, Permit, Place, Ready, state::MAX_POST_BYTES};
use crate::in_hand::Hand;

struct Endpoint {
    account: Id,
    connection: ConnectionName,
}

fn endpoint(account: Id) -> Endpoint {
    let connection = ConnectionName {
        namespace: Id::generate(),
        connection: Id::generate(),
    };
    Endpoint {
        account,
        connection,
    }
}

fn ready(connection: ConnectionName) -> Ready {
    ready_with(connection, "")
}

fn ready_with(connection: ConnectionName, text: &str) -> Ready {
    let post = serde_json::json!({
        "type": "FORUM_LINK", "time": Timestamp::now(), "id": "a", "url": "https://a.example/", "text": text,
        "user": {"id": "u", "name": "U", "url": "https://a.example/u"}
    });
    let task = Task {
        delivery: DeliveryName {
            namespace: connection.namespace,
            connection: connection.connection,
            delivery: Id::generate(),
        },
        subject: Subject::Scan {
            name: ScanName {
                namespace: connection.namespace,
                manager: Id::generate(),
                scan: Id::generate(),
            },
            post: Arc::new(serde_json::from_value(post).unwrap()),
        },
        account: Id::generate(),
        urgent: false,
        attempt_count: 0,
        schedule_base: 0,
        last_status_code: None,
        reopen_time: None,
        age: Age::new(Timestamp::now(), Timestamp::now()),
        url: "https://a.example/".to_owned(),
        connection_update_time: Timestamp::now(),
        method: Method::Post,
        headers: Headers::default(),
        format: Format::default(),
        max_per_second: None,
        signing_secrets: Vec::new(),
        traceparent: None,
    };
    let in_hand = Hand::default().take(task.delivery.delivery);
    Ready {
        task,
        probe: false,
        in_hand,
    }
}

fn fill(lanes: &Lanes, places: Vec<Place>) -> usize {
    let count = places.len();
    for place in places {
        let ready = ready(place.connection);
        assert!(lanes.put(place, ready).is_ok());
    }
    count
}

/// Opens all requests that may be opened.
fn open(lanes: &Arc<Lanes>) -> Vec<Permit> {
    std::iter::from_fn(|| lanes.next())
        .map(|(_, permit)| permit)
        .collect()
}

/// Makes an endpoint succeed until its lane has its maximum limit.
fn prove(lanes: &Arc<Lanes>, at: &Endpoint) {
    for _ in 0..10 {
        fill(lanes, lanes.places(at.connection, at.account, 1));
        for permit in open(lanes) {
            permit.done(true);
        }
    }
}

#[test]
fn a_lane_grows_with_successes_and_halves_with_failures() {
    let lanes = Lanes::new(100, 8);
    let at = endpoint(Id::generate());
    let mut widths = Vec::new();
    for success in [
        true, true, true, true, true, true, true, true, false, false, false, false, true,
    ] {
        fill(&lanes, lanes.places(at.connection, at.account, 100));
        let permits = open(&lanes);
        widths.push(permits.len());
        let mut permits = permits.into_iter();
        // Only of the first lane, so that each step is one result.
        permits.next().unwrap().done(success);
        let rest: Vec<_> = permits.collect();
        let limit = lanes.lock().lanes[&at.connection].endpoint.limit;
        for permit in rest {
            permit.done(success);
        }
        let mut state = lanes.lock();
        state.lanes.get_mut(&at.connection).unwrap().endpoint.limit = limit;
        drop(state);
        lanes.empty();
        lanes.lock().closing = false;
    }
    assert_eq!(widths, [1, 2, 3, 4, 5, 6, 7, 8, 8, 4, 2, 1, 1]);
}

#[test]
fn open_requests_never_exceed_the_maximum() {
    let lanes = Lanes::new(10, 8);
    let endpoints: Vec<_> = (0..4).map(|_| endpoint(Id::generate())).collect();
    for at in &endpoints {
        prove(&lanes, at);
    }
    for at in &endpoints {
        fill(&lanes, lanes.places(at.connection, at.account, 100));
    }
    let permits = open(&lanes);
    assert_eq!((permits.len(), lanes.open()), (10, 10));
    drop(permits);
    assert_eq!(lanes.open(), 0);
}

#[test]
fn lanes_on_probation_of_an_account_share_a_quarter_of_the_capacity() {
    let lanes = Lanes::new(40, 8);
    let account = Id::generate();
    let well = endpoint(account);
    prove(&lanes, &well);
    let fresh: Vec<_> = (0..100).map(|_| endpoint(account)).collect();
    let mut queued = 0;
    for at in &fresh {
        queued += fill(&lanes, lanes.places(at.connection, account, 1));
    }
    assert_eq!(queued, 20, "a quarter of what may be held");
    let on_probation = open(&lanes);
    assert_eq!(on_probation.len(), 10);
    assert_eq!(fill(&lanes, lanes.places(well.connection, account, 8)), 8);
    assert_eq!(open(&lanes).len(), 8, "the others find their places");
    drop(on_probation);
}

#[test]
fn account_with_many_lanes_on_probation_leaves_places_for_others() {
    let lanes = Lanes::new(40, 8);
    let (large, small) = (Id::generate(), Id::generate());
    let many: Vec<_> = (0..100).map(|_| endpoint(large)).collect();
    for at in &many {
        fill(&lanes, lanes.places(at.connection, large, 1));
    }
    // Probes and requested deliveries are admitted elsewhere, and count too.
    for at in &many {
        fill(&lanes, vec![lanes.exempt_place(at.connection, large)]);
    }
    let hung = open(&lanes);
    assert_eq!(hung.len(), 10);
    assert!(!lanes.has_place(endpoint(large).connection, large));
    drop(lanes.empty());
    lanes.lock().closing = false;

    let one = endpoint(small);
    assert!(lanes.has_place(one.connection, small));
    assert_eq!(fill(&lanes, lanes.places(one.connection, small, 1)), 1);
    fill(&lanes, lanes.places(many[50].connection, large, 1));
    let opened: Vec<_> = std::iter::from_fn(|| lanes.next()).collect();
    let opened: Vec<_> = opened
        .iter()
        .map(|(ready, _)| ready.task.delivery.connection_name())
        .collect();
    assert_eq!(opened, [one.connection]);
    drop(hung);
}

#[test]
fn account_whose_connections_hang_at_once_leaves_capacity_for_others() {
    let lanes = Lanes::new(64, 8);
    let (large, small) = (Id::generate(), Id::generate());
    let many: Vec<_> = (0..16).map(|_| endpoint(large)).collect();
    let (steady, new) = (endpoint(small), endpoint(small));
    for at in many.iter().chain([&steady]) {
        prove(&lanes, at);
    }
    for at in &many {
        fill(&lanes, lanes.places(at.connection, large, 7));
    }
    let hung = open(&lanes);
    assert_eq!(hung.len(), 56);
    let since = Instant::now() - Duration::from_secs(3);
    for lane in lanes.lock().lanes.values_mut() {
        for open in &mut lane.open {
            open.since = since;
        }
    }
    lanes.tick();
    for at in [&steady, &new] {
        assert!(lanes.has_place(at.connection, small));
        fill(&lanes, lanes.places(at.connection, small, 1));
    }
    assert_eq!(open(&lanes).len(), 2);
    drop(hung);
}

#[test]
fn accounts_take_turns_when_capacity_is_short() {
    let lanes = Lanes::new(8, 2);
    let (large, small) = (Id::generate(), Id::generate());
    let many: Vec<_> = (0..6).map(|_| endpoint(large)).collect();
    let one = endpoint(small);
    for at in many.iter().chain([&one]) {
        lanes.mark_backlogged(at.connection, at.account);
    }
    let order: Vec<bool> = lanes
        .wants(4)
        .iter()
        .map(|(connection, _)| *connection == one.connection)
        .collect();
    assert_eq!(order, [false, true]);
}

#[test]
fn new_deliveries_do_not_overtake_waiting_ones() {
    let lanes = Lanes::new(10, 2);
    let at = endpoint(Id::generate());
    assert!(lanes.offer(at.connection, at.account, 0).is_some());
    lanes.mark_backlogged(at.connection, at.account);
    assert!(lanes.offer(at.connection, at.account, 0).is_none());
    assert_eq!(lanes.wants(10).len(), 1);
    lanes.clear_backlog(at.connection);
    assert!(lanes.wants(10).is_empty());
    assert!(lanes.offer(at.connection, at.account, 0).is_some());
}

#[test]
fn open_breaker_returns_queued_deliveries() {
    let lanes = Lanes::new(100, 8);
    let at = endpoint(Id::generate());
    prove(&lanes, &at);
    let mut places = lanes.places(at.connection, at.account, 20);
    let late = places.pop().unwrap();
    fill(&lanes, places);
    let open = open(&lanes);
    assert_eq!(open.len(), 8);
    assert_eq!(lanes.block(at.connection).len(), 11);
    assert!(lanes.put(late, ready(at.connection)).is_err());
    let mut probe = ready(at.connection);
    probe.probe = true;
    drop(open);
    let place = lanes.places(at.connection, at.account, 1).pop().unwrap();
    assert!(lanes.put(place, probe).is_ok());
    assert!(lanes.next().is_some_and(|(ready, _)| ready.probe));
    assert_eq!(lanes.lock().held, 0, "every place was given back");
    assert_eq!(lanes.lock().probation_held.holders().count(), 0);
}

#[test]
fn endpoint_that_asks_for_a_pause_gets_nothing_until_the_pause_is_written() {
    let lanes = Lanes::new(100, 8);
    let at = endpoint(Id::generate());
    prove(&lanes, &at);
    fill(&lanes, lanes.places(at.connection, at.account, 20));
    let mut refused = open(&lanes);
    let (first, queued) = lanes.pause(at.connection);
    let (second, none) = lanes.pause(at.connection);
    assert_eq!((queued.len(), none.len()), (12, 0));
    refused.pop().unwrap().done(false);
    drop(first);
    // The database does not know the pause, so it reports that the Connection may get deliveries.
    lanes.unblock(at.connection);
    assert!(lanes.offer(at.connection, at.account, 0).is_none());
    lanes.mark_backlogged(at.connection, at.account);
    assert!(lanes.wants(10).is_empty());
    assert!(!lanes.has_place(at.connection, at.account));
    drop(second);
    drop(refused);
    lanes.mark_backlogged(at.connection, at.account);
    assert_eq!(lanes.wants(10).len(), 1);
}

#[test]
fn results_that_cannot_be_written_hold_back_requests() {
    let lanes = Lanes::new(3, 3);
    let at = endpoint(Id::generate());
    let mut unwritten: Vec<_> = (0..2).map(|_| lanes.unwritten()).collect();
    fill(&lanes, lanes.places(at.connection, at.account, 1));
    assert_eq!(open(&lanes).len(), 1);
    fill(&lanes, lanes.places(at.connection, at.account, 1));
    unwritten.push(lanes.unwritten());
    assert!(lanes.next().is_none());
    assert!(lanes.offer(at.connection, at.account, 0).is_none());
    unwritten.pop();
    assert!(lanes.next().is_some());
}

#[tokio::test]
async fn lanes_without_capacity_ask_again_when_results_are_written() {
    let lanes = Lanes::new(3, 3);
    let at = endpoint(Id::generate());
    let mut unwritten: Vec<_> = (0..4).map(|_| lanes.unwritten()).collect();
    lanes.mark_backlogged(at.connection, at.account);
    assert!(lanes.wants(10).is_empty());
    let hungry = || tokio::time::timeout(Duration::from_millis(1), lanes.hungry());
    unwritten.pop();
    assert!(hungry().await.is_err(), "there is no room yet");
    unwritten.pop();
    assert!(hungry().await.is_ok());
    assert_eq!(lanes.wants(10).len(), 1);

    // A throttled lane is claimed by a query for due Connections.
    lanes.clear_backlog(at.connection);
    let restrained = endpoint(Id::generate());
    unwritten.push(lanes.unwritten());
    assert!(!lanes.has_place(restrained.connection, restrained.account));
    assert!(!lanes.take_fed());
    unwritten.pop();
    assert!(hungry().await.is_ok());
    assert!(lanes.take_fed());
}

#[test]
fn few_lanes_that_are_behind_leave_capacity_for_others() {
    let lanes = Lanes::new(200, 8);
    let account = Id::generate();
    let endpoints: Vec<_> = (0..16).map(|_| endpoint(account)).collect();
    for at in &endpoints {
        prove(&lanes, at);
    }
    for at in &endpoints {
        lanes.mark_backlogged(at.connection, at.account);
    }
    let wanted = lanes.wants(128);
    assert_eq!(wanted.len(), 16);
    assert!(wanted.iter().all(|(_, places)| places.len() == 8));
}

/// Fills all places that are offered for posts of the largest size.
fn fill_with_large_posts(lanes: &Arc<Lanes>, at: &[Endpoint]) -> usize {
    let text = "x".repeat(LARGEST_POST);
    let mut count = 0;
    for at in at {
        while let Some(place) = lanes.offer(at.connection, at.account, text.len()) {
            assert!(lanes.put(place, ready_with(at.connection, &text)).is_ok());
            count += 1;
        }
    }
    count
}

#[test]
fn large_posts_of_an_account_leave_bytes_for_others() {
    let lanes = Lanes::new(10_000, 8);
    let (large, small) = (Id::generate(), Id::generate());
    let many: Vec<_> = (0..40).map(|_| endpoint(large)).collect();
    let one = endpoint(small);
    for at in many.iter().chain([&one]) {
        prove(&lanes, at);
    }
    let count = fill_with_large_posts(&lanes, &many);
    assert_eq!(count, MAX_POST_BYTES / 4 * 3 / LARGEST_POST);
    assert!(!lanes.has_place(many[0].connection, large));
    assert!(lanes.places(many[39].connection, large, 1).is_empty());

    assert!(lanes.has_place(one.connection, small));
    assert_eq!(lanes.places(one.connection, small, 1).len(), 1);
    assert!(lanes.offer(one.connection, small, LARGEST_POST).is_some());
    // Nothing is left over when all have ended, however they end.
    let opened = open(&lanes);
    let returned = lanes.block(many[0].connection).len() + lanes.empty().len();
    assert_eq!(returned, count - opened.len());
    drop(opened);
    assert_eq!(lanes.lock().post_bytes.holders().count(), 0);
}

#[tokio::test]
async fn lanes_without_bytes_ask_again_when_a_request_ends() {
    let lanes = Lanes::new(10_000, 8);
    let account = Id::generate();
    let many: Vec<_> = (0..40).map(|_| endpoint(account)).collect();
    for at in &many {
        prove(&lanes, at);
    }
    fill_with_large_posts(&lanes, &many);
    let waiting = endpoint(account);
    lanes.mark_backlogged(waiting.connection, account);
    assert!(lanes.wants(1).is_empty());
    let mut open = open(&lanes);
    // Of another Connection.
    for permit in open.drain(..2) {
        permit.done(true);
    }
    lanes.hungry().await;
    assert_eq!(lanes.wants(1).len(), 1);
}

#[test]
fn mail_keeps_the_bytes_of_the_largest_post_for_a_digest() {
    let lanes = Lanes::new(10_000, 8);
    let at = endpoint(Id::generate());
    prove(&lanes, &at);
    let mut ready = ready_with(at.connection, "four");
    ready.task.format = Format::Email;
    let place = lanes.places(at.connection, at.account, 1).remove(0);
    assert!(lanes.put(place, ready).is_ok());
    let held = || lanes.lock().post_bytes.held_by(at.account);
    assert_eq!(held(), LARGEST_POST);
    drop(open(&lanes));
    assert_eq!(held(), 0);
}

#[test]
fn place_reserves_the_largest_post_until_the_size_is_known() {
    let lanes = Lanes::new(10_000, 8);
    let at = endpoint(Id::generate());
    prove(&lanes, &at);
    let mut places = lanes.places(at.connection, at.account, 3);
    let held = || lanes.lock().post_bytes.held_by(at.account);
    assert_eq!(held(), 3 * LARGEST_POST);
    places[0].fit(&ready_with(at.connection, "four"));
    assert_eq!(held(), 2 * LARGEST_POST + 4);
    let ready = ready_with(at.connection, "three");
    assert!(lanes.put(places.pop().unwrap(), ready).is_ok());
    assert_eq!(held(), LARGEST_POST + 9);
    drop(places);
    assert_eq!(held(), 5);
    drop(open(&lanes));
    assert_eq!(held(), 0);
}
