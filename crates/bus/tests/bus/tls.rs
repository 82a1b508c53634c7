//! `amqps:` to a real broker with a certificate of an unknown authority.

use std::{fs, path::Path};

use bus::{Bus, RabbitMq, RabbitMqOptions};
use private_servers::Tls;
use test_support::{TIMEOUT, certificates::Authority};

use crate::support::{QUEUE, outgoing, submitted, topology};

fn bus(url: &str, trusted: Option<&Path>) -> RabbitMq {
    let options = RabbitMqOptions {
        topology: topology(),
        connection_name: "bus-tls-test".into(),
        ca_certificates_file: trusted.map(Path::to_owned),
    };
    RabbitMq::new(url, options).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configured_authority_verifies_the_broker() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.certify("localhost");
    let home = tempfile::tempdir().unwrap();
    let tls = Tls { certificate, key };
    let path = home.path().to_owned();
    let broker = tokio::task::spawn_blocking(move || {
        private_servers::RabbitMq::start_with(&path, Some(tls)).unwrap()
    })
    .await
    .unwrap();
    let url = broker.amqps_url();
    let trusted = home.path().join("ca.pem");

    // With the public authorities, with another one, and with a file that does not exist.
    assert_refused(&bus(&url, None), "certificate").await;
    fs::write(&trusted, stranger.pem()).unwrap();
    assert_refused(&bus(&url, Some(&trusted)), "certificate").await;
    assert_refused(
        &bus(&url, Some(Path::new("/nowhere/ca.pem"))),
        "/nowhere/ca.pem",
    )
    .await;
    fs::write(&trusted, authority.pem()).unwrap();
    // With a name that the certificate does not contain.
    let other_name = url.replace("localhost", "127.0.0.1");
    assert_refused(&bus(&other_name, Some(&trusted)), "certificate").await;

    let trusting = bus(&url, Some(&trusted));
    let mut work = trusting.work(QUEUE, &["manager.submitted"]);
    assert!(matches!(work.next().await, bus::Received::Connected));
    trusting.publish(&outgoing(submitted(7))).await.unwrap();
    let received = tokio::time::timeout(TIMEOUT, work.next()).await.unwrap();
    assert!(matches!(received, bus::Received::Delivery(_)));

    // A certificate that expires, and is renewed without a restart of either side.
    let client = bus(&url, Some(&trusted));
    renew(&broker, authority.certify_expired("localhost"));
    assert_refused(&client, "certificate expired").await;
    trusting.publish(&outgoing(submitted(8))).await.unwrap();
    renew(&broker, authority.certify("localhost"));
    client.check().await.unwrap();
}

fn renew(broker: &private_servers::RabbitMq, (certificate, key): (String, String)) {
    let tls = Tls { certificate, key };
    tokio::task::block_in_place(|| broker.renew(&tls)).unwrap();
}

async fn assert_refused(bus: &RabbitMq, reason: &str) {
    let error = bus.check().await.unwrap_err();
    let text = format!("{:#}", anyhow::Error::from(error));
    assert!(text.contains(reason), "{text}");
}
