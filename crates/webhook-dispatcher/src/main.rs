//! The `webhook-dispatcher` binary: see the library.

use std::process::ExitCode;

use backbone::Backbone;

fn main() -> ExitCode {
    runtime::service_main("webhook-dispatcher", async |config, context| {
        let backbone = Backbone::new(&config, context.service)?;
        let work = webhook_dispatcher::run(config, context.clone(), backbone.clone());
        backbone.host(&context, Box::pin(work)).await
    })
}
