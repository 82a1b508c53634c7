//! Errors of a server that speaks another language.

use std::time::Duration;

use diesel::sql_query;
use diesel_async::RunQueryDsl;
use domain::Timestamp;
use store::retention::{self, Dropped, Table};
use test_support::{LATER_VERSION, TestDatabase, run_later_migration};

use crate::{rows, support::run};

#[tokio::test]
async fn errors_are_known_by_their_code_in_any_language() {
    let database = TestDatabase::create().await;
    let mut conn = store::establish(database.url()).await.unwrap();
    for (code, message, passes, is_cut_off, blames_values) in [
        (
            "40P01",
            "Verklemmung (Deadlock) entdeckt",
            true,
            false,
            false,
        ),
        ("57P01", "Verbindung wird abgebrochen", true, false, false),
        (
            "53300",
            "すみません、クライアント数が多すぎます",
            true,
            false,
            false,
        ),
        (
            "53100",
            "Auf dem Gerät ist kein Speicherplatz mehr",
            true,
            false,
            false,
        ),
        (
            "57014",
            "storniere Anfrage wegen Zeitüberschreitung",
            false,
            true,
            false,
        ),
        (
            "55P03",
            "storniere Anfrage wegen Sperre",
            false,
            true,
            false,
        ),
        (
            "42501",
            "keine Berechtigung für Tabelle",
            false,
            false,
            false,
        ),
        ("53200", "Speicher aufgebraucht", false, false, false),
        ("22021", "ungültige Byte-Sequenz", false, false, true),
        ("54000", "zu lang", false, false, true),
    ] {
        let raise =
            format!("DO $$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = '{code}'; END $$");
        let error = sql_query(raise).execute(&mut conn).await.unwrap_err();
        assert_eq!(store::is_passing(&error), passes, "{code}");
        assert_eq!(store::is_cut_off(&error), is_cut_off, "{code}");
        let error = store::Error::from(error);
        assert_eq!(error.may_be_refusal(), !passes, "{code}");
        assert_eq!(error.may_blame_values(), blames_values, "{code}");
    }
    run(&mut conn, "SELECT 1").await;
}

/// The first statement that changes or drops a table gets no lock in time.
#[tokio::test]
async fn migrations_and_retention_wait_for_locks_in_any_language() {
    let database = TestDatabase::create().await;
    let conn = &mut store::establish(database.url()).await.unwrap();
    rows::partition(conn, "scans", "now() - interval '60 days'").await;
    let (kept, now) = (Duration::from_secs(30 * 86_400), Timestamp::now());
    let old = retention::older_than(conn, Table::Scans, kept, now).await;
    let old = old.unwrap();
    for sql in [
        "CREATE SEQUENCE tries",
        "CREATE FUNCTION refuse_once() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF nextval('public.tries') = 1 THEN \
         RAISE 'storniere Anfrage wegen Sperre' USING ERRCODE = '55P03'; END IF; END $$",
        "CREATE EVENT TRIGGER refuse_once ON ddl_command_start \
         WHEN TAG IN ('ALTER TABLE', 'DROP TABLE') EXECUTE FUNCTION refuse_once()",
    ] {
        run(conn, sql).await;
    }
    for outcome in [Dropped::Busy, Dropped::Dropped] {
        let dropped = retention::drop_partition(conn, &old[0]).await;
        assert_eq!(dropped.unwrap(), outcome);
    }
    run(conn, "ALTER SEQUENCE tries RESTART").await;
    let up = "ALTER TABLE manager_notices ADD COLUMN later text";
    let ran = run_later_migration(database.url(), up, true).await;
    assert_eq!(ran.unwrap(), [LATER_VERSION]);
}
