//! The report: every figure with its claim, its picture, its checks and what differs.
//!
//! Made from what was drawn and nothing else. What the papers show and this release cannot yet
//! is listed at the end, so that the report never looks more complete than it is.

use posthaste_draw::{Block, Card, Cell, Page, Section, State, Table, Verdict};

use crate::check::{Check, Kind};
use crate::figure::{Figure, Plot, planned};
use crate::manifest::{Ended, Machine, Manifest};
use crate::outcome::{Drawn, plot_name};
use crate::papers::PAPERS;

/// The report on `drawn`, the figures of one folder; `figures` are all that are built.
pub(crate) fn page(figures: &[&Figure], drawn: &[Drawn<'_>]) -> Page {
    let mut sections = Vec::new();
    for (prefix, citation) in PAPERS {
        let of_paper = |drawn: &&Drawn<'_>| paper_of(drawn.figure.id) == *prefix;
        let inner: Vec<Section> = drawn.iter().filter(of_paper).map(figure_section).collect();
        if !inner.is_empty() {
            let mut section = Section::new(*prefix);
            section.blocks.push(Block::Text(format!("{citation}.")));
            section.sections = inner;
            sections.push(section);
        }
    }
    sections.extend(to_come(figures));
    Page {
        title: "The papers, reproduced on this machine".to_owned(),
        lead: "Ours beside the paper's. Instrument checks must hold on any machine; claims are \
               the papers' or goals of our own, and some do not hold here: each stands with its numbers."
            .to_owned(),
        opening: vec![Block::Cards(cards(drawn)), Block::Table(index(drawn))],
        sections,
        footer: format!("posthaste {}", env!("CARGO_PKG_VERSION")),
    }
}

fn paper_of(id: &str) -> &str {
    id.split('/').next().unwrap_or(id)
}

/// How many of `kind` hold, and how many there are.
fn held<'c>(checks: impl Iterator<Item = &'c Check>, kind: Kind) -> (usize, usize) {
    checks
        .filter(|check| check.kind == kind)
        .fold((0, 0), |(held, all), check| {
            (held + usize::from(check.holds), all + 1)
        })
}

