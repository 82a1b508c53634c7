//! `cargo run --release -p compiling --example plans -- CUSTOMERS_DIR [CUSTOMER]`: prints instructions.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments
        .next()
        .ok_or("usage: plans CUSTOMERS_DIR [CUSTOMER]")?;
    let only = arguments.next();
    for (customer, focus, instructions) in compiling::evaluate::instructions(dir.as_ref())? {
        if only.as_ref().is_none_or(|only| *only == customer) {
            println!(
                "{customer} {} {}",
                focus.as_str(),
                serde_json::to_string(&instructions)?
            );
        }
    }
    Ok(())
}
