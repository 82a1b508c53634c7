//! Replicas that die and replicas that freeze.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::fleet::Fleet;
use crate::chance::Chance;

/// Longer than a lease outlives its replica's last heartbeat: one that wakes up then has lost what it holds.
const LONGEST_FREEZE_MS: u64 = 7_000;
const LONGEST_ABSENCE_MS: u64 = 1_500;
const LONGEST_PAUSE_MS: u64 = 800;

/// Answers how many faults there were.
pub(super) async fn disturb(fleet: &Fleet, mut chance: Chance, until: Instant) -> u32 {
    let mut faults = 0;
    while Instant::now() < until {
        sleep(Duration::from_millis(chance.below(LONGEST_PAUSE_MS))).await;
        let count = fleet.replicas().len() as u64;
        let at = usize::try_from(chance.below(count)).unwrap();
        let replica = &fleet.replicas()[at];
        faults += 1;
        // Half of all deaths are a dispatcher's or a scanner's by number alone; freezes are rarer, for they last.
        if chance.below(3) == 0 {
            let length = Duration::from_millis(500 + chance.below(LONGEST_FREEZE_MS));
            println!("{} {at} freezes for {length:?}", replica.program);
            replica.freeze();
            sleep(length).await;
            replica.resume();
        } else {
            let length = Duration::from_millis(chance.below(LONGEST_ABSENCE_MS));
            println!("{} {at} is killed for {length:?}", replica.program);
            replica.kill();
            sleep(length).await;
            fleet.start_replica(replica);
        }
    }
    faults
}
