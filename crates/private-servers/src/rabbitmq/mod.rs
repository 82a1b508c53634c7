//! rabbit
pub struct RabbitMq;
