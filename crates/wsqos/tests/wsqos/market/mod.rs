//! What the market promises: in random histories, against plants, and by its parts.

mod controllers;
mod histories;
mod limits;
mod parts;
mod plant;
