//! The fields by which a client says what it wants: nothing is allocated, case does not matter, what is
//! added to refuse a coding refuses it, and a reading contradicts itself nowhere.

use posthaste_compression::{
    Accept, Coding, Codings, FULL, Media, Origin, Prefer, Preference, Wish, forbids_transform,
    is_coded, saves_data,
};

use crate::within;

/// Any bytes as lines of Accept-Encoding, Prefer, Save-Data, Cache-Control, and as one Content-Type.
pub fn wishes(bytes: &[u8]) {
    let lines = || bytes.split(|byte| *byte == b'\n');
    let (accept, prefer) = within("fields", 0, 0, 0, || {
        let _ = (forbids_transform(lines()), is_coded(lines()));
        let _ = Media::from_content_type(Some(bytes));
        (Accept::read(lines()), Prefer::read(lines()))
    });
    consistent(&accept);
    refusable(bytes);
    let shouted = bytes.to_ascii_uppercase();
    let shouted = || shouted.split(|byte| *byte == b'\n');
    assert_eq!(Accept::read(shouted()), accept, "case does not matter");
    assert_eq!(Prefer::read(shouted()), prefer, "case does not matter");
    assert_eq!(saves_data(shouted()), saves_data(lines()));
    assert!(!prefer.unknown || prefer.compression.is_none());
    assert_ne!(prefer.compression, Some(Wish::Unstated));

    let saves = saves_data(lines());
    let found = Preference::from_sources(None, &accept, &prefer, saves, None, Wish::Unstated);
    assert_eq!(found.origin == Origin::Route, found.wish == Wish::Unstated);
}

fn consistent(accept: &Accept) {
    assert!(accept.is_present() && accept.identity() <= FULL);
    assert!(!(accept.refuses() && accept.demands()));
    let best = accept.best(Codings::ALL);
    for coding in Coding::ALL {
        let quality = accept.quality(coding);
        assert!(quality <= FULL);
        assert!(!best.has(coding) || quality > 0);
        let alone = accept.best(Codings::default().with(coding));
        assert_eq!(alone.has(coding), quality > 0);
        assert!(
            Coding::ALL
                .into_iter()
                .all(|other| { !best.has(coding) || accept.quality(other) <= quality })
        );
    }
    assert!(!accept.demands() || !best.is_empty());
}

/// One more line that refuses a coding refuses it, whatever stood before.
fn refusable(bytes: &[u8]) {
    for coding in Coding::ALL {
        let line = format!("{};q=0", coding.token());
        let lines = bytes.split(|byte| *byte == b'\n');
        let refused = Accept::read(lines.chain([line.as_bytes()]));
        assert_eq!(refused.quality(coding), 0);
    }
}
