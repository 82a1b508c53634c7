//! tests-e2e
