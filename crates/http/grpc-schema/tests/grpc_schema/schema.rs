//! Schemas: files, descriptor sets, methods by name, messages as JSON.

use posthaste_grpc_schema::{MethodKind, Schema};

use crate::{SHOP, files};

fn shop() -> Schema {
    Schema::compile(&["shop.proto"], files(SHOP)).unwrap()
}

#[test]
fn methods_are_found_with_their_kinds_and_paths() {
    let schema = shop();
    for (name, kind) in [
        ("Get", MethodKind::Unary),
        ("List", MethodKind::ServerStreaming),
        ("Put", MethodKind::ClientStreaming),
        ("Talk", MethodKind::BidirectionalStreaming),
    ] {
        let method = schema.find(&format!("shop.v1.Shop/{name}")).unwrap();
        assert_eq!(method.kind(), kind);
        assert_eq!(method.path(), format!("/shop.v1.Shop/{name}"));
        assert_eq!(method.request_name(), "shop.v1.Request");
        assert_eq!(method.reply_name(), "shop.v1.Reply");
    }
    assert!(schema.find("/shop.v1.Shop/Get").is_ok());
}

#[test]
fn a_name_that_is_not_found_comes_with_the_nearest() {
    let schema = shop();
    for (name, reason) in [
        (
            "shop.v1.Shop/Gett",
            "has no method Gett: the nearest is Get",
        ),
        (
            "shop.v1.Shpo/Get",
            "no service shop.v1.Shpo: the nearest is shop.v1.Shop",
        ),
        ("zzz/Get", "no service zzz: there are shop.v1.Shop"),
        ("shop.v1.Shop/XYZW", "there are Get, List, Put, Talk"),
        ("shop.v1.Shop", "write package.Service/Method"),
        ("shop.v1.Shop/", "write package.Service/Method"),
        ("/Get", "write package.Service/Method"),
        ("shop.v1.Shop/Get/More", "write package.Service/Method"),
        ("", "write package.Service/Method"),
    ] {
        let error = schema.find(name).unwrap_err().to_string();
        assert!(error.contains(reason), "{name}: {error}");
    }
}

#[test]
fn errors_of_files_have_a_place() {
    for (text, position, reason) in [
        (
            "syntax = \"proto3\";\nmessage A {\n  strin a 1;\n}",
            Some((3, 11)),
            "expected",
        ),
        (
            "syntax = \"proto3\";\nmessage A {\n  Absent a = 1;\n}",
            Some((3, 3)),
            "Absent",
        ),
        (
            "syntax = \"proto3\";\nimport \"absent.proto\";",
            Some((2, 1)),
            "absent.proto",
        ),
        (
            "syntax = \"proto3\";\nmessage A { string a = 1; string b = 1; }",
            Some((2, 38)),
            "",
        ),
    ] {
        let compiled = Schema::compile(&["a.proto"], files(&[("a.proto", text)]));
        let error = compiled.unwrap_err();
        assert_eq!(error.file.as_deref(), Some("a.proto"), "{error}");
        assert_eq!(error.position, position, "{error}");
        let (line, column) = position.unwrap();
        let shown = error.to_string();
        assert!(
            shown.starts_with(&format!("a.proto:{line}:{column}: ")),
            "{shown}"
        );
        assert!(shown.contains(reason), "{shown}");
        // The position stands once.
        assert_eq!(shown.matches("a.proto:").count(), 1, "{shown}");
    }
    let error = Schema::compile(&["no.proto"], files(&[])).unwrap_err();
    assert!(error.to_string().contains("no.proto"), "{error}");
    let cycle = files(&[
        ("a.proto", "syntax = \"proto3\"; import \"b.proto\";"),
        ("b.proto", "syntax = \"proto3\"; import \"a.proto\";"),
    ]);
    let error = Schema::compile(&["a.proto"], cycle).unwrap_err();
    assert!(error.to_string().contains("cycle"), "{error}");
}

#[test]
fn a_descriptor_set_is_the_same_schema() {
    let set = shop().pool().encode_to_vec();
    let schema = Schema::from_descriptor_set(&set).unwrap();
    assert_eq!(schema.services().collect::<Vec<_>>(), ["shop.v1.Shop"]);
    assert!(schema.find("shop.v1.Shop/Talk").is_ok());
    assert!(Schema::from_descriptor_set(b"").is_err());
    assert!(Schema::from_descriptor_set(b"\xff\xff\xff").is_err());
    for cut in 1..set.len() {
        // Never a panic, and a set without its end is rarely a schema.
        let _ = Schema::from_descriptor_set(&set[..cut]);
    }
}

