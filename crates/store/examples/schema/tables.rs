//! The tables of a database as diesel's macros.

use std::fmt::Write;

use anyhow::{Context, bail};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Bool, Integer, Nullable, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

const HEADER: &str = "\
//! The tables, as the migrations make them. Written by `cargo xtask generate`; a test holds this file to
//! a migrated database.
";

/// Column names that are keywords of Rust.
const KEYWORDS: &[&str] = &["type", "match", "ref", "move", "use"];

#[derive(QueryableByName)]
struct Column {
    #[diesel(sql_type = Text)]
    table_name: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    type_name: String,
    #[diesel(sql_type = Bool)]
    required: bool,
    /// Position in the primary key.
    #[diesel(sql_type = Nullable<Integer>)]
    key: Option<i32>,
}

/// Returns the whole of `src/schema.rs`, formatted by rustfmt.
pub(crate) async fn write(conn: &mut AsyncPgConnection) -> anyhow::Result<String> {
    let columns = columns(conn).await?;
    let mut text = HEADER.to_owned();
    let mut names = Vec::new();
    for table in columns.chunk_by(|a, b| a.table_name == b.table_name) {
        write_table(&mut text, table)?;
        names.push(table[0].table_name.as_str());
    }
    text.push_str("\ndiesel::allow_tables_to_appear_in_same_query!(\n");
    for name in names {
        writeln!(text, "    {name},")?;
    }
    text.push_str(");\n");
    Ok(text)
}

/// Returns every column, ordered by table and position, without partitions and without diesel's own table.
async fn columns(conn: &mut AsyncPgConnection) -> anyhow::Result<Vec<Column>> {
    sql_query(
        "SELECT c.relname::text AS table_name, a.attname::text AS name, t.typname::text AS type_name, \
             a.attnotnull AS required, array_position(i.indkey::int2[], a.attnum) AS key \
         FROM pg_class AS c \
         JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
         JOIN pg_type AS t ON t.oid = a.atttypid \
         LEFT JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisprimary \
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') \
           AND NOT c.relispartition AND c.relname <> '__diesel_schema_migrations' \
         ORDER BY c.relname COLLATE \"C\", a.attnum",
    )
    .load(conn)
    .await
    .context("cannot read the catalog")
}

fn write_table(text: &mut String, columns: &[Column]) -> anyhow::Result<()> {
    let mut key: Vec<&Column> = columns.iter().filter(|one| one.key.is_some()).collect();
    key.sort_by_key(|one| one.key);
    let key: Vec<&str> = key.iter().map(|one| one.name.as_str()).collect();
    write!(
        text,
        "\ndiesel::table! {{\n    {} ({}) {{\n",
        columns[0].table_name,
        key.join(", ")
    )?;
    for column in columns {
        let mut kind = rust_type(&column.type_name)
            .with_context(|| format!("{}.{}", column.table_name, column.name))?
            .to_owned();
        if !column.required {
            kind = format!("Nullable<{kind}>");
        }
        let name = &column.name;
        if KEYWORDS.contains(&name.as_str()) {
            writeln!(
                text,
                "        #[sql_name = \"{name}\"]\n        {name}_ -> {kind},"
            )?;
        } else {
            writeln!(text, "        {name} -> {kind},")?;
        }
    }
    text.push_str("    }\n}\n");
    Ok(())
}

fn rust_type(name: &str) -> anyhow::Result<&'static str> {
    Ok(match name {
        "bool" => "Bool",
        "bytea" => "Bytea",
        "date" => "Date",
        "float8" => "Double",
        "int2" => "SmallInt",
        "int4" => "Integer",
        "int8" => "BigInt",
        "jsonb" => "Jsonb",
        "text" => "Text",
        "timestamptz" => "Timestamptz",
        "uuid" => "Uuid",
        // Our arrays contain no NULLs.
        "_text" => "Array<Text>",
        "_uuid" => "Array<Uuid>",
        other => bail!("no diesel type is known for `{other}`: add it to this example"),
    })
}
