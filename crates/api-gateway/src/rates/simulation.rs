//! Simulation of the rate limit with virtual time: replicas with separate clocks, network delay, lost answers, and
//! replicas that die. It runs the production ledgers and leases.

use std::collections::VecDeque;

use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};
use store::rates::{Ledger, Ledgers, Limits, Settlement, SharedGrant, WINDOW_MS, Wanted};

use super::Book;

/// Parameters of a simulation. `lost` and `dies` are frequencies per thousand.
#[derive(Debug, Clone)]
struct World {
    seed: u64,
    limit: u32,
    account_limit: u32,
    replicas: usize,
    /// Keys of one account. Each replica gets requests of one of them.
    keys: usize,
    /// Time between two requests at one replica.
    pause_ms: (i64, i64),
    costs: Vec<u32>,
    /// Maximum network delay in each direction.
    longest_way_ms: i64,
    lost: u32,
    dies: u32,
    seconds: i64,
}

struct Replica {
    key: usize,
    book: Book,
    /// Offset of its monotonic clock from true time.
    clock_ms: i64,
    next_request_ms: i64,
    cost: u32,
    asking: Option<u64>,
}

struct Question {
    number: u64,
    replica: usize,
    arrives_ms: i64,
    returns_ms: i64,
    asked_ms: i64,
    wanted: Wanted,
    settled: Option<Settlement>,
    grant: Option<SharedGrant>,
    lost: bool,
}

/// Returns the times and points of all accepted requests, for each key.
fn run(world: &World) -> Vec<Vec<(i64, u32)>> {
    let mut rng = StdRng::seed_from_u64(world.seed);
    let mut ledgers = vec![Ledger::default(); world.keys];
    let mut account = Ledger::default();
    let limits = Limits {
        key: world.limit,
        account: world.account_limit,
    };
    let database_ms = rng.random_range(0..1_000_000_000_000);
    let mut replicas: Vec<Replica> = (0..world.replicas)
        .map(|number| Replica {
            key: number % world.keys,
            book: Book::default(),
            clock_ms: rng.random_range(0..1_000_000),
            next_request_ms: rng.random_range(0..1_000),
            cost: world.costs[rng.random_range(0..world.costs.len())],
            asking: None,
        })
        .collect();
    let mut questions: VecDeque<Question> = VecDeque::new();
    let mut through = vec![Vec::new(); world.keys];
    let mut numbers = 0;
    for now in 0..world.seconds * 1_000 {
        for question in &mut questions {
            if question.arrives_ms == now {
                let key = &mut ledgers[replicas[question.replica].key];
                let mut both = Ledgers {
                    key: std::mem::take(key),
                    account: std::mem::take(&mut account),
                };
                if let Some(settled) = &question.settled {
                    both.settle(settled);
                }
                let now_ms = now + database_ms;
                question.grant = Some(both.grant(now_ms, limits, &question.wanted));
                (*key, account) = (both.key, both.account);
            }
        }
        while let Some(at) = questions
            .iter()
            .position(|question| question.returns_ms <= now)
        {
            let Some(question) = questions.remove(at) else {
                break;
            };
            let replica = &mut replicas[question.replica];
            if replica.asking != Some(question.number) {
                continue;
            }
            replica.asking = None;
            let clock = now + replica.clock_ms;
            if let Some(grant) = question.grant.filter(|_| !question.lost) {
                replica
                    .book
                    .record(&question.wanted, question.asked_ms, clock, &grant);
                let charged = replica
                    .book
                    .charge(clock, world.limit, question.wanted.least);
                if charged.is_some_and(|charged| charged.is_ok()) {
                    through[replica.key]
                        .push((now, question.wanted.least.min(world.account_limit)));
                }
            }
        }
        for (number, replica) in replicas.iter_mut().enumerate() {
            if now < replica.next_request_ms || replica.asking.is_some() {
                continue;
            }
            if rng.random_range(0..1_000) < world.dies {
                replica.book = Book::default();
                replica.clock_ms = rng.random_range(0..1_000_000);
            }
            replica.next_request_ms = now + rng.random_range(world.pause_ms.0..=world.pause_ms.1);
            let cost = replica.cost;
            replica.cost = world.costs[rng.random_range(0..world.costs.len())].min(world.limit);
            let clock = now + replica.clock_ms;
            match replica.book.charge(clock, world.limit, cost) {
                Some(Ok(_)) => {
                    through[replica.key].push((now, cost.min(replica.book.lower(world.limit))))
                }
                Some(Err(_)) => {}
                None => {
                    let (wanted, settled) = replica.book.next(clock, world.limit, cost);
                    numbers += 1;
                    replica.asking = Some(numbers);
                    let arrives_ms = now + rng.random_range(1..=world.longest_way_ms);
                    questions.push_back(Question {
                        number: numbers,
                        replica: number,
                        arrives_ms,
                        returns_ms: arrives_ms + rng.random_range(1..=world.longest_way_ms),
                        asked_ms: clock,
                        wanted,
                        settled,
                        grant: None,
                        lost: rng.random_range(0..1_000) < world.lost,
                    });
                }
            }
        }
    }
    through
}

