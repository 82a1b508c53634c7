//! Starts PostgreSQL and RabbitMQ servers of our own, from the machine's installed packages.
//!
//! `earshot dev` keeps its database this way, and tests get servers that they may kill. A server has
//! a home directory, a free port on 127.0.0.1 and nothing in common with the system's own instances.
//!
//! Promised for both kinds: one parent per home (a lock, held by the kernel, so `kill -9` frees it);
//! the server ends with its parent, however that ends ([`watcher`]); what a killed parent left behind
//! does not keep the next from starting. The API blocks, and needs no async runtime.
//!
//! [`postgres`] and [`rabbitmq`] know their servers; the other modules know processes and ports.

mod account;
mod home;
mod log;
mod path;
mod ports;
pub mod postgres;
mod process;
pub mod rabbitmq;
mod tls;
mod watcher;

pub use ports::free_port;
pub use postgres::Postgres;
pub use rabbitmq::RabbitMq;
pub use tls::Tls;

/// Whether some process has a server with this home directory.
pub fn is_in_use(home: &std::path::Path) -> bool {
    home::Home::is_held(home)
}
