//! Log lines for people: time, level, crate, message.
//!
//! Spans are left out, because in text they hide the message. The JSON lines and the traces have them.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    registry::LookupSpan,
};

pub(super) struct Text;

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        SystemTime.format_time(&mut writer)?;
        let metadata = event.metadata();
        // The crate is enough: the message has the rest.
        let source = metadata.target().split("::").next().unwrap_or_default();
        write!(writer, " {:>5} {source}: ", metadata.level())?;
        context
            .field_format()
            .format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}