/// Accepted points of all keys, ordered by time.
fn together(through: &[Vec<(i64, u32)>]) -> Vec<(i64, u32)> {
    let mut all = through.concat();
    all.sort_unstable();
    all
}

/// Highest number of points accepted in any window.
fn most_in_a_window(through: &[(i64, u32)]) -> u32 {
    let mut most = 0;
    let (mut sum, mut first) = (0, 0);
    for &(at, points) in through {
        sum += points;
        while through[first].0 + WINDOW_MS <= at {
            sum -= through[first].1;
            first += 1;
        }
        most = most.max(sum);
    }
    most
}

fn worlds() -> impl Strategy<Value = World> {
    (
        any::<u64>(),
        (prop_oneof![1u32..40, 40u32..700], 1u32..1_500),
        (1usize..5, 1usize..4),
        (1i64..300, 0i64..8_000),
        prop_oneof![Just(vec![1]), Just(vec![1, 1, 1, 5]), Just(vec![1, 5, 20])],
        prop_oneof![Just(3i64), Just(400), Just(7_000)],
        prop_oneof![Just(0u32), Just(100)],
        prop_oneof![Just(0u32), Just(20)],
    )
        .prop_map(
            |(seed, limits, (replicas, keys), (least, more), costs, longest_way_ms, lost, dies)| {
                World {
                    seed,
                    limit: limits.0,
                    account_limit: limits.1,
                    replicas,
                    keys,
                    pause_ms: (least, least + more),
                    costs,
                    longest_way_ms,
                    lost,
                    dies,
                    seconds: 150,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_window_exceeds_the_limit(world in worlds()) {
        let through = run(&world);
        for of_key in &through {
            prop_assert!(most_in_a_window(of_key) <= world.limit);
        }
        prop_assert!(most_in_a_window(&together(&through)) <= world.account_limit);
    }
}

#[test]
fn nearly_the_whole_limit_is_usable_under_load() {
    for (replicas, keys, costs) in [
        (1, 1, vec![1]),
        (2, 1, vec![1]),
        (2, 1, vec![1, 1, 5]),
        (4, 1, vec![1, 5]),
        (4, 2, vec![1, 5]),
        (8, 4, vec![1]),
    ] {
        let world = World {
            seed: 7,
            limit: 600,
            account_limit: if keys == 1 { 6_000 } else { 600 },
            replicas,
            keys,
            pause_ms: (1, 40),
            costs,
            longest_way_ms: 3,
            lost: 0,
            dies: 0,
            seconds: 600,
        };
        let through = together(&run(&world));
        assert!(most_in_a_window(&through) <= world.limit);
        // First in the minute of the key's first use, then in the long run.
        let within = |seconds: i64| -> u32 {
            let within = through.iter().filter(|(at, _)| *at < seconds * 1_000);
            within.map(|(_, points)| points).sum()
        };
        for minutes in [1, 10] {
            let points = within(minutes * 60);
            let least = u32::try_from(minutes).unwrap() * world.limit * 95 / 100;
            println!("{points} points in {minutes} min by {replicas} replicas, {keys} keys");
            assert!(points >= least, "{points} in {minutes} min, {world:?}");
        }
    }
}

#[test]
fn simulation_detects_a_broken_rate_limit() {
    assert_eq!(most_in_a_window(&[(0, 5), (59_999, 4), (60_000, 3)]), 9);
}
