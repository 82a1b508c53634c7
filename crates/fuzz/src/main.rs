//! The targets with libFuzzer, in one program, so that they are linked once. `EARSHOT_FUZZ_TARGET` selects one,
//! as `.ci/fuzz` does; `EARSHOT_FUZZ_TARGET=` lists them.

#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<fuzz::Target> = LazyLock::new(|| {
    #[expect(
        clippy::disallowed_methods,
        reason = "arguments are the engine's; this is no setting of the product"
    )]
    let name = std::env::var("EARSHOT_FUZZ_TARGET").unwrap_or_default();
    fuzz::find(&name).unwrap_or_else(|| {
        for target in fuzz::TARGETS {
            println!("{}", target.name);
        }
        std::process::exit(i32::from(!name.is_empty()))
    })
});

libfuzzer_sys::fuzz_target!(init: { LazyLock::force(&TARGET); }, |data: &[u8]| (TARGET.run)(data));
