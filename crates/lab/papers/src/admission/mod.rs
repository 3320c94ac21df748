//! Beyond the thesis: the same overload against several protections.
//!
//! | module | content |
//! |---|---|
//! | `competitors` | the table of protections, and their start |
//! | `budgets` | the accounts of the clients, at a broker |
//! | `configurations` | their configuration files |
//! | `scenarios` | the table of loads, and the requests of clients |
//! | `measuring` | one run: all generators, and their results as numbers |
//! | `study` | all runs, and their records |
//! | `admission_2026` | the figure |

pub(crate) mod admission_2026;
mod budgets;
mod competitors;
mod configurations;
mod measuring;
mod scenarios;
mod study;
