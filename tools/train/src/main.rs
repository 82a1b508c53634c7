//! Trains the model file that `matching` ships.
//!
//! `cargo xtask train --data DIR [--out DIR]` runs it. DIR contains the data sets that
//! `crates/matching/model/README.md` lists and, next to it, the `corpus`. Labelled posts of `data/posts` and labels of
//! `data/judged` come from `crates/compiling`. Writes `model.bin`, `scores.md` and, for the program
//! `llm_filter`, `rows.jsonl`. The same data gives the same bytes on any machine.
//!
//! [`data`] reads, [`heads`] trains the intent classifiers, and [`layers`] the gates and verdicts. The scores of the
//! verdicts are measured on customers that are not in their training data.

mod bench;
mod data;
mod heads;
mod layers;
mod natural;
mod pooled;
mod reserved;
mod scores;
mod signs;
mod solve;

use std::{fmt::Write as _, fs, path::Path};

use domain::Focus;
use matching::model_file::ModelFile;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let (Some(dir), Some(out)) = (arguments.next(), arguments.next()) else {
        return Err("usage: train DATA_DIR OUT_DIR".into());
    };
    let (dir, out) = (Path::new(&dir), Path::new(&out));
    let bench = bench::Bench::read(&dir.join("bench"))?;
    let own = data::own()?;
    let mut model = ModelFile::default();
    for focus in Focus::ALL {
        model.heads[focus as usize] = heads::train(focus, dir, &own, &bench)?;
    }
    // The evidence is computed with the new classifiers.
    if !matching::heads::install(model.clone()) {
        return Err("a post was decided before the classifiers were trained".into());
    }
    let pooled = pooled::Pooled::read(&dir.join("../corpus"))?;
    let mut report =
        String::from("| Focus | P | R | F1 | AP | MAP2 |\n|---|---|---|---|---|---|\n");
    let (mut natural, mut lines) = (String::new(), String::new());
    let (mut f1, mut ap) = (0.0, 0.0);
    for focus in Focus::ALL {
        let rows = layers::rows(focus, &bench, &pooled)?;
        let gate = layers::gate(&rows);
        let (unseen, scale) = layers::unseen(focus, &rows, &gate);
        let threshold = matching::threshold(focus, domain::Sensitivity::Balanced);
        let judged = layers::bench_scores(focus, &bench, &rows, &unseen, threshold);
        let scores = scores::of(&judged);
        eprintln!(
            "{}: {} rows, bench {scores:?}, {gate:?}, {scale:?}",
            focus.as_str(),
            rows.len()
        );
        writeln!(report, "| {} | {} |", focus.as_str(), scores.row())?;
        let by_threshold: Vec<String> = (2..13)
            .map(|step| 0.05 * f64::from(step))
            .map(|at| {
                let judged = layers::bench_scores(focus, &bench, &rows, &unseen, at);
                format!("{at:.2}: {:.3}", scores::of(&judged).f1)
            })
            .collect();
        eprintln!("F1 by threshold: {}", by_threshold.join(", "));
        lines.push_str(&natural::lines(focus, &rows, &unseen));
        natural.push_str(&natural::report(focus, &pooled, &rows, &unseen));
        f1 += scores.f1 / 3.0;
        ap += scores.ap / 3.0;
        model.gates[focus as usize] = gate;
        model.verdicts[focus as usize] = layers::verdict(focus, &rows, scale);
    }
    writeln!(report, "| macro | | | {f1:.3} | {ap:.3} | |")?;
    report.push_str("\nPosts judged at the natural rate:\n");
    report.push_str(&natural);
    fs::write(out.join("model.bin"), model.to_bytes())?;
    fs::write(out.join("scores.md"), report)?;
    fs::write(out.join("rows.jsonl"), lines)?;
    Ok(())
}
