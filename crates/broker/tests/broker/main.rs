//! A broker as its clients see it, over real sockets.

mod documented;
mod fetching;
mod following;
mod limits;
mod lookups;
mod publishing;
mod soap;
mod support;
mod uddi;
