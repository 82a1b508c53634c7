//! Errors of a server that speaks another language.

use diesel::sql_query;
use diesel_async::RunQueryDsl;
use test_support::TestDatabase;

use crate::support::run;

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
