//! platforms
