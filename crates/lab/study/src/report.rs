//! The report: questions with answers, then every figure with its claims, picture and differences.
//!
//! Its only input is the drawn figures. Figures are collapsed until opened, and their pictures are separate files. An
//! explanation shared by several figures is printed once. A final list names the figures that this release lacks.

use posthaste_draw::{Answer, Block, Card, Cell, Page, Picture, Section, State, Table, Verdict};

use crate::check::{Check, CheckKind};
use crate::collection::Collection;
use crate::figure::Figure;
use crate::manifest::{Machine, Manifest, StudyEnd};
use crate::outcome::{Drawn, narrow_plot_name, plot_name};
use crate::question::PaperQuestion;

/// Builds the report on `drawn`, the figures of one folder.
pub(crate) fn page(collection: &Collection<'_>, drawn: &[Drawn<'_>]) -> Page {
    let mut sections = Vec::new();
    let mut explanations = Explanations::default();
    for (prefix, citation) in collection.papers {
        let of_paper = |drawn: &&Drawn<'_>| paper_of(drawn.figure.id) == *prefix;
        let of_paper = drawn.iter().filter(of_paper);
        let inner: Vec<Section> = of_paper
            .map(|drawn| figure_section(collection, drawn, &mut explanations))
            .collect();
        if !inner.is_empty() {
            let mut section = Section::new(*prefix);
            section.blocks.push(Block::Text(format!("{citation}.")));
            section.sections = inner;
            sections.push(section);
        }
    }
    sections.extend(to_come(collection));
    Page {
        title: "The papers, reproduced on this machine".to_owned(),
        lead: lead(drawn),
        opening: vec![
            Block::Answers(answers(collection.questions, drawn)),
            Block::Cards(cards(drawn)),
        ],
        sections,
        filter: Some("Only figures in which something differs or failed".to_owned()),
        footer: format!("posthaste {}", env!("CARGO_PKG_VERSION")),
    }
}

fn paper_of(id: &str) -> &str {
    id.split('/').next().unwrap_or(id)
}

