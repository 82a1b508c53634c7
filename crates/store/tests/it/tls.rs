//! Encrypted connections to a real PostgreSQL with a certificate of an authority that no one knows.

use std::{fs, path::Path};

use diesel::{QueryableByName, sql_query, sql_types::Bool};
use diesel_async::RunQueryDsl;
use private_servers::{Postgres, Tls, postgres::Options};
use test_support::certificates::Authority;

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
async fn a_server_is_trusted_by_the_authority_that_is_given() {
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
    // Under a name that the certificate does not hold, by the public authorities, and by no file.
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

    // A new file counts without a restart.
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
async fn a_server_without_tls_is_not_spoken_to_where_it_is_wanted() {
    let home = tempfile::tempdir().unwrap();
    let server = server(&home.path().join("postgres"), None).await;
    let url = server.url();
    assert_eq!(is_encrypted(&url).await, Ok(false));
    let reason = is_encrypted(&format!("{url}?sslmode=verify-full")).await;
    let reason = reason.unwrap_err();
    assert!(reason.contains("server does not support TLS"), "{reason}");
}
