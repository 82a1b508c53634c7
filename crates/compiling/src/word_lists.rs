//! Word lists of the folder `data`: an entry or several words per line; a line that begins with `#` is a comment.

/// Returns the entries of a list.
pub(crate) fn entries(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns the words of a list that has several in a line.
pub(crate) fn words(list: &'static str) -> impl Iterator<Item = &'static str> {
    entries(list).flat_map(str::split_whitespace)
}