/// The first sentence: the number of confirmed claims of the papers.
fn lead(drawn: &[Drawn<'_>]) -> String {
    let checks = || judged(drawn);
    let claims = Count::from_checks(checks(), CheckKind::Paper);
    let unexplained =
        |check: &&Check| check.kind == CheckKind::Paper && !check.holds && check.reason.is_empty();
    let reasons = match checks().filter(unexplained).count() {
        0 => "a reason, known or possible, is given under each difference".to_owned(),
        some => format!("for {some} of the differences no reason is known"),
    };
    format!(
        "Of {} claims of the papers {} hold here, {} differ for the better and {} differ; {reasons}.",
        claims.all,
        claims.held,
        claims.better,
        claims.differ()
    )
}

/// Checks of all figures but those that were stopped: these have too little data.
fn judged<'d>(drawn: &'d [Drawn<'_>]) -> impl Iterator<Item = &'d Check> {
    let complete = drawn.iter().filter(|drawn| !drawn.stopped());
    complete.flat_map(|drawn| &drawn.checks)
}

/// Checks of one kind.
#[derive(Clone, Copy, Default)]
struct Count {
    all: usize,
    held: usize,
    better: usize,
}

impl Count {
    fn from_checks<'c>(checks: impl Iterator<Item = &'c Check>, kind: CheckKind) -> Self {
        let of_kind = checks.filter(|check| check.kind == kind);
        of_kind.fold(Self::default(), |count, check| Self {
            all: count.all + 1,
            held: count.held + usize::from(check.holds),
            better: count.better + usize::from(check.better),
        })
    }

    fn differ(self) -> usize {
        self.all - self.held - self.better
    }

    fn share(self) -> String {
        format!("{} of {}", self.held, self.all)
    }
}

/// Added to an answer if a check of the instrument failed.
const DOUBTFUL: &str =
    "Do not rely on these numbers: a check of the instrument failed in this run.";

/// The questions with their answers from the drawn figures.
fn answers(questions: &[PaperQuestion], drawn: &[Drawn<'_>]) -> Vec<Answer> {
    let answer = |entry: &PaperQuestion| {
        let drawn = drawn.iter().find(|drawn| drawn.figure.id == entry.figure);
        let found = drawn.and_then(|drawn| Some((drawn, drawn.answer.clone()?)));
        let question = entry.question.to_owned();
        match found {
            Some((drawn, sentence)) => Answer {
                question,
                sentence: if drawn.checks.iter().any(Check::fails_the_run) {
                    format!("{sentence} {DOUBTFUL}")
                } else {
                    sentence
                },
                plot: drawn.plots.first().cloned(),
                source: (entry.figure.to_owned(), anchor(drawn.figure)),
            },
            None => Answer {
                question,
                sentence: format!("Not measured yet: posthaste reproduce {}", entry.figure),
                plot: None,
                source: (String::new(), String::new()),
            },
        }
    };
    questions.iter().map(answer).collect()
}

fn cards(drawn: &[Drawn<'_>]) -> Vec<Card> {
    let count = |kind| Count::from_checks(judged(drawn), kind);
    let good = drawn.iter().filter(|drawn| drawn.error.is_none()).count();
    let card = |label: &str, value: String, remark: String| Card {
        label: label.to_owned(),
        value,
        remark,
    };
    let others = |count: Count| {
        let better = match count.better {
            0 => String::new(),
            better => format!("{better} better today, "),
        };
        format!("{better}{} differ", count.differ())
    };
    let [papers, goals] = [CheckKind::Paper, CheckKind::Goal].map(count);
    let mut cards = vec![
        card(
            "Claims of the papers that hold",
            papers.share(),
            others(papers),
        ),
        card(
            "Own goals that are reached",
            goals.share(),
            "figures beyond the papers".to_owned(),
        ),
        card(
            "Checks of the instrument",
            count(CheckKind::Instrument).share(),
            "must hold on any machine".to_owned(),
        ),
        card(
            "Figures drawn",
            format!("{good} of {}", drawn.len()),
            String::new(),
        ),
    ];
    if let Some(manifest) = drawn.iter().find_map(|drawn| drawn.manifest.as_ref()) {
        let Machine { cores, .. } = manifest.machine;
        let value = format!("{cores} {}", if cores == 1 { "core" } else { "cores" });
        cards.push(card("Machine", value, manifest.machine.build()));
    }
    cards
}

/// State of a figure, as a symbol and a word.
fn state(drawn: &Drawn<'_>) -> State {
    let open = |check: &&Check| !check.holds && !check.better;
    if drawn.error.is_some() {
        State::Fail("failed")
    } else if drawn.stopped() {
        State::Pending("stopped early")
    } else if drawn.checks.iter().any(Check::fails_the_run) {
        State::Fail("instrument failed")
    } else if drawn.checks.iter().any(|check| open(&check)) {
        State::Note("differs")
    } else if drawn.checks.iter().all(|check| check.holds) {
        State::Pass("holds")
    } else {
        State::Better("better today")
    }
}

fn heading(figure: &Figure) -> String {
    format!("{}: {}", figure.id, figure.title)
}

/// The address of a figure's section within the page.
fn anchor(figure: &Figure) -> String {
    Section::new(heading(figure)).anchor()
}

/// Explanations and reasons already on the page, each with the id of its figure.
#[derive(Default)]
struct Explanations(Vec<(String, &'static str)>);

impl Explanations {
    /// Returns the reason of a failed check, or a reference to the place with the same one.
    fn reason(&mut self, figure: &Figure, reason: &str) -> String {
        let known = self.0.iter().find(|(text, _)| text == reason);
        match known {
            Some((_, first)) if *first == figure.id => "The same reason as above.".to_owned(),
            Some((_, first)) => format!("Reason: as for {first}."),
            None => {
                self.0.push((reason.to_owned(), figure.id));
                format!("Reason: {reason}")
            }
        }
    }

    /// Returns the explanation, or a reference to the figure with the same one.
    fn explanation(&mut self, figure: &Figure) -> Block {
        let known = self.0.iter().find(|(text, _)| text == figure.differs);
        let text = match known {
            Some((_, first)) => format!("As for {first}."),
            None => {
                self.0.push((figure.differs.to_owned(), figure.id));
                figure.differs.to_owned()
            }
        };
        Block::Labelled("Differences from the paper.".to_owned(), text)
    }
}

fn figure_section(
    collection: &Collection<'_>,
    drawn: &Drawn<'_>,
    explanations: &mut Explanations,
) -> Section {
    let figure = drawn.figure;
    let state = state(drawn);
    let mut section = Section {
        state: Some(state),
        remark: remark(drawn),
        folded: true,
        marked: !matches!(state, State::Pass(_) | State::Better(_)),
        ..Section::new(heading(figure))
    };
    let blocks = &mut section.blocks;
    let label = if collection.goes_beyond(figure) {
        "The goal."
    } else {
        "The paper's claim."
    };
    blocks.push(Block::Labelled(label.to_owned(), figure.claim.to_owned()));
    if let Some(error) = &drawn.error {
        blocks.push(Block::Verdicts(vec![Verdict {
            state: State::Fail("failed"),
            sentence: error.clone(),
            reason: String::new(),
        }]));
    }
    if drawn.stopped() {
        let text = "This run was stopped before it was complete: what follows is what had been measured until then.";
        blocks.push(Block::Text(text.to_owned()));
    }
    blocks.extend(pictures(drawn));
    blocks.extend(verdicts(drawn, explanations));
    blocks.push(explanations.explanation(figure));
    if let Some(manifest) = &drawn.manifest {
        blocks.push(Block::Code(command(manifest)));
        blocks.push(links(drawn));
        let details = vec![Block::Table(particulars(figure, manifest))];
        blocks.push(Block::Details("How it was run".to_owned(), details));
    }
    section
}

/// Counts of claims and goals that hold.
fn remark(drawn: &Drawn<'_>) -> String {
    let share = |kind, name: &str| {
        let count = Count::from_checks(drawn.checks.iter(), kind);
        (count.all > 0).then(|| format!("{} {name}", count.share()))
    };
    let shares = [
        share(CheckKind::Paper, "claims"),
        share(CheckKind::Goal, "goals"),
    ];
    shares.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn pictures(drawn: &Drawn<'_>) -> impl Iterator<Item = Block> {
    let id = drawn.figure.id;
    drawn.plots.iter().enumerate().map(move |(index, plot)| {
        Block::Picture(Picture {
            description: format!("{}. {}", plot.title(), plot.description()),
            wide: format!("{id}/{}", plot_name(index)),
            narrow: format!("{id}/{}", narrow_plot_name(index)),
        })
    })
}

/// Claims and goals are open. The checks of the instrument are collapsed, unless one failed.
fn verdicts(drawn: &Drawn<'_>, explanations: &mut Explanations) -> Vec<Block> {
    let mut of_kind = |kind| -> Vec<Verdict> {
        let checks = drawn.checks.iter().filter(|check| check.kind == kind);
        let verdict = |check| verdict(drawn.figure, check, explanations);
        checks.map(verdict).collect()
    };
    let mut blocks = Vec::new();
    for (kind, label) in [
        (CheckKind::Paper, "Claims of the paper, here."),
        (CheckKind::Goal, "Goals of our own."),
    ] {
        let verdicts = of_kind(kind);
        if !verdicts.is_empty() {
            blocks.push(Block::Labelled(label.to_owned(), String::new()));
            blocks.push(Block::Verdicts(verdicts));
        }
    }
    let instrument = of_kind(CheckKind::Instrument);
    if drawn.checks.iter().any(Check::fails_the_run) {
        blocks.push(Block::Labelled("The instrument.".to_owned(), String::new()));
        blocks.push(Block::Verdicts(instrument));
    } else if !instrument.is_empty() {
        let text = format!("Checks of the instrument: all {} hold", instrument.len());
        blocks.push(Block::Details(text, vec![Block::Verdicts(instrument)]));
    }
    blocks
}

fn verdict(figure: &Figure, check: &Check, explanations: &mut Explanations) -> Verdict {
    let reason = match (
        check.holds || check.kind == CheckKind::Instrument,
        check.reason.as_str(),
    ) {
        (true, _) => String::new(),
        (false, "") => "No reason is known.".to_owned(),
        (false, reason) => explanations.reason(figure, reason),
    };
    Verdict {
        state: match (check.holds, check.kind) {
            (true, _) => State::Pass("holds"),
            (false, CheckKind::Instrument) => State::Fail("does not hold"),
            (false, _) if check.better => State::Better("better today"),
            (false, CheckKind::Paper) => State::Note("differs"),
            (false, CheckKind::Goal) => State::Note("not reached"),
        },
        sentence: check.sentence.clone(),
        reason,
    }
}

/// The command that reproduces this figure.
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
        StudyEnd::Complete => "complete",
        StudyEnd::Stopped => "stopped early",
        StudyEnd::Failed(_) => "failed",
    };
    row("ended", ended.to_owned());
    row(
        "took",
        match manifest.duration_s {
            Some(seconds) => format!("{seconds:.1} s"),
            None => "simulated on another machine".to_owned(),
        },
    );
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

/// Lists the figures of the papers that this release lacks.
fn to_come(collection: &Collection<'_>) -> Option<Section> {
    let mut table = Table::new(["figure", "what it shows", "state"]);
    for planned in collection.missing() {
        table.rows.push(vec![
            Cell::text(planned.id),
            Cell::text(planned.title),
            Cell::text(format!("comes {}", planned.comes)),
        ]);
    }
    if table.rows.is_empty() {
        return None;
    }
    let mut section = Section::new("Not built yet");
    let text = format!("{} figures and tables of the papers", table.rows.len());
    section
        .blocks
        .push(Block::Details(text, vec![Block::Table(table)]));
    Some(section)
}
