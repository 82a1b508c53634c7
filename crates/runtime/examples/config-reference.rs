//! Prints the page `docs/operations/configuration.md`.

fn main() {
    print!("{}", runtime::config::reference());
}
