//! Every corpus, replayed without a fuzzer: what once was found stays mended.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::TARGETS;
use crate::corpus::{Corpus, load, pack, unpack};

/// One test and one thread at a time, since the properties count what the process allocates.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn every_corpus_holds() {
    let _alone = alone();
    for (target, property) in TARGETS {
        let corpus = load(target).unwrap_or_else(|error| panic!("{error}"));
        for (name, input) in corpus {
            let held = std::panic::catch_unwind(|| property(&input));
            assert!(held.is_ok(), "{target} does not hold for {name}");
        }
    }
}

/// The names of the files in `folder` of the crate that end with `extension`, without it.
fn names(folder: &str, extension: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(folder).expect("the crate has this folder");
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.expect("a file").file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(extension).map(str::to_owned))
        .collect();
    names.sort();
    names
}

/// A target without a line in TARGETS would be fuzzed and never replayed, a corpus without a target would not be used.
#[test]
fn every_target_and_every_corpus_is_listed() {
    let _alone = alone();
    let mut listed: Vec<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    listed.sort();
    assert_eq!(names("fuzz_targets", ".rs"), listed);
    assert_eq!(names("corpus", ".tar"), listed);
}

#[test]
fn an_archive_in_another_form_is_rejected() {
    let _alone = alone();
    let corpus: Corpus = [("a", "1"), ("b", "22")]
        .map(|(name, input)| (name.into(), input.into()))
        .into();
    let packed = pack(&corpus).expect("names of files");
    assert_eq!(unpack(&packed).expect("as packed"), corpus);

    for length in 0..packed.len() {
        assert!(unpack(&packed[..length]).is_err(), "cut off at {length}");
    }
    // Each entry has a block of 512 bytes with its name, and one with its input.
    let (first, rest) = packed.split_at(1024);
    let (second, end) = rest.split_at(1024);
    for parts in [[second, first, end], [first, first, end], [end, end, end]] {
        assert!(unpack(&parts.concat()).is_err(), "another order");
    }
    let mut damaged = packed.clone();
    damaged[0] ^= 1;
    assert!(unpack(&damaged).is_err(), "another name");

    for name in ["", "..", "a/b"] {
        let corpus = Corpus::from([(name.into(), Vec::new())]);
        assert!(pack(&corpus).is_err(), "{name:?}");
    }
    assert!(pack(&Corpus::new()).is_err(), "no inputs");
}
