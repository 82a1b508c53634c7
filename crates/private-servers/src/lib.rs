//! private-servers