fn cards(drawn: &[Drawn<'_>]) -> Vec<Card> {
    let checks = || drawn.iter().flat_map(|drawn| &drawn.checks);
    let share = |(held, all): (usize, usize)| format!("{held} of {all}");
    let good = drawn.iter().filter(|drawn| drawn.error.is_none()).count();
    let card = |label: &str, value: String, remark: &str| Card {
        label: label.to_owned(),
        value,
        remark: remark.to_owned(),
    };
    let mut cards = vec![
        card("Figures drawn", share((good, drawn.len())), ""),
        card(
            "Instrument checks that hold",
            share(held(checks(), Kind::Instrument)),
            "they must, on any machine",
        ),
        card(
            "Claims that hold here",
            share(held(checks(), Kind::Claim)),
            "the papers', scaled, and goals of our own",
        ),
    ];
    if let Some(manifest) = drawn.iter().find_map(|drawn| drawn.manifest.as_ref()) {
        let Machine { cores, .. } = manifest.machine;
        let value = format!("{cores} {}", if cores == 1 { "core" } else { "cores" });
        cards.push(card("Machine", value, &manifest.machine.build()));
    }
    cards
}

/// How a figure stands, in a symbol and a word.
fn state(drawn: &Drawn<'_>) -> State {
    if drawn.error.is_some() {
        State::Fail("failed")
    } else if drawn.stopped() {
        State::Pending("stopped early")
    } else if drawn.checks.iter().any(Check::fails_the_run) {
        State::Fail("check failed")
    } else if drawn.checks.iter().all(|check| check.holds) {
        State::Pass("holds")
    } else {
        State::Note("claim differs")
    }
}

fn heading(figure: &Figure) -> String {
    format!("{}: {}", figure.id, figure.title)
}

fn index(drawn: &[Drawn<'_>]) -> Table {
    let mut table = Table::new(["figure", "state", "instrument", "claims", "took"]);
    for figure in drawn {
        let share = |kind| {
            Cell::number(match held(figure.checks.iter(), kind) {
                (_, 0) => "–".to_owned(),
                (held, all) => format!("{held} of {all}"),
            })
        };
        let took = figure.manifest.as_ref().map_or(String::new(), |manifest| {
            format!("{:.1} s", manifest.duration_s)
        });
        let name = heading(figure.figure);
        let address = Section::new(&*name).anchor();
        table.rows.push(vec![
            Cell::text(name).link(address),
            Cell::state(state(figure)),
            share(Kind::Instrument),
            share(Kind::Claim),
            Cell::number(took),
        ]);
    }
    table
}

fn figure_section(drawn: &Drawn<'_>) -> Section {
    let figure = drawn.figure;
    let mut section = Section::new(heading(figure));
    section.state = Some(state(drawn));
    let blocks = &mut section.blocks;
    blocks.push(Block::Labelled(
        "The claim.".to_owned(),
        figure.claim.to_owned(),
    ));
    if let Some(error) = &drawn.error {
        blocks.push(Block::Verdicts(vec![Verdict {
            state: State::Fail("failed"),
            sentence: error.clone(),
        }]));
    }
    if drawn.stopped() {
        let words = "This run was stopped before it was complete: what follows is what had been measured until then.";
        blocks.push(Block::Text(words.to_owned()));
    }
    blocks.extend(drawn.plots.iter().map(|plot| match plot {
        Plot::Chart(chart) => Block::Chart(Box::new(chart.clone())),
        Plot::Bars(bars) => Block::Bars(Box::new(bars.clone())),
    }));
    for (kind, label) in [
        (Kind::Instrument, "The instrument."),
        (Kind::Claim, "Claims and goals, here."),
    ] {
        let checks: Vec<&Check> = drawn
            .checks
            .iter()
            .filter(|check| check.kind == kind)
            .collect();
        if !checks.is_empty() {
            blocks.push(Block::Labelled(label.to_owned(), String::new()));
            blocks.push(Block::Verdicts(checks.into_iter().map(verdict).collect()));
        }
    }
    blocks.push(Block::Labelled(
        "What differs, and why.".to_owned(),
        figure.differs.to_owned(),
    ));
    if let Some(manifest) = &drawn.manifest {
        blocks.push(Block::Code(command(manifest)));
        blocks.push(links(drawn));
        let details = vec![Block::Table(particulars(figure, manifest))];
        blocks.push(Block::Details("How it was run".to_owned(), details));
    }
    section
}

fn verdict(check: &Check) -> Verdict {
    Verdict {
        state: match (check.holds, check.kind) {
            (true, _) => State::Pass("holds"),
            (false, Kind::Instrument) => State::Fail("does not hold"),
            (false, Kind::Claim) => State::Note("differs here"),
        },
        sentence: check.sentence.clone(),
    }
}

/// What a person types to have this figure again.
fn command(manifest: &Manifest) -> String {
    let full = if manifest.full { " --full" } else { "" };
    format!(
        "posthaste reproduce {}{full} --seed {}",
        manifest.figure, manifest.seed
    )
}

fn links(drawn: &Drawn<'_>) -> Block {
    let manifest = drawn.manifest.as_ref();
    let measured = manifest.is_some_and(|manifest| !manifest.tables.is_empty());
    let records = measured.then_some("records.csv");
    let names = records.into_iter().chain(["manifest.json"]);
    let pictures = (0..drawn.plots.len()).map(plot_name);
    let link = |name: String| (name.clone(), format!("{}/{name}", drawn.figure.id));
    let all = names.map(str::to_owned).chain(pictures);
    Block::Links(all.map(link).collect())
}

fn particulars(figure: &Figure, manifest: &Manifest) -> Table {
    let mut table = Table::new(["", ""]);
    let mut row = |name: &str, value: String| {
        table.rows.push(vec![Cell::text(name), Cell::text(value)]);
    };
    row("paper", figure.paper.to_owned());
    row("study", manifest.study.clone());
    let ended = match &manifest.ended {
        Ended::Complete => "complete",
        Ended::Stopped => "stopped early",
        Ended::Failed(_) => "failed",
    };
    row("ended", ended.to_owned());
    row("took", format!("{:.1} s", manifest.duration_s));
    row(
        "length",
        if manifest.full { "full" } else { "quick" }.to_owned(),
    );
    row("seed", manifest.seed.to_string());
    let commit = manifest
        .commit
        .as_ref()
        .map_or_else(String::new, |commit| format!(", {commit}"));
    row("posthaste", format!("{}{commit}", manifest.version));
    row("machine", manifest.machine.describe());
    for (name, value) in &manifest.parameters {
        row(name, value.clone());
    }
    table
}

/// What the papers show and this release cannot yet.
fn to_come(figures: &[&Figure]) -> Option<Section> {
    let planned = planned(figures);
    if planned.is_empty() {
        return None;
    }
    let mut table = Table::new(["figure", "what it shows", "state"]);
    for planned in &planned {
        table.rows.push(vec![
            Cell::text(planned.id),
            Cell::text(planned.title),
            Cell::text(format!("comes {}", planned.comes)),
        ]);
    }
    let mut section = Section::new("Not built yet");
    let words = format!("{} figures and tables of the papers", planned.len());
    section
        .blocks
        .push(Block::Details(words, vec![Block::Table(table)]));
    Some(section)
}
