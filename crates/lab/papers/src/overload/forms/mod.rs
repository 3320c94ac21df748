//! Beyond the paper: its question asked of the forms in which a service answers today.
//!
//! | module | content |
//! |---|---|
//! | `service_form` | the five forms, and their requests |
//! | `traffic` | the table of kinds of traffic: a form with its coding and connections |
//! | `answers` | one reply of each form, compared with the facts of the book |
//! | `wire` | bytes of one exchange |
//! | `study` | CPU time and capacity, and all records |
//! | `forms_2026` | the figure |

mod answers;
pub(crate) mod forms_2026;
mod service_form;
mod study;
mod traffic;
mod wire;
