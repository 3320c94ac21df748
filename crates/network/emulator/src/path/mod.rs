//! The path of packets between the hosts: flows, rules at the edges, middleboxes, outcomes.

pub mod agent;
pub(crate) mod device;
pub(crate) mod edge;
pub mod flow;
pub(crate) mod outcome;
pub(crate) mod packet_path;
pub(crate) mod packet_record;
pub(crate) mod ports;
pub mod relay;
pub mod stack;
pub(crate) mod too_big;
