//! Reads the rows of one page, up to a size.

use diesel::{
    QueryableByName, deserialize,
    pg::Pg,
    row::{Field as _, NamedRow, Row},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::list::ListQuery;
use futures::TryStreamExt as _;

use super::query::Query;
use crate::QueryResult;

/// Maximum size of a page. A larger item is the only one of its page.
pub const MAX_PAGE_BYTES: usize = 4_000_000;

/// The rows of one page.
pub(crate) struct Rows<R> {
    pub(crate) rows: Vec<R>,
    /// True if another page follows.
    pub(crate) more: bool,
}

impl Query {
    /// Reads a page of at most [`MAX_PAGE_BYTES`]. Rows arrive one by one, so that those beyond the end take no
    /// memory.
    pub(crate) async fn read<R>(
        self,
        conn: &mut AsyncPgConnection,
        list: &ListQuery,
    ) -> QueryResult<Rows<R>>
    where
        R: QueryableByName<Pg> + Send + 'static,
    {
        let size = usize::try_from(list.page_size).unwrap_or(usize::MAX);
        let (mut rows, mut total) = (Vec::new(), 0);
        let mut stream = self.load_stream::<Measured<R>>(conn).await?;
        while let Some(Measured { row, bytes }) = stream.try_next().await? {
            total += bytes;
            if rows.len() == size || total > MAX_PAGE_BYTES && !rows.is_empty() {
                return Ok(Rows { rows, more: true });
            }
            rows.push(row);
        }
        Ok(Rows { rows, more: false })
    }
}

/// A row with the approximate length of its JSON.
struct Measured<R> {
    row: R,
    bytes: usize,
}

impl<R: QueryableByName<Pg>> QueryableByName<Pg> for Measured<R> {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        let len = |at| Some(json_len(Row::get(row, at)?.value()?.as_bytes()));
        let bytes = (0..row.field_count()).filter_map(len).sum();
        Ok(Self {
            row: R::build(row)?,
            bytes,
        })
    }
}

/// Length of a text in JSON, where a quote takes two bytes and a control character up to six.
fn json_len(text: &[u8]) -> usize {
    let escape = |byte: &u8| match byte {
        0..0x20 => 5,
        b'"' | b'\\' => 1,
        _ => 0,
    };
    // In pieces whose sum fits into a byte, so that the bytes of a piece are counted at once.
    let (pieces, rest) = text.as_chunks::<32>();
    let rest = rest.iter().map(escape).sum::<u8>();
    let escapes = pieces.iter().map(|piece| piece.iter().map(escape).sum());
    text.len() + escapes.chain([rest]).map(usize::from).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::json_len;

    #[test]
    fn length_covers_the_escapes_of_json() {
        let text = "plain \"quoted\" \\ \u{1}\u{1f} é";
        for text in [text.to_owned(), text.repeat(9), "\u{1}".repeat(99)] {
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(json_len(text.as_bytes()), json.len() - 2);
        }
    }
}