#[test]
fn a_descriptor_set_in_an_unknown_syntax_is_refused() {
    let mut set = shop().pool().encode_to_vec();
    let known = b"proto3";
    let places: Vec<usize> = (0..set.len())
        .filter(|at| set[*at..].starts_with(known))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        set[at..at + known.len()].copy_from_slice(b"proto9");
    }
    let error = Schema::from_descriptor_set(&set).unwrap_err();
    assert!(error.to_string().contains("\"proto9\""), "{error}");
}

#[test]
fn a_method_has_the_descriptors_that_it_needs() {
    let method = shop().find("shop.v1.Shop/Talk").unwrap();
    let set = method.descriptor_set();
    let schema = Schema::from_descriptor_set(&set).unwrap();
    let again = schema.find("shop.v1.Shop/Talk").unwrap();
    assert_eq!(again.kind(), method.kind());
    assert_eq!(again.descriptor_set(), set, "one form");
    assert!(set.len() <= shop().pool().encode_to_vec().len());
}

#[test]
fn a_descriptor_set_without_an_import_says_so() {
    let pool = shop().pool().clone();
    let files = || pool.file_descriptor_protos().cloned();
    let without_money = files().filter(|file| file.name() != "parts/money.proto");
    let error = Schema::from_files(without_money).unwrap_err().to_string();
    assert!(error.contains("parts/money.proto"), "{error}");
    // Well-known files are added.
    let without_well_known = files().filter(|file| !file.name().starts_with("google/"));
    assert!(Schema::from_files(without_well_known).is_ok());
}

#[test]
fn json_becomes_messages_and_messages_json() {
    let get = shop().find("shop.v1.Shop/Get").unwrap();
    let bytes = get
        .encode_request(r#"{"isbn": "0306406152", "copies": "3", "kind": "HARD"}"#)
        .unwrap();
    assert_eq!(bytes, b"\x0a\x0a0306406152\x10\x03\x18\x01");
    assert_eq!(get.encode_request("{}").unwrap(), b"");
    let reply = b"\x0a\x02\x08\x07\x1a\x03abc\x20\x05";
    assert_eq!(
        get.decode_reply(reply).unwrap(),
        r#"{"price":{"cents":"7"},"cover":"YWJj","left_over":5}"#
    );
    assert!(get.decode_reply(b"\x0a\x09").is_err());
    let put = shop().find("shop.v1.Shop/Put").unwrap();
    let list = put
        .encode_requests(r#" [{"isbn": "a"}, {"copies": 1}]"#)
        .unwrap();
    assert_eq!(list, [b"\x0a\x01a".to_vec(), b"\x10\x01".to_vec()]);
    assert_eq!(put.encode_requests("{}").unwrap().len(), 1);
    assert_eq!(put.encode_requests("[]").unwrap().len(), 0);
    let sequence = put
        .encode_requests("{\"isbn\": \"a\"}{}\n\n {\"copies\": 1}\n")
        .unwrap();
    assert_eq!(sequence, [&b"\x0a\x01a"[..], b"", b"\x10\x01"]);
}

#[test]
fn wrong_json_has_a_place_and_names_the_message() {
    let get = shop().find("shop.v1.Shop/Get").unwrap();
    let put = shop().find("shop.v1.Shop/Put").unwrap();
    for (json, line, reason) in [
        ("{\n\"isbm\": \"1\"}", 2, "isbm"),
        ("{\n\n\"isbn\": 1}", 3, "expected a string"),
        ("{\"copies\": \"x\"}", 1, ""),
        ("{\"kind\": \"SOFT\"}", 1, "SOFT"),
        ("{} {}", 1, "trailing"),
        ("{", 1, "EOF"),
        ("", 1, "EOF"),
        ("[1]", 1, ""),
    ] {
        let error = get.encode_request(json).unwrap_err();
        assert_eq!(
            (error.line, &*error.message),
            (line, "shop.v1.Request"),
            "{json}: {error}"
        );
        assert!(error.to_string().contains(reason), "{json}: {error}");
        // A stream of requests may have two.
        assert_eq!(put.encode_requests(json).is_ok(), json == "{} {}", "{json}");
    }
    let deep = "[".repeat(100_000);
    assert!(put.encode_requests(&deep).is_err());
    let error = put.encode_requests("[{},\n{\"isbm\": 1}]").unwrap_err();
    assert_eq!(error.line, 2, "{error}");
    for sequence in ["{}\n{\"isbm\": 1}", "{}\n[]", "{}\n,{}", "{}\n{"] {
        let error = put.encode_requests(sequence).unwrap_err();
        assert_eq!(error.line, 2, "{error}");
    }
}
