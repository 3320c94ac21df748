//! Tests of a broker through its interfaces, over real sockets.

mod accounts;
mod documented;
mod fetching;
mod following;
mod limits;
mod lookups;
mod measuring;
mod publishing;
mod soap;
mod support;
mod uddi;
