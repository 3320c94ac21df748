//! The examples of RFC 7541, appendix C, and invalid blocks.

use posthaste_http::streams::http2::hpack::{BlockDecoder, HpackError};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn decoded(decoder: &mut BlockDecoder, block: &[u8]) -> Result<Vec<String>, HpackError> {
    let mut fields = Vec::new();
    decoder.decode(block, |field| {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        fields.push(format!("{}: {}", text(field.name), text(field.value)));
    })?;
    Ok(fields)
}

/// Decodes blocks of one connection and compares their fields.
fn check(blocks: &[(&str, &[&str])]) {
    let mut decoder = BlockDecoder::default();
    for (block, fields) in blocks {
        assert_eq!(decoded(&mut decoder, &bytes(block)).unwrap(), *fields);
    }
}

#[test]
fn single_fields() {
    // C.2.
    check(&[
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            &["custom-key: custom-header"],
        ),
        (
            "040c 2f73 616d 706c 652f 7061 7468",
            &[":path: /sample/path"],
        ),
        (
            "1008 7061 7373 776f 7264 0673 6563 7265 74",
            &["password: secret"],
        ),
        ("82", &[":method: GET"]),
        ("be", &["custom-key: custom-header"]),
    ]);
}

const REQUESTS: [&[&str]; 3] = [
    &[
        ":method: GET",
        ":scheme: http",
        ":path: /",
        ":authority: www.example.com",
    ],
    &[
        ":method: GET",
        ":scheme: http",
        ":path: /",
        ":authority: www.example.com",
        "cache-control: no-cache",
    ],
    &[
        ":method: GET",
        ":scheme: https",
        ":path: /index.html",
        ":authority: www.example.com",
        "custom-key: custom-value",
    ],
];

#[test]
fn requests_without_huffman_code() {
    // C.3.
    check(&[
        (
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            REQUESTS[0],
        ),
        ("8286 84be 5808 6e6f 2d63 6163 6865", REQUESTS[1]),
        (
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
            REQUESTS[2],
        ),
    ]);
}

#[test]
fn requests_with_huffman_code() {
    // C.4.
    check(&[
        ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", REQUESTS[0]),
        ("8286 84be 5886 a8eb 1064 9cbf", REQUESTS[1]),
        (
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
            REQUESTS[2],
        ),
    ]);
}

const REPLIES: [&[&str]; 3] = [
    &[
        ":status: 302",
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:21 GMT",
        "location: https://www.example.com",
    ],
    &[
        ":status: 307",
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:21 GMT",
        "location: https://www.example.com",
    ],
    &[
        ":status: 200",
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:22 GMT",
        "location: https://www.example.com",
        "content-encoding: gzip",
        "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
    ],
];

/// The update of the table size to 256 bytes that the examples of replies assume.
const SIZE_256: &str = "3fe101";

#[test]
fn replies_with_evictions_without_huffman_code() {
    // C.5.
    let first = format!(
        "{SIZE_256} 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
         2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d"
    );
    check(&[
        (&first, REPLIES[0]),
        ("4803 3330 37c1 c0bf", REPLIES[1]),
        (
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 \
             5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 \
             5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
            REPLIES[2],
        ),
    ]);
}

#[test]
fn replies_with_evictions_and_huffman_code() {
    // C.6.
    let first = format!(
        "{SIZE_256} 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
         2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3"
    );
    check(&[
        (&first, REPLIES[0]),
        ("4883 640e ffc1 c0bf", REPLIES[1]),
        (
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad \
             94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 \
             65c0 03ed 4ee5 b106 3d50 07",
            REPLIES[2],
        ),
    ]);
}

#[test]
fn invalid_blocks_are_rejected() {
    for (block, error) in [
        ("80", HpackError::Index),
        ("be", HpackError::Index),
        ("ffff ffff ff0f", HpackError::Integer),
        ("7e00", HpackError::Index),
        ("ff", HpackError::Cut),
        ("00", HpackError::Cut),
        ("0003 6162", HpackError::Cut),
        ("0001 6105 61", HpackError::Cut),
        ("0001 6181 00", HpackError::Huffman),
        ("0001 6184 ffff ffff", HpackError::Huffman),
        ("007f ffff ff07", HpackError::String),
        ("3fe2 1f", HpackError::TableSize),
        ("8220", HpackError::TableSize),
        ("2020 20", HpackError::TableSize),
    ] {
        let result = decoded(&mut BlockDecoder::default(), &bytes(block));
        assert_eq!(result, Err(error), "{block}");
    }
}

#[test]
fn a_smaller_table_forgets_and_a_larger_one_does_not_remember() {
    let mut decoder = BlockDecoder::default();
    let mut decode = |hex: &str| decoded(&mut decoder, &bytes(hex));
    decode("4001 6101 62").unwrap();
    assert_eq!(decode("be").unwrap(), ["a: b"]);
    assert_eq!(decode("3f01 3fe1 1f be").unwrap_err(), HpackError::Index);
    // A name of an entry that its own insertion evicts stays readable.
    decode("3f03 4001 6101 62").unwrap();
    assert_eq!(decode("7e01 63").unwrap(), ["a: c"]);
    assert_eq!(decode("be").unwrap(), ["a: c"]);
    assert_eq!(decode("bf").unwrap_err(), HpackError::Index);
}
