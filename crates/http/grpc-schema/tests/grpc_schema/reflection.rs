//! Server reflection: the client of this crate against its server, and against servers that answer wrongly.

use posthaste_grpc_schema::Schema;
use posthaste_grpc_schema::reflection::{
    ErrorResponse, ExtensionNumberResponse, ExtensionRequest, FileDescriptorResponse,
    ReflectionAnswer, ReflectionClient, ReflectionError, ReflectionQuestion, ReflectionServer,
    ReflectionStep, ServerReflectionRequest, ServerReflectionResponse,
};
use prost::Message as _;

use crate::{SHOP, files};

fn shop() -> Schema {
    Schema::compile(&["shop.proto"], files(SHOP)).unwrap()
}

fn ask(question: ReflectionQuestion) -> ReflectionAnswer {
    let request = ServerReflectionRequest {
        host: "h".to_owned(),
        message_request: Some(question),
    };
    let response = ReflectionServer::new(&shop()).answer(request.clone());
    assert_eq!(response.valid_host, "h");
    assert_eq!(response.original_request, Some(request));
    response.message_response.unwrap()
}

/// Lets a client fetch a service from a server that answers by `answer`.
fn fetch(
    service: &str,
    mut answer: impl FnMut(ServerReflectionRequest) -> ReflectionAnswer,
) -> Result<(Schema, usize), ReflectionError> {
    let (mut client, mut message) = ReflectionClient::begin(service);
    for turns in 1.. {
        let request = ServerReflectionRequest::decode(&*message).unwrap();
        let response = ServerReflectionResponse {
            message_response: Some(answer(request)),
            ..ServerReflectionResponse::default()
        };
        match client.answer(&response.encode_to_vec())? {
            ReflectionStep::Ask(next) => message = next,
            ReflectionStep::Complete(schema) => return Ok((schema, turns)),
        }
    }
    unreachable!("the loop has no end")
}

#[test]
fn a_client_gets_the_schema_of_a_service() {
    let server = ReflectionServer::new(&shop());
    let answer = |request| server.answer(request).message_response.unwrap();
    let (schema, turns) = fetch("shop.v1.Shop", answer).unwrap();
    assert_eq!(turns, 1, "the imports come with the file");
    let method = schema.find("shop.v1.Shop/Get").unwrap();
    assert!(method.encode_request(r#"{"isbn": "1"}"#).is_ok());
}

#[test]
fn a_client_asks_for_imports_that_a_server_does_not_send() {
    let server = ReflectionServer::new(&shop());
    let answer = |request| match server.answer(request).message_response.unwrap() {
        ReflectionAnswer::Files(mut files) => {
            let last = files.file_descriptor_proto.pop().unwrap();
            files.file_descriptor_proto = vec![last];
            ReflectionAnswer::Files(files)
        }
        other => other,
    };
    let (schema, turns) = fetch("shop.v1.Shop", answer).unwrap();
    assert_eq!(turns, 2, "well-known files are not asked for");
    assert!(schema.find("shop.v1.Shop/Get").is_ok());
}

#[test]
fn an_unknown_service_comes_with_the_nearest_name() {
    let server = ReflectionServer::new(&shop());
    let answer = |request| server.answer(request).message_response.unwrap();
    let error = fetch("shop.v1.Shopp", answer).unwrap_err().to_string();
    assert!(error.contains("the nearest is shop.v1.Shop"), "{error}");
}

#[test]
fn servers_that_answer_wrongly_are_errors() {
    type Answer = fn() -> ReflectionAnswer;
    let cases: &[(&str, Answer, &str)] = &[
        (
            "the error of the second question",
            || {
                ReflectionAnswer::Error(ErrorResponse {
                    error_code: 13,
                    error_message: "down".to_owned(),
                })
            },
            "down (status 13)",
        ),
        (
            "no file",
            || ReflectionAnswer::Files(FileDescriptorResponse::default()),
            "again",
        ),
        (
            "numbers",
            || ReflectionAnswer::ExtensionNumbers(ExtensionNumberResponse::default()),
            "no file",
        ),
        (
            "bytes",
            || {
                ReflectionAnswer::Files(FileDescriptorResponse {
                    file_descriptor_proto: vec![vec![0xff; 3]],
                })
            },
            "no descriptor",
        ),
        (
            "another file",
            || {
                ReflectionAnswer::Files(FileDescriptorResponse {
                    file_descriptor_proto: vec![
                        prost_types::FileDescriptorProto {
                            name: Some("x.proto".to_owned()),
                            dependency: vec!["y.proto".to_owned()],
                            ..Default::default()
                        }
                        .encode_to_vec(),
                    ],
                })
            },
            "again",
        ),
    ];
    for (name, answer, reason) in cases {
        let error = fetch("a.B", |_| answer()).unwrap_err().to_string();
        assert!(error.contains(reason), "{name}: {error}");
    }
    let (mut client, _) = ReflectionClient::begin("a.B");
    assert!(client.answer(b"\xff").is_err());
    assert!(client.answer(b"").is_err());
}

#[test]
fn symbols_of_each_kind_are_found() {
    for symbol in [
        "shop.v1.Shop",
        "shop.v1.Shop.Get",
        "shop.v1.Request",
        "shop.v1.Request.isbn",
        "shop.v1.Kind",
    ] {
        let question = ReflectionQuestion::FileContainingSymbol(symbol.to_owned());
        let ReflectionAnswer::Files(files) = ask(question) else {
            panic!("{symbol} is not found");
        };
        assert_eq!(files.file_descriptor_proto.len(), 3, "with its imports");
    }
    for symbol in [
        "",
        "shop.v1",
        "shop.v1.Shop.Nothing",
        "shop.v1.Request.no",
        "x",
    ] {
        let question = ReflectionQuestion::FileContainingSymbol(symbol.to_owned());
        let ReflectionAnswer::Error(error) = ask(question) else {
            panic!("{symbol} is found");
        };
        assert_eq!(error.error_code, 5);
    }
}

#[test]
fn extensions_are_found_by_their_number() {
    let text = "syntax = \"proto2\"; message A { extensions 100 to 200; } extend A { optional int32 b = 120; }";
    let schema = Schema::compile(&["a.proto"], files(&[("a.proto", text)])).unwrap();
    let server = ReflectionServer::new(&schema);
    let ask = |question| {
        let request = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(question),
        };
        server.answer(request).message_response.unwrap()
    };
    let numbers = ask(ReflectionQuestion::AllExtensionNumbersOfType(
        "A".to_owned(),
    ));
    let wanted = ExtensionNumberResponse {
        base_type_name: "A".to_owned(),
        extension_number: vec![120],
    };
    assert_eq!(numbers, ReflectionAnswer::ExtensionNumbers(wanted));
    for (number, is_known) in [(120, true), (121, false), (-1, false)] {
        let answer = ask(ReflectionQuestion::FileContainingExtension(
            ExtensionRequest {
                containing_type: "A".to_owned(),
                extension_number: number,
            },
        ));
        assert_eq!(
            matches!(answer, ReflectionAnswer::Files(_)),
            is_known,
            "{number}"
        );
    }
}

#[test]
fn a_request_without_a_question_is_answered_with_an_error() {
    let answer = ReflectionServer::new(&shop()).answer(ServerReflectionRequest::default());
    let Some(ReflectionAnswer::Error(error)) = answer.message_response else {
        panic!("{answer:?}");
    };
    assert_eq!(error.error_code, 3);
}
