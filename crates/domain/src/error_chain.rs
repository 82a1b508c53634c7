use std::{error::Error, iter::successors};

/// An error and its causes, outermost first: `cannot send: connection refused`.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let causes = successors(Some(error), |&error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
