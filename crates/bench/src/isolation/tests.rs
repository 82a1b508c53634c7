//! The short form: each attack for a moment. It asserts counts and bounds, and no latencies.

use std::time::{Duration, Instant};

use private_servers::postgres::Options as Server;

use super::{
    hostile::{Dimension, Hostile, Size},
    name,
    product::Product,
    site::Site,
    victim::Victim,
};

const SPAN: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);
const SMALL: Size = Size {
    scans: 5_000,
    replayed: 2_000,
    backfills: 2,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_account_is_limited_and_blocks_no_other() {
    let home = std::env::temp_dir().join(format!("earshot-isolation-{}", std::process::id()));
    let product = Product::start(&home, &Server::throwaway()).await.unwrap();
    let site = Site::start().await.unwrap();
    let url = product.database_url();
    let victim = Victim::new(product.api(), site.clone(), &url)
        .await
        .unwrap();
    for dimension in Dimension::EACH {
        let attack = name(dimension);
        let api = product.api();
        let mut hostile = Hostile::new(api, site.clone(), &url, &attack, SMALL)
            .await
            .unwrap();
        hostile.begin(dimension).await.unwrap();
        let observed = victim.observe(SPAN).await.unwrap();
        for (operation, latencies) in observed.operations() {
            let counts = (latencies.failed, latencies.count() > 0);
            assert_eq!(counts, (0, true), "{attack}: {operation}");
        }
        meets_its_bound(dimension, &hostile, &site).await;
        assert_eq!(hostile.tally().failed(), 0, "{attack}");
        hostile.end().await.unwrap();
    }
    drop(victim);
    product.stop().unwrap();
}

/// Waits until the attack has met its bound, and checks that it did not pass it.
async fn meets_its_bound(dimension: Dimension, hostile: &Hostile, site: &Site) {
    let tally = hostile.tally();
    let is_refused = || tally.accepted() > 0 && tally.refused() > 0;
    let open = |kind: &str, bound: usize| {
        let most = site.most_open(kind);
        assert!(most <= bound, "{kind}: {most} open, of {bound}");
        most
    };
    let begin = Instant::now();
    while !match dimension {
        // By costly reads at a time, replays of a Connection at a time, and points of a key.
        Dimension::Filters | Dimension::Replays | Dimension::Previews => is_refused(),
        Dimension::Backfills => tally.accepted() > 0,
        // Half of the polls of a platform. Half of the quick ones begin together.
        Dimension::SlowFeeds => open("slow", 64) >= 6,
        // Half of the compilations of AUTOMATIC Managers.
        Dimension::SlowPages => open("silent", 4) == 4,
        // The requests of one Connection.
        Dimension::Endpoints => open("/hang/delivery", 8) > 0,
        Dimension::All => true,
        // The test deliveries of one account.
        Dimension::Tests => open("/hang/test", 4) > 0 && tally.refused() > 0,
    } {
        assert!(begin.elapsed() < PATIENCE, "{}: {tally:?}", name(dimension));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
