//! scanner
