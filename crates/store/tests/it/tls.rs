//! Encrypted connections to a real PostgreSQL, whose certificate comes from an unknown authority.

use std::{fs, path::Path};

use diesel::{QueryableByName, sql_query, sql_types::Bool};
use diesel_async::RunQueryDsl;
use private_servers::{Postgres, Tls, postgres::Options};
use test_support::{certificates::Authority, eventually};

use crate::support::LOST_SERVER;

#[derive(QueryableByName)]
struct Encrypted {
    #[diesel(sql_type = Bool)]
    ssl: bool,
}

async fn is_encrypted(url: &str) -> Result<bool, String> {
    let mut conn = store::establish(url)
        .await
        .map_err(|error| error.to_string())?;
    let found: Encrypted = sql_query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        .get_result(&mut conn)
        .await
        .unwrap();
    Ok(found.ssl)
}

async fn server(home: &Path, tls: Option<Tls>) -> Postgres {
    let (home, options) = (
        home.to_owned(),
        Options {
            tls,
            ..Options::throwaway()
        },
    );
    tokio::task::spawn_blocking(move || Postgres::start(&home, &options).unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn the_configured_authority_verifies_the_server() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.certify("localhost");
    let home = tempfile::tempdir().unwrap();
    let server = server(
        &home.path().join("postgres"),
        Some(Tls { certificate, key }),
    )
    .await;
    let trusted = home.path().join("ca.pem");
    fs::write(&trusted, authority.pem()).unwrap();
    let at =
        |host: &str, query: &str| format!("{}?{query}", server.url().replace("127.0.0.1", host));
    let file = trusted.display();

    for (query, encrypted) in [
        (format!("sslmode=verify-full&sslrootcert={file}"), true),
        (format!("sslmode=require&sslrootcert={file}"), true),
        (format!("sslrootcert={file}"), true),
        ("sslmode=disable".to_owned(), false),
    ] {
        let found = is_encrypted(&at("localhost", &query)).await;
        assert_eq!(found, Ok(encrypted), "{query}");
    }
    // With a name that the certificate does not contain, with the public authorities, and without a file.
    for (host, query) in [
        (
            "127.0.0.1",
            format!("sslmode=verify-full&sslrootcert={file}"),
        ),
        ("localhost", "sslmode=verify-full".to_owned()),
    ] {
        let reason = is_encrypted(&at(host, &query)).await.unwrap_err();
        assert!(reason.contains("invalid peer certificate"), "{reason}");
    }
    let reason = is_encrypted(&at("localhost", "sslrootcert=/nowhere/ca")).await;
    assert!(reason.unwrap_err().contains("/nowhere/ca"));

    // A new file applies without a restart.
    let url = at("localhost", &format!("sslrootcert={file}"));
    fs::write(&trusted, stranger.pem()).unwrap();
    let reason = is_encrypted(&url).await.unwrap_err();
    assert!(reason.contains("invalid peer certificate"), "{reason}");
    let both = format!("{}{}", stranger.pem(), authority.pem());
    fs::write(&trusted, both).unwrap();
    assert_eq!(is_encrypted(&url).await, Ok(true));
    fs::write(&trusted, "").unwrap();
    let reason = is_encrypted(&url).await.unwrap_err();
    assert!(reason.contains("no certificate"), "{reason}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_if_tls_is_required() {
    let home = tempfile::tempdir().unwrap();
    let server = server(&home.path().join("postgres"), None).await;
    let url = server.url();
    assert_eq!(is_encrypted(&url).await, Ok(false));
    let reason = is_encrypted(&format!("{url}?sslmode=verify-full")).await;
    let reason = reason.unwrap_err();
    assert!(reason.contains("server does not support TLS"), "{reason}");
}

#[tokio::test]
async fn an_expired_certificate_is_named_and_its_successor_works_without_a_restart() {
    let _alone = LOST_SERVER.lock().await;
    let authority = Authority::new();
    let tls = |(certificate, key)| Tls { certificate, key };
    let home = tempfile::tempdir().unwrap();
    let valid = tls(authority.certify("localhost"));
    let server = server(&home.path().join("postgres"), Some(valid)).await;
    let trusted = home.path().join("ca.pem");
    fs::write(&trusted, authority.pem()).unwrap();
    let url = server.url().replace("127.0.0.1", "localhost");
    let url = format!("{url}?sslrootcert={}", trusted.display());
    let pool = store::connect(&url, 2).unwrap();
    let open = pool.get().await.unwrap();

    let expired = tls(authority.certify_expired("localhost"));
    server.renew(&expired).unwrap();
    // The server reads the files a moment later.
    let mut reason = String::new();
    eventually("the certificate is refused", async || {
        reason = is_encrypted(&url).await.err().unwrap_or_default();
        !reason.is_empty()
    })
    .await;
    assert!(
        reason.contains("localhost:") && reason.contains("certificate expired"),
        "{reason}"
    );
    // An open connection stays in use, and no other is opened.
    drop(open);
    let open = pool.get().await.unwrap();
    assert!(pool.get().await.is_err());

    server.renew(&tls(authority.certify("localhost"))).unwrap();
    eventually("the new certificate is accepted", async || {
        pool.get().await.is_ok()
    })
    .await;
    drop(open);
}
