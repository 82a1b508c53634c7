//! manager-compiler
