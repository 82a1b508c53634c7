//! Trains the model file that `matching` ships.
//!
//! `cargo xtask train --data DIR [--out DIR]`, or by itself
//! `cargo run --release -p manager-compiler --example train -- DIR OUT`. DIR holds the data sets that
//! `crates/matching/model/README.md` names; the labelled posts of `data/posts` are taken from the
//! repository. Writes `model.bin` and `scores.md`. The same data gives the same bytes, on any machine.
//!
//! [`data`] reads, [`heads`] trains the classifiers, [`layers`] what makes one score of all parts. What
//! is measured on the benchmark is measured by models that have seen neither the customer nor a label
//! of its subject.

mod bench;
mod data;
mod heads;
mod layers;
mod scores;
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
    let mut report =
        String::from("| Focus | P | R | F1 | AP | MAP2 |\n|---|---|---|---|---|---|\n");
    let (mut f1, mut ap) = (0.0, 0.0);
    for focus in Focus::ALL {
        let trained = heads::train(focus, dir, &own, &bench)?;
        let fitted = layers::fit(focus, &bench, &trained)?;
        let scores = scores::of(&fitted.judged);
        eprintln!("{}: {scores:?} {:?}", focus.as_str(), fitted.layer);
        writeln!(report, "| {} | {} |", focus.as_str(), scores.row())?;
        f1 += scores.f1 / 3.0;
        ap += scores.ap / 3.0;
        model.heads[focus as usize] = trained.head;
        model.layers[focus as usize] = fitted.layer;
    }
    writeln!(report, "| macro | | | {f1:.3} | {ap:.3} | |")?;
    fs::write(out.join("model.bin"), model.to_bytes())?;
    fs::write(out.join("scores.md"), report)?;
    Ok(())
}
