//! Ten questions about the papers, each with the figure that answers it.
//!
//! The report opens with them.

use posthaste_study::PaperQuestion;

use crate::{broker, compression, diffserv, overload, packet_loss, pricing};

/// All questions, in the order of the report.
pub(crate) const QUESTIONS: [PaperQuestion; 10] = [
    PaperQuestion {
        question: "How many bytes does a Web service cost, compared with a page of the same content?",
        figure: overload::fig_05::FIGURE.id,
        answer: overload::fig_05::answer,
    },
    PaperQuestion {
        question: "Does a server keep its throughput when it gets more requests than it can serve?",
        figure: overload::fig_09::FIGURE.id,
        answer: overload::fig_09::answer,
    },
    PaperQuestion {
        question: "Does compression help an overloaded server?",
        figure: overload::fig_11::FIGURE.id,
        answer: overload::fig_11::answer,
    },
    PaperQuestion {
        question: "Does it matter which packet of a reply is lost?",
        figure: packet_loss::fig_06::FIGURE.id,
        answer: packet_loss::fig_06::answer,
    },
    PaperQuestion {
        question: "Would adaptive duplicate ACKs, the proposal of the paper, have helped?",
        figure: packet_loss::remedies_compared::FIGURE.id,
        answer: packet_loss::remedies_compared::answer,
    },
    PaperQuestion {
        question: "When does a handheld gain from compressed replies?",
        figure: compression::networks::FIG_50.id,
        answer: compression::networks::answer,
    },
    PaperQuestion {
        question: "Can the server decide by its load for which clients to compress?",
        figure: compression::fig_53::FIGURE.id,
        answer: compression::fig_53::answer,
    },
    PaperQuestion {
        question: "What does a broker cost that compares offers for each request?",
        figure: broker::thesis_brokers::FIG_59.id,
        answer: broker::thesis_brokers::answer,
    },
    PaperQuestion {
        question: "Do replies gain that are marked for the network by the priority in their request?",
        figure: diffserv::gains::FIG_65.id,
        answer: diffserv::gains::answer,
    },
    PaperQuestion {
        question: "Do prices protect a server that gets more requests than it can serve?",
        figure: pricing::prices_2026::FIGURE.id,
        answer: pricing::prices_2026::answer,
    },
];

#[cfg(test)]
mod tests {
    use posthaste_study::Records;

    use super::*;
    use crate::FIGURES;

    #[test]
    fn without_data_nothing_is_answered_and_nothing_has_improved() {
        let none = Records::new();
        for question in &QUESTIONS {
            assert_eq!(question.sentence(&none), None, "{}", question.figure);
        }
        for figure in FIGURES {
            let checks = (figure.checks)(&none);
            let improved = checks.iter().find(|check| check.better);
            assert_eq!(improved, None, "{}", figure.id);
        }
    }

    #[test]
    fn every_question_has_a_figure() {
        for question in &QUESTIONS {
            let is_there = FIGURES.iter().any(|figure| figure.id == question.figure);
            assert!(is_there, "{}", question.figure);
        }
    }
}
