//! The platform simulator as a program, for end-to-end tests and the demo composition.

use std::{net::SocketAddr, time::Duration};

use clap::Parser;
use platform_simulator::{Simulator, demo::Feeder, load::Load};

/// Speaks the APIs of Hacker News, Lemmy and feeds from posts given at /control/posts.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Address to listen on; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Address that clients use, if it differs from the one it listens on.
    #[arg(long)]
    public_url: Option<url::Url>,
    /// Publish the built-in posts, one in each interval (for example `1s`).
    #[arg(long)]
    demo: Option<humantime::Duration>,
    /// Number of posts to send per second over Bluesky's stream.
    #[arg(long)]
    stream_load: Option<u64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let simulator = Simulator::start_as(arguments.listen, arguments.public_url.as_ref())
        .map_err(|error| anyhow::anyhow!("cannot listen on {}: {error}", arguments.listen))?;
    let interval = arguments.demo.map(Duration::from);
    let _feeder = interval
        .map(|interval| Feeder::start(&simulator, interval))
        .transpose()?;
    let load = arguments.stream_load;
    let _load = load
        .map(|per_second| Load::start(&simulator, per_second))
        .transpose()?;
    println!("simulator ready http://{}", simulator.addr());

    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
