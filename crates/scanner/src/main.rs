//! The `scanner` binary: see the library.

use std::process::ExitCode;

use backbone::Backbone;

fn main() -> ExitCode {
    runtime::service_main("scanner", async |config, context| {
        let backbone = Backbone::new(&config, context.service)?;
        backbone
            .host(
                &context,
                scanner::run(config, context.clone(), backbone.clone()),
            )
            .await
    })
}
