//! CPU time of processes, measured by the kernel: unlike a rate, it does not depend on the machine's other load.

use std::fs;

use anyhow::{Context, Result};

/// A tick of `/proc/<pid>/stat`, in seconds: the same on every Linux (proc(5), `USER_HZ`).
const TICK: f64 = 0.01;

/// Returns the seconds of CPU that `roots` and their descendants have used, including those that have ended and were
/// waited for.
pub(crate) fn used(roots: &[u32]) -> Result<f64> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // The process may have ended meanwhile.
        if let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) {
            all.push((
                pid,
                Stat::parse(&text).context("the kernel reports no times")?,
            ));
        }
    }
    let sum = |(pid, stat): &(u32, Stat)| {
        let is_ours = roots.contains(pid) || roots.contains(&stat.parent);
        if is_ours { stat.ticks } else { 0 }
    };
    let ticks: u64 = all.iter().map(sum).sum();
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    Ok(ticks as f64 * TICK)
}

struct Stat {
    parent: u32,
    ticks: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name, in parentheses, may contain any character.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            ticks: number(11)? + number(12)? + number(13)? + number(14)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Stat;

    #[test]
    fn process_names_may_contain_any_character() {
        let text = "7 (a) b) 1 2) S 3 7 7 0 -1 4 1 2 3 4 10 20 30 40 20 0 1";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.parent, stat.ticks), (3, 100));
    }
}
