//! Alerts about delivery fire by their causes.

use std::time::Duration;

use prometheus::register_gauge_vec;
use runtime::{
    Health,
    config::{Smtp, SmtpEncryption},
};
use test_support::{Alert, Answer, TIMEOUT, eventually};

use crate::support::{World, always};

/// No dispatcher runs for longer than a first attempt may take.
#[tokio::test]
async fn alerts_fire_when_first_attempts_are_late() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let watch = async |name| Alert::of_service(name, "webhook-dispatcher", &Health::new()).await;
    let fast = watch("EarshotDeliveryBudgetFast").await;
    let slow = watch("EarshotDeliveryBudgetSlow").await;
    world.scan(manager, "late kettle").await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let replica = world.ready_dispatcher().await;
    world.until("SUCCEEDED", 1).await;
    fast.repeats().fires().await;
    slow.repeats().fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_receivers_cannot_be_reached() {
    let world = World::new().await;
    let mut conn = world.database.connect().await;
    // Nothing listens there.
    let connection = world.fixture.connection(&mut conn, "http://127.0.0.1:1/");
    let manager = world.manager(&[connection.await]).await;
    let replica = world.ready_dispatcher().await;
    let alert = Alert::watch("EarshotDeliveryFailureRatio", &replica).await;
    world.scans_and_tell(manager, 4).await;
    alert.repeats().fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_the_mail_server_cannot_be_reached() {
    let mut world = World::new().await;
    world.config.dispatcher.smtp = Some(Smtp {
        server: "127.0.0.1".to_owned(),
        // Nothing listens there.
        port: 1,
        encryption: SmtpEncryption::Plain,
        ca_certificates_file: String::new(),
        user: None,
        password: None,
        from: "Earshot <alerts@example.org>".to_owned(),
        hello_name: None,
        public_url: "https://earshot.example/".parse().unwrap(),
        max_per_minute: 1_000,
        timeout: TIMEOUT,
    });
    let mut conn = world.database.connect().await;
    let connection = world
        .fixture
        .connection(&mut conn, "mailto:ada@example.com");
    let manager = world.manager(&[connection.await]).await;
    for statement in [
        "UPDATE connections SET format = 'EMAIL'",
        "UPDATE mail_recipients SET state = 'CONFIRMED'",
    ] {
        world.database.run(statement).await;
    }
    let replica = world.ready_dispatcher().await;
    let alert = Alert::watch("EarshotMailFailing", &replica).await;
    world.publish_scan(manager, "kettle").await;
    alert.repeats().fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_many_breakers_open() {
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_millis(200); 50];
    let failing = always(Answer::Status(503)).await;
    let managers = [
        world.manager_for(&failing).await,
        world.manager_for(&failing).await,
    ];
    let replica = world.ready_dispatcher().await;
    let alert = Alert::watch("EarshotBreakersOpenSpike", &replica).await;
    for manager in managers {
        world.scans_and_tell(manager, 6).await;
    }
    alert.repeats().fires().await;
    replica.stop().await;
}

/// Scanners export the metric, so that it is there without a dispatcher. Here the test does, from the same query.
#[tokio::test]
async fn alert_fires_when_the_database_refuses_every_fan_out() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let waiting = register_gauge_vec!(
        "earshot_waiting_oldest_seconds",
        "As in scanners",
        &["kind"]
    )
    .unwrap();
    let export = async || {
        let mut conn = world.database.connect().await;
        for oldest in store::waiting::oldest(&mut conn).await.unwrap() {
            let age = waiting.with_label_values(&[&oldest.kind]);
            age.set(oldest.seconds);
        }
    };
    export().await;
    let alert = Alert::of_service("EarshotFanOutStuck", "scanner", &Health::new()).await;
    for statement in [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'nothing at all'; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION refuse()",
    ] {
        world.database.run(statement).await;
    }
    let replica = world.ready_dispatcher().await;
    world.scans(manager, 3).await;
    eventually("each is refused", async || {
        let families = prometheus::gather();
        let text = prometheus::TextEncoder::new().encode_to_string(&families);
        text.unwrap().contains("\nearshot_scans_refused 3\n")
    })
    .await;
    let aged = "UPDATE scans SET create_time = create_time - interval '1 hour'";
    world.database.run(aged).await;
    export().await;
    alert.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_no_delivery_can_be_claimed() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    let alert = Alert::watch("EarshotDeliveryBacklog", &replica).await;
    // Deliveries of a disabled Connection wait.
    world
        .database
        .run("UPDATE connections SET state = 'DISABLED'")
        .await;
    world.publish_scan(manager, "kettle").await;
    world.until("PENDING", 1).await;
    for statement in [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'nothing at all'; END $$",
        "CREATE TRIGGER refuse BEFORE UPDATE ON deliveries FOR EACH ROW \
         WHEN (NEW.state = 'IN_FLIGHT') EXECUTE FUNCTION refuse()",
    ] {
        world.database.run(statement).await;
    }
    let enabled = "UPDATE connections SET state = 'ACTIVE'";
    world.database.run(enabled).await;
    // As if it had waited for an hour.
    let aged = "UPDATE connection_lanes SET next_due_time = now() - interval '1 hour' \
                WHERE next_due_time IS NOT NULL";
    eventually("it is due", async || world.database.run(aged).await == 1).await;
    alert.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_for_a_delivery_that_dispatchers_die_with() {
    let world = World::new().await;
    let receiver = always(Answer::Hang).await;
    let manager = world.manager_for(&receiver).await;
    let mut replica = world.ready_dispatcher().await;
    let alert = Alert::watch("EarshotWorkSetAside", &replica).await;
    world.publish_scan(manager, "kettle").await;
    for deaths in 1..=3 {
        eventually("the request is open", async || receiver.count() == deaths).await;
        replica.kill();
        replica = world.ready_dispatcher().await;
    }
    alert.fires().await;
    replica.kill();
}
