//! CPU seconds of processes and their descendants.

use std::{collections::HashMap, fs};

use anyhow::{Context, Result};

/// CPU time that a process has used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    parent: u32,
    seconds: f64,
}

/// Returns user and system time of all descendants of this process, including their ended children, summed by the kind
/// that `kind` assigns to a program's name.
pub(crate) fn of_descendants(kind: impl Fn(&str) -> usize, kinds: usize) -> Result<Vec<f64>> {
    let mut processes: HashMap<u32, (Used, String)> = HashMap::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // The process has just ended.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        if let Some(found) = parse(&stat) {
            processes.insert(id, found);
        }
    }
    let own = std::process::id();
    let mut sums = vec![0.0; kinds];
    for (id, (used, name)) in &processes {
        let mut at = *id;
        while at != own {
            match processes.get(&at) {
                Some((used, _)) if used.parent != 0 => at = used.parent,
                _ => break,
            }
        }
        if at == own
            && *id != own
            && let Some(sum) = sums.get_mut(kind(name))
        {
            *sum += used.seconds;
        }
    }
    Ok(sums)
}

/// Parses the format of proc(5): `pid (name) state ppid … utime stime cutime cstime …`, times in hundredths of a
/// second.
fn parse(stat: &str) -> Option<(Used, String)> {
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let ticks: Option<f64> = (11..15).map(|at| fields.get(at)?.parse::<f64>().ok()).sum();
    let used = Used {
        parent: fields.get(1)?.parse().ok()?,
        seconds: ticks? / 100.0,
    };
    Some((used, name))
}

/// Returns the resident memory of a process, in megabytes.
pub(crate) fn megabytes(process: u32) -> Result<f64> {
    Ok(resident_bytes(process)? / 1_000_000.0)
}

pub(crate) fn resident_bytes(process: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: f64 = line
        .and_then(|text| text.trim().strip_suffix("kB"))
        .context("the kernel reports no VmRSS")?
        .trim()
        .parse()?;
    Ok(kib * 1_024.0)
}
