//! One server after the other is away for long, while more posts pile up than one page holds.
//!
//! `EARSHOT_FAULTS_ABSENCE_SECONDS` sets for how long. From 110 seconds on, each platform times out at least five times.
//! If it is set, absences of up to this length are also among the faults of the seeds.

use std::time::{Duration, Instant};

use private_servers::postgres::Options;
use tokio::time::sleep;

use super::{
    books,
    fleet::{Fleet, Remote, Servers},
    load::{Load, World},
};
use crate::{
    chance::Chance,
    harness::{
        config::REDDIT,
        proxy::{Flow, Proxy},
    },
};

/// Longer than a lease remains valid after its replica's last heartbeat.
const SECONDS: u64 = 6;
/// Posts per tenth of a second of short absences: more than one page of Lemmy's 50 posts in each.
const POSTS: u64 = 4;
/// Posts per tenth of a second of absences of minutes.
const POSTS_OF_MINUTES: u64 = 2;
/// Number of posts that a listing of Reddit shows.
const REDDIT_REACH: usize = 1_000;
/// Number of posts on Reddit during all absences: each absence of minutes brings more than one page of 100.
const PACED_REDDIT_POSTS: u32 = 900;

/// Returns how long each absence lasts.
pub(super) fn length() -> Duration {
    let seconds = super::number("EARSHOT_FAULTS_ABSENCE_SECONDS");
    Duration::from_secs(seconds.unwrap_or(SECONDS))
}

/// Shortest pause between two posts on Reddit. All absences together must not bring more posts than a listing shows,
/// because nothing may be read in between: even a service without fault would miss the older ones.
pub(super) fn reddit_pause() -> Duration {
    let absences = u32::try_from(ABSENCES.len()).unwrap();
    length() * absences / PACED_REDDIT_POSTS
}

#[derive(Debug, Clone, Copy)]
enum Absence {
    /// Every platform refuses connections.
    PlatformsRefuse,
    /// No platform answers.
    PlatformsAreSilent,
    /// The names of the platforms do not resolve.
    PlatformsHaveNoNames,
    BrokerRefuses,
    DatabaseRefuses,
    DatabaseIsSilent,
    ReceiversRefuse,
}

const ABSENCES: [Absence; 7] = [
    Absence::PlatformsRefuse,
    Absence::PlatformsAreSilent,
    Absence::PlatformsHaveNoNames,
    Absence::BrokerRefuses,
    Absence::DatabaseRefuses,
    Absence::DatabaseIsSilent,
    Absence::ReceiversRefuse,
];

pub(super) fn servers() -> Servers {
    Servers {
        has_names: true,
        has_few_replicas: true,
        ..Options::throwaway().into()
    }
}

pub(super) async fn run(fleet: &Fleet) {
    let world = World::new(fleet).await;
    let mut load = Load::new(fleet, &world);
    let length = length();
    let posts = if length > Duration::from_secs(60) {
        POSTS_OF_MINUTES
    } else {
        POSTS
    };
    for absence in ABSENCES {
        println!("{absence:?} for {length:?}");
        absence.set(fleet, &world, true).await;
        let until = Instant::now() + length;
        load.keep_publishing(posts, || Instant::now() < until).await;
        absence.set(fleet, &world, false).await;
        // The next one begins before everything has caught up.
        sleep(length / 4).await;
    }
    let posts = load.done().posts.values();
    let on_reddit = posts.filter(|post| post.platform == REDDIT).count();
    assert!(
        on_reddit <= REDDIT_REACH,
        "no service can read all {on_reddit} posts of Reddit afterwards"
    );
    let mended = Instant::now();
    books::check(fleet, &world, load.done(), mended).await;
    fleet.terminate();
}

/// Makes one server after the other absent. Returns the number of absences.
pub(super) async fn disturb(
    fleet: &Fleet,
    world: &World,
    mut chance: Chance,
    until: Instant,
) -> u32 {
    let mut faults = 0;
    if super::number("EARSHOT_FAULTS_ABSENCE_SECONDS").is_none() {
        return faults;
    }
    let longest_ms = u64::try_from(length().as_millis()).unwrap();
    // Silence is left to the other faults, which would end it early.
    let absences = [
        Absence::PlatformsRefuse,
        Absence::BrokerRefuses,
        Absence::DatabaseRefuses,
        Absence::ReceiversRefuse,
    ];
    loop {
        sleep(Duration::from_millis(chance.below(longest_ms / 2))).await;
        let absence = *chance.pick(&absences).unwrap();
        let length = Duration::from_millis(longest_ms / 2 + chance.below(longest_ms / 2));
        if Instant::now() + length > until {
            return faults;
        }
        faults += 1;
        println!("{absence:?} for {length:?}");
        absence.set(fleet, world, true).await;
        sleep(length).await;
        absence.set(fleet, world, false).await;
    }
}

impl Absence {
    async fn set(self, fleet: &Fleet, world: &World, away: bool) {
        let ways = match self {
            Self::PlatformsHaveNoNames => {
                match &fleet.names {
                    Some(names) => names.set(!away),
                    None => println!("SKIPPED: names of the platforms need mounts, and so root"),
                }
                // Connections that are open need no name.
                if away {
                    cut_once(&fleet.ways(Remote::Platforms)).await;
                }
                return;
            }
            Self::PlatformsRefuse | Self::PlatformsAreSilent => fleet.ways(Remote::Platforms),
            Self::BrokerRefuses => fleet.ways(Remote::Broker),
            Self::DatabaseRefuses | Self::DatabaseIsSilent => fleet.ways(Remote::Database),
            Self::ReceiversRefuse => world.ways.iter().collect(),
        };
        let is_silent = matches!(self, Self::PlatformsAreSilent | Self::DatabaseIsSilent);
        for way in ways {
            match (is_silent, away) {
                (true, true) => way.set(Flow::Held),
                (true, false) => way.set(Flow::Free),
                (false, true) => way.cut(),
                (false, false) => way.mend().await,
            }
        }
    }
}

async fn cut_once(ways: &[&Proxy]) {
    for way in ways {
        way.cut();
        way.mend().await;
    }
}
