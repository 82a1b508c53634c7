//! The `manager-compiler` binary: see the library.

use std::process::ExitCode;

use backbone::Backbone;

fn main() -> ExitCode {
    runtime::service_main("manager-compiler", async |config, context| {
        let backbone = Backbone::new(&config, context.service)?;
        let work = manager_compiler::run(config, context.clone(), backbone.clone());
        backbone.host(&context, Box::pin(work)).await
    })
}
