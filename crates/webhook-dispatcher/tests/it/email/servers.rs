//! Mail servers that hang, are away or are not to be trusted, and what the operator sees of it.

use std::{fs, time::Duration};

use runtime::config::SmtpEncryption;
use test_support::certificates::Authority;

use super::{MailServer, confirmed, world};
use crate::{erased::retry_now, support::World};

/// Number of mails that failed for this reason, which the operator has to solve.
fn failures(reason: &str) -> f64 {
    let text = prometheus::TextEncoder::new().encode_to_string(&prometheus::gather());
    let text = text.unwrap();
    let counted = format!("earshot_mail_failures_total{{reason=\"{reason}\"}} ");
    let number = text.lines().find_map(|line| line.strip_prefix(&counted));
    number.map_or(0.0, |number| number.parse().unwrap())
}

#[tokio::test]
async fn mail_server_that_hangs_is_counted() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let mut world = world(&server).await;
    let smtp = world.config.dispatcher.smtp.as_mut().unwrap();
    smtp.timeout = Duration::from_millis(100);
    let connection = confirmed(&world, &["hang@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    let before = failures("timeout");
    world.publish_scan(manager, "Which kettle?").await;
    world.until("EXHAUSTED", 1).await;
    replica.stop().await;
    assert_eq!(world.attempts().await[0], "1 - timeout");
    assert!(failures("timeout") >= before + 4.0);
}

#[tokio::test]
async fn mail_waits_until_the_login_is_right_and_comes_over_starttls() {
    let folder = tempfile::tempdir().unwrap();
    let [trusted, identity] = ["ca.pem", "server.pem"].map(|name| folder.path().join(name));
    let authority = Authority::new();
    let (certificate, key) = authority.certify("127.0.0.1");
    fs::write(&trusted, authority.pem()).unwrap();
    fs::write(&identity, certificate + &key).unwrap();
    let Some(server) = MailServer::start_with(Some(&identity)) else {
        return;
    };
    let mut world = world(&server).await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(3_600)];
    let connection = confirmed(&world, &["ada@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let refused = "smtp_login_refused";
    for (password, state) in [("sesame", "RETRYING"), ("open sesame", "SUCCEEDED")] {
        let smtp = world.config.dispatcher.smtp.as_mut().unwrap();
        smtp.encryption = SmtpEncryption::StartTls;
        smtp.ca_certificates_file = trusted.display().to_string();
        smtp.user = Some("earshot".to_owned());
        smtp.password = Some(password.into());
        let before = failures(refused);
        let replica = world.ready_dispatcher().await;
        if state == "RETRYING" {
            world.publish_scan(manager, "Which kettle?").await;
        } else {
            retry_now(&world).await;
        }
        world.until(state, 1).await;
        replica.stop().await;
        let is_counted = failures(refused) > before;
        assert_eq!(is_counted, state == "RETRYING", "{password}");
    }
    server.until(1).await;
    let attempts = world.attempts().await;
    assert_eq!(attempts, ["1 - smtp_login_refused", "2 250 -"]);
}

#[tokio::test]
async fn server_with_an_unknown_certificate_gets_no_mail() {
    let folder = tempfile::tempdir().unwrap();
    let identity = folder.path().join("server.pem");
    let (certificate, key) = Authority::new().certify("127.0.0.1");
    fs::write(&identity, certificate + &key).unwrap();
    let Some(server) = MailServer::start_with(Some(&identity)) else {
        return;
    };
    let mut world = world(&server).await;
    let smtp = world.config.dispatcher.smtp.as_mut().unwrap();
    smtp.user = Some("earshot".to_owned());
    smtp.password = Some("open sesame".into());
    gets_no_mail_over_starttls(&mut world, &server).await;
}

#[tokio::test]
async fn server_without_starttls_gets_no_mail() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let mut world = world(&server).await;
    gets_no_mail_over_starttls(&mut world, &server).await;
}

async fn gets_no_mail_over_starttls(world: &mut World, server: &MailServer) {
    let smtp = world.config.dispatcher.smtp.as_mut().unwrap();
    smtp.encryption = SmtpEncryption::StartTls;
    let connection = confirmed(world, &["ada@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("EXHAUSTED", 1).await;
    replica.stop().await;
    assert_eq!(world.attempts().await[0], "1 - tls_failure");
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn without_a_mail_server_deliveries_fail() {
    let world = World::new().await;
    let connection = confirmed(&world, &["ada@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("EXHAUSTED", 1).await;
    replica.stop().await;
    assert_eq!(world.attempts().await.len(), 4);
    assert_eq!(world.attempts().await[0], "1 - smtp_not_configured");
}

#[tokio::test]
async fn connection_stays_enabled_while_the_mail_server_is_away_for_days() {
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(3_600)];
    let connection = confirmed(&world, &["ada@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("RETRYING", 1).await;
    for sql in [
        "UPDATE connection_lanes SET failing_since = now() - interval '121 hours'",
        "INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, state) \
         SELECT namespace_id, connection_id, gen_random_uuid(), create_time, now(), manager_id, scan_id, 'EXHAUSTED' \
         FROM deliveries, generate_series(1, 20)",
    ] {
        assert!(world.database.run(sql).await > 0);
    }
    world.publish_scan(manager, "Which teapot?").await;
    world.until("RETRYING", 2).await;
    replica.stop().await;
    let active = "connections WHERE state = 'ACTIVE'";
    assert_eq!(world.database.count(active).await, 1);
}
