//! Starts private PostgreSQL and RabbitMQ servers from the machine's installed packages.
//!
//! `earshot dev` runs its database this way, and tests get servers that they may kill. A server has a home
//! directory, a free port on 127.0.0.1, and is independent of the system's own instances.
//!
//! Guarantees for both kinds: one parent per home (a lock, held by the kernel, so `kill -9` frees it); the
//! server ends with its parent, however that ends ([`watcher`]); the remains of a killed parent do not
//! prevent the next start. The API blocks, and needs no async runtime.
//!
//! [`postgres`] and [`rabbitmq`] have the code for each server; the other modules handle processes and ports.

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

/// Returns true if some process has a server with this home directory.
pub fn is_in_use(home: &std::path::Path) -> bool {
    home::Home::is_held(home)
}
