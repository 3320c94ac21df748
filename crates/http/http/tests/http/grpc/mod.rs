//! gRPC from outside: frames in any pieces, and statuses.

mod frames;
mod status;
