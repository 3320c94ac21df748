//! The figures of the papers, by topic.
//!
//! [`COLLECTION`] has the only list of figures; the selection, the report's index and the tables of figures derive from
//! it. Each figure's file defines its measurement. Figures that differ in parameters only share a file. The frame that
//! runs and draws them is `posthaste-study`. Crates below this one create and answer the traffic.

mod admission;
mod broker;
mod compression;
mod diffserv;
mod overload;
mod packet_loss;
mod planned;
mod pricing;
mod questions;
#[cfg(test)]
mod test_study;
mod testbed;

use posthaste_study::{Collection, Failure, Figure};
use posthaste_units::Seed;

/// All figures of this release, with the papers.
pub const COLLECTION: Collection<'static> = Collection {
    figures: FIGURES,
    papers: planned::PAPERS,
    aliases: planned::ALIASES,
    planned: planned::PLANNED,
    questions: &questions::QUESTIONS,
};

/// Seed of the predictions.
const PREDICTIONS_SEED: Seed = Seed(2003);

/// The content of docs/papers/quic-predictions.md.
pub fn quic_predictions() -> Result<String, Failure> {
    packet_loss::quic::predictions::page(PREDICTIONS_SEED)
}

/// All figures of this release, in the order of the report.
const FIGURES: &[&Figure] = &[
    &overload::fig_05::FIGURE,
    &overload::fig_06::FIGURE,
    &overload::fig_07::FIGURE,
    &overload::fig_08::FIGURE,
    &overload::fig_09::FIGURE,
    &overload::fig_10::FIGURE,
    &overload::fig_11::FIGURE,
    &overload::forms::forms_2026::FIGURE,
    &packet_loss::fig_02::FIGURE,
    &packet_loss::fig_03::FIGURE,
    &packet_loss::overviews::FIG_04,
    &packet_loss::overviews::FIG_05,
    &packet_loss::fig_06::FIGURE,
    &packet_loss::fig_07::FIGURE,
    &packet_loss::overviews::FIG_08,
    &packet_loss::overviews::FIG_09,
    &packet_loss::overviews::FIG_10,
    &packet_loss::overviews::FIG_11,
    &packet_loss::overviews::FIG_12,
    &packet_loss::overviews::FIG_13,
    &packet_loss::loss_2_percent::FIGURE,
    &packet_loss::late_loss_2026::FIGURE,
    &packet_loss::model_2026::FIGURE,
    &packet_loss::remedies_compared::FIGURE,
    &packet_loss::quic::quic_2026::FIGURE,
    &packet_loss::quic::quic_sweep_2026::FIGURE,
    &packet_loss::quic::quic_remedies_2026::FIGURE,
    &compression::table_4::FIGURE,
    &compression::networks::FIG_47,
    &compression::networks::FIG_48,
    &compression::networks::FIG_49,
    &compression::networks::FIG_50,
    &compression::fig_51::FIGURE,
    &compression::fig_52::FIGURE,
    &compression::fig_53::FIGURE,
    &compression::fig_54::FIGURE,
    &compression::table_5::FIGURE,
    &compression::policies_2026::FIGURE,
    &compression::codecs_2026::FIGURE,
    &compression::promises_2026::FIGURE,
    &broker::thesis_brokers::FIG_56,
    &broker::thesis_brokers::FIG_57,
    &broker::thesis_brokers::FIG_58,
    &broker::thesis_brokers::FIG_59,
    &broker::thesis_brokers::FIG_60,
    &broker::lookups_2026::FIGURE,
    &broker::changes_2026::FIGURE,
    &diffserv::fig_62::FIGURE,
    &diffserv::gains::FIG_63,
    &diffserv::gains::FIG_64,
    &diffserv::gains::FIG_65,
    &diffserv::gains::FIG_66,
    &pricing::fig_68::FIGURE,
    &pricing::fig_69::FIGURE,
    &pricing::fig_70::FIGURE,
    &pricing::prices_2026::FIGURE,
    &admission::admission_2026::FIGURE,
];
