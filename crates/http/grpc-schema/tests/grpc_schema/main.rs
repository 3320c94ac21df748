//! The crate from outside: schemas, JSON, reflection between its two sides.

mod reflection;
mod schema;

use std::collections::BTreeMap;

/// Files by name.
fn files(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    texts.iter().map(owned).collect()
}

/// A service with a method of each kind, whose messages are in another file.
const SHOP: &[(&str, &str)] = &[
    (
        "shop.proto",
        r#"syntax = "proto3";
package shop.v1;
import "parts/money.proto";
import "google/protobuf/timestamp.proto";
service Shop {
  rpc Get(Request) returns (Reply);
  rpc List(Request) returns (stream Reply);
  rpc Put(stream Request) returns (Reply);
  rpc Talk(stream Request) returns (stream Reply);
}
message Request { string isbn = 1; int64 copies = 2; Kind kind = 3; }
enum Kind { PAPER = 0; HARD = 1; }
message Reply { parts.Money price = 1; google.protobuf.Timestamp at = 2; bytes cover = 3; int32 left_over = 4; }
"#,
    ),
    (
        "parts/money.proto",
        "syntax = \"proto3\"; package parts; message Money { uint64 cents = 1; }",
    ),
];
