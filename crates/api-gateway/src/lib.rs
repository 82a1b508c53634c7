//! api-gateway
