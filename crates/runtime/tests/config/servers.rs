//! Addresses of the database and the broker, and TLS for them.

use runtime::config::Loader;
use secrecy::ExposeSecret;

use super::{load, refused};

#[test]
fn addresses_of_database_and_broker_are_checked_for_their_form() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "DATABASE",
            "names no host",
            &[
                "postgres://",
                "postgres:///hush",
                "postgres://u:hush@/x",
                "postgres://u:hush@:5432/x",
                "postgres://u:hush@[::1",
            ],
        ),
        (
            "DATABASE",
            "has a port that is not a number between 1 and 65535",
            &[
                "postgres://u:hush@h:99999999/x",
                "postgres://u:hush@h:0",
                "postgres://u:hush@a,b:x/x",
                "postgres://u:hush@[::1]hush/x",
            ],
        ),
        ("BUS", "names no host", &["amqp://", "amqp:///hush"]),
        (
            "BUS",
            "has a port that is not a number between 1 and 65535",
            &["amqp://u:hush@h:99999999", "amqps://u:hush@h:0/x"],
        ),
        (
            "BUS",
            "not a URL: invalid domain character",
            &["amqp://u:hush@h h"],
        ),
    ];
    for (section, reason, urls) in cases {
        let (name, key) = (
            format!("EARSHOT_{section}__URL"),
            format!("{}.url", section.to_lowercase()),
        );
        for url in *urls {
            let said = refused("", &[(&name, url)]);
            let expected = format!("{key}: {reason} (environment variable {name})");
            assert_eq!(said, expected, "{url}");
        }
    }
    for (name, url) in [
        (
            "EARSHOT_DATABASE__URL",
            "postgresql://u:p%40@a:1,[::1]:2,c/d?sslmode=disable",
        ),
        (
            "EARSHOT_DATABASE__URL",
            "postgres://u@%2Frun%2Fpostgresql/d",
        ),
        (
            "EARSHOT_DATABASE__URL",
            "postgres:///d?user=u&host=/run/postgresql",
        ),
        (
            "EARSHOT_BUS__URL",
            "amqps://u:p@[::1]:5671/%2f?heartbeat=10",
        ),
    ] {
        load("", &[(name, url)]).unwrap();
    }
}

#[test]
fn ambiguous_encryption_of_the_database_is_refused() {
    let with = |query: &str, more: &str| {
        format!("[database]\nurl = 'postgres://u:a?b@h/d{query}'\n{more}")
    };
    let file = "ca_certificates_file = '/a b/ca&1.pem'";
    for (query, more, url) in [
        ("", "", "postgres://u:a?b@h/d"),
        (
            "?sslmode=disable",
            "",
            "postgres://u:a?b@h/d?sslmode=disable",
        ),
        ("", file, "postgres://u:a?b@h/d?sslrootcert=/a b/ca%261.pem"),
        (
            "?sslmode=verify-full",
            file,
            "postgres://u:a?b@h/d?sslmode=verify-full&sslrootcert=/a b/ca%261.pem",
        ),
    ] {
        let config = load(&with(query, more), &[]).unwrap();
        assert_eq!(config.database.url.expose_secret(), url);
    }
    for (query, more) in [
        ("?sslmode=prefer", ""),
        ("?a=b&sslmode=allow", ""),
        ("?sslmode=disable", file),
        ("?sslmode=disable&sslmode=verify-full", ""),
        ("?sslrootcert=/ca", file),
    ] {
        let said = refused(&with(query, more), &[]);
        assert!(said.starts_with("database.url: has "), "{said}");
    }
    let plain = "[bus]\nurl = 'amqp://h'\nca_certificates_file = '/ca'";
    let said = refused(plain, &[]);
    assert!(
        said.starts_with("bus.ca_certificates_file: is for"),
        "{said}"
    );
    load(&plain.replace("amqp:", "amqps:"), &[]).unwrap();
}

#[test]
fn plain_database_url_is_used_where_requested() {
    let variables = vec![("DATABASE_URL".to_owned(), "postgres://plain".to_owned())];
    for (plain_database_url, expected) in [(true, "postgres://plain"), (false, "")] {
        let sources = Loader {
            environment: variables.clone(),
            plain_database_url,
            ..Loader::default()
        };
        let config = sources.load().unwrap();
        assert_eq!(config.database.url.expose_secret(), expected);
    }
}
