//! Word lists of the folder `data`: one entry per line; a line that begins with `#` is a comment.

/// Returns the entries of a list.
pub(crate) fn entries(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}
