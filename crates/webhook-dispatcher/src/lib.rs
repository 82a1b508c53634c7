//! webhook-dispatcher
