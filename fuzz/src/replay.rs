//! Every corpus, replayed without a fuzzer: what once was found stays mended.

use std::path::Path;

use crate::TARGETS;

/// One test and one thread, since the properties count what the process allocates.
#[test]
fn every_corpus_holds() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (target, property) in TARGETS {
        let folder = corpora.join(target);
        let entries = std::fs::read_dir(&folder).expect("each target has a corpus");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{target} has an empty corpus");
        for file in files {
            let bytes = std::fs::read(&file).expect("a file of the corpus");
            let held = std::panic::catch_unwind(|| property(&bytes));
            assert!(
                held.is_ok(),
                "{target} does not hold for {}",
                file.display()
            );
        }
    }
}

/// A target without a line in TARGETS would be fuzzed and never replayed.
#[test]
fn every_target_is_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets");
    let entries = std::fs::read_dir(folder).expect("there are targets");
    let mut found: Vec<String> = entries
        .filter_map(|entry| entry.expect("a file").file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .collect();
    let mut listed: Vec<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    found.sort();
    listed.sort();
    assert_eq!(found, listed);
}
