//! Faults of PostgreSQL and RabbitMQ (they die, move, block, lose and falsify data), and of the connections to them.

use std::time::{Duration, Instant};

use tokio::{task::block_in_place, time::sleep};

use super::fleet::{Fleet, Remote};
use crate::{
    chance::Chance,
    harness::proxy::{Flow, Proxy},
};

/// The queues that wake replicas.
const QUEUES: [&str; 2] = ["manager-compiler.wakeups", "webhook-dispatcher.wakeups"];
const TRIES: u32 = 300;
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_ABSENCE_MS: u64 = 1_000;
const LONGEST_CUT_MS: u64 = 4_000;
/// Longer than a lease remains valid after its replica's last heartbeat.
const LONGEST_SILENCE_MS: u64 = 7_000;
const LONGEST_DELAY_MS: u64 = 100;
const LONGEST_SLOWNESS_MS: u64 = 4_000;
const LONGEST_ALARM_MS: u64 = 4_000;
const LONGEST_PAUSE_MS: u64 = 1_500;

pub(super) const CUT_SESSIONS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
    WHERE datname = current_database() AND pid <> pg_backend_pid()";

/// Returns the number of faults.
pub(super) async fn disturb(fleet: &Fleet, mut chance: Chance, until: Instant) -> u32 {
    let mut faults = 0;
    while Instant::now() < until {
        sleep(Duration::from_millis(chance.below(LONGEST_PAUSE_MS))).await;
        faults += 1;
        match chance.below(11) {
            0 => {
                let length = Duration::from_millis(chance.below(LONGEST_ABSENCE_MS));
                println!("RabbitMQ is killed for {length:?}");
                block_in_place(|| fleet.rabbitmq().kill());
                sleep(length).await;
                block_in_place(|| fleet.rabbitmq().restart()).unwrap();
            }
            1 => {
                let length = Duration::from_millis(chance.below(LONGEST_ABSENCE_MS));
                println!("PostgreSQL is killed for {length:?}");
                block_in_place(|| fleet.postgres().kill());
                sleep(length).await;
                block_in_place(|| fleet.postgres().restart()).unwrap();
            }
            2 => {
                println!("RabbitMQ's queues are purged");
                for queue in QUEUES {
                    control(fleet, &["purge_queue", queue]);
                }
            }
            3 => {
                let length = Duration::from_millis(chance.below(LONGEST_ALARM_MS));
                println!("RabbitMQ's disk is full for {length:?}");
                fill_disk(fleet, true);
                sleep(length).await;
                fill_disk(fleet, false);
            }
            4 => {
                let bytes = chance.below(64);
                println!("a malformed message of {bytes} bytes is put into each queue");
                for queue in QUEUES {
                    nonsense(fleet, queue, bytes);
                }
            }
            5 => {
                let (ways, name) = network(fleet, &mut chance);
                let length = Duration::from_millis(chance.below(LONGEST_SILENCE_MS));
                println!("{name} is silent for {length:?}");
                set(&ways, Flow::Held);
                sleep(length).await;
                set(&ways, Flow::Free);
            }
            6 => {
                let (ways, name) = network(fleet, &mut chance);
                let delay = Duration::from_millis(chance.below(LONGEST_DELAY_MS));
                let length = Duration::from_millis(chance.below(LONGEST_SLOWNESS_MS));
                println!("{name} answers {delay:?} later for {length:?}");
                set(&ways, Flow::Late(delay));
                sleep(length).await;
                set(&ways, Flow::Free);
            }
            7 => {
                let (ways, name) = network(fleet, &mut chance);
                let length = Duration::from_millis(chance.below(LONGEST_CUT_MS));
                println!("{name} is unreachable for {length:?}");
                ways.iter().for_each(|way| way.cut());
                sleep(length).await;
                for way in ways {
                    way.mend().await;
                }
            }
            8 => {
                let length = Duration::from_millis(chance.below(LONGEST_ABSENCE_MS));
                println!("PostgreSQL moves to another port, which takes {length:?}");
                let port = block_in_place(|| {
                    let mut postgres = fleet.postgres();
                    postgres.kill();
                    std::thread::sleep(length);
                    postgres.restart_elsewhere().unwrap();
                    postgres.port()
                });
                fleet.redirect(Remote::Database, port).await;
            }
            _ => {
                let cut = fleet.query(CUT_SESSIONS);
                println!("{cut} sessions of PostgreSQL are cut");
            }
        }
    }
    faults
}

/// Returns the network to one of the servers: of all replicas, or of one alone.
fn network<'a>(fleet: &'a Fleet, chance: &mut Chance) -> (Vec<&'a Proxy>, String) {
    let remotes = [
        (Remote::Database, "PostgreSQL"),
        (Remote::Broker, "RabbitMQ"),
        (Remote::Platforms, "every platform"),
    ];
    let (remote, name) = *chance.pick(&remotes).unwrap();
    let at = usize::try_from(chance.below(fleet.replicas().len() as u64)).unwrap();
    if chance.one_in(3) {
        return (fleet.ways(remote), name.to_owned());
    }
    let replica = &fleet.replicas()[at];
    let name = format!("{name}, for {} {at} alone,", replica.program);
    (vec![replica.way(remote)], name)
}

fn set(ways: &[&Proxy], flow: Flow) {
    ways.iter().for_each(|way| way.set(flow));
}

/// Fills RabbitMQ's disk: it then accepts no message.
pub(super) fn fill_disk(fleet: &Fleet, full: bool) {
    let limit = if full { "100000000000000" } else { "50MB" };
    control(fleet, &["set_disk_free_limit", limit]);
}

/// A node that has just restarted may not have all of its queues yet.
fn control(fleet: &Fleet, arguments: &[&str]) -> String {
    block_in_place(|| {
        let mut tries = 0;
        loop {
            match fleet.rabbitmq().control(arguments) {
                Ok(printed) => return printed,
                Err(error) if tries == TRIES => panic!("{error:#}"),
                Err(error) => eprintln!("rabbitmqctl, trying again: {error:#}"),
            }
            tries += 1;
            std::thread::sleep(PAUSE);
        }
    })
}

/// Sends a message that is not an event, as anyone with the broker's password can.
fn nonsense(fleet: &Fleet, queue: &str, bytes: u64) {
    let publish = format!(
        "rabbit_basic:publish(rabbit_misc:r(<<\"/\">>, exchange, <<>>), <<\"{queue}\">>, [], \
         binary:copy(<<255>>, {bytes}))."
    );
    control(fleet, &["eval", &publish]);
}
