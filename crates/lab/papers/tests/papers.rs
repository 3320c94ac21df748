//! The collection of figures, through the frame.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::AtomicBool;

use posthaste_papers::COLLECTION;
use posthaste_study::lab::Lab;
use posthaste_study::{Collection, ListedFigure, Options, Silent, reproduce};
use posthaste_units::Seed;

#[test]
fn the_list_has_every_figure_of_the_papers_once() {
    let some = Collection {
        figures: &COLLECTION.figures[..2],
        ..COLLECTION
    };
    let mut ids: Vec<&str> = some
        .list()
        .iter()
        .map(|listed| match listed {
            ListedFigure::Built(figure) => figure.id,
            ListedFigure::Planned(planned) => planned.id,
        })
        .collect();
    assert_eq!(ids.len(), 43);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 43);
}

#[test]
fn the_bytes_of_the_overload_paper_are_counted_for_real() {
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let lab = Lab::Shared("a test".to_owned());
    let options = Options {
        full: false,
        seed: Seed(7),
        commit: None,
        out: dir.path().to_owned(),
        lab: lab.clone(),
        program: None,
        simulated: BTreeMap::new(),
    };
    let chosen = COLLECTION.select(&["overload/fig-05".to_owned()], false);
    let outcome = reproduce(&COLLECTION, &chosen.unwrap(), &options, &stop, &Silent).unwrap();
    assert_eq!(outcome.exit_code(), 0);
    let figure = &outcome.figures[0];
    assert_eq!(
        figure.checks.iter().filter(|check| check.holds).count(),
        figure.checks.len() - 1,
        "{:?}",
        figure.checks
    );
    let manifest = figure.manifest.as_ref().unwrap();
    assert_eq!(manifest.parameters["network"], lab.describe());
    let records = fs::read_to_string(dir.path().join("overload/fig-05/records.csv")).unwrap();
    assert_eq!(records.lines().count(), 4, "{records}");
    assert!(
        fs::read_to_string(outcome.report)
            .unwrap()
            .contains("overload/fig-05")
    );
}
