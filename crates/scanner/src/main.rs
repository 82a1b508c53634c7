//! The `scanner` binary: see the library.

use std::process::ExitCode;

use backbone::Backbone;

fn main() -> ExitCode {
    runtime::service_main("scanner", async |config, context| {
        let backbone = Backbone::new(&config, context.service)?;
        let work = scanner::run(config, context.clone(), backbone.clone());
        backbone.host(&context, Box::pin(work)).await
    })
}
