//! Replicas that die, replicas that freeze, and replicas with jumping clocks.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{clock, fleet::Fleet};
use crate::chance::Chance;

/// Longer than a lease remains valid after its replica's last heartbeat: a replica that wakes up has lost its leases.
const LONGEST_FREEZE_MS: u64 = 7_000;
const LONGEST_ABSENCE_MS: u64 = 1_500;
/// Longer than any lease.
const LARGEST_JUMP_MS: u64 = 30_000;
const LONGEST_SKEW_MS: u64 = 5_000;
const LONGEST_PAUSE_MS: u64 = 800;

/// Returns the number of faults.
pub(super) async fn disturb(fleet: &Fleet, mut chance: Chance, until: Instant) -> u32 {
    let mut faults = 0;
    while Instant::now() < until {
        sleep(Duration::from_millis(chance.below(LONGEST_PAUSE_MS))).await;
        let count = fleet.replicas().len() as u64;
        let at = usize::try_from(chance.below(count)).unwrap();
        let replica = &fleet.replicas()[at];
        faults += 1;
        // The number of replicas makes half of all deaths a dispatcher's or a scanner's; long faults are rarer.
        match chance.below(6) {
            0 | 1 => {
                let length = Duration::from_millis(500 + chance.below(LONGEST_FREEZE_MS));
                println!("{} {at} freezes for {length:?}", replica.program);
                replica.freeze();
                sleep(length).await;
                replica.resume();
            }
            2 if clock::library().is_some() => {
                let ahead = chance.below(2) == 0;
                let by = Duration::from_millis(chance.below(LARGEST_JUMP_MS));
                let length = Duration::from_millis(chance.below(LONGEST_SKEW_MS));
                let way = if ahead { "ahead" } else { "back" };
                println!(
                    "the clock of {} {at} jumps {way} by {by:?}, and returns after {length:?}",
                    replica.program
                );
                replica.clock.set(by, ahead);
                sleep(length).await;
                replica.clock.set(Duration::ZERO, true);
            }
            _ => {
                let length = Duration::from_millis(chance.below(LONGEST_ABSENCE_MS));
                println!("{} {at} is killed for {length:?}", replica.program);
                replica.kill();
                sleep(length).await;
                fleet.start_replica(replica);
            }
        }
    }
    faults
}
