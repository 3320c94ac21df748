//! grpcio for Python and grpcurl as clients of the bookshop's gRPC. Both know its messages from server reflection only.

use std::process::Command;

use crate::error::{Outcome, check};
use crate::nginx::certificate;
use crate::peers::toolkits::Book;
use crate::site::Site;
use crate::tools;

const GRPCURL: &str = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3";

/// Every kind of method, statuses, deadlines, health and both versions of reflection, plain and over TLS.
pub(crate) fn grpcio(site: &Site) -> Outcome<()> {
    let python = tools::python(
        &site.checkout,
        "grpc-bookshop",
        "conformance/programs/grpc-bookshop/requirements.txt",
    )?;
    let folder = site.checkout.peer_folder("grpc-bookshop/tls")?;
    let certificate = certificate(site, &folder)?;
    let key = certificate.with_file_name("key.pem");
    let files = [&certificate, &key].map(|file| file.display().to_string());
    let shop = site.bookshop(&[])?;
    let secure = site.bookshop(&["--cert", &files[0], "--key", &files[1]])?;
    let book = Book::first(site, &shop)?;
    let mut client = Command::new(python);
    client
        .arg(
            site.checkout
                .path("conformance/programs/grpc-bookshop/client.py"),
        )
        .args([shop.address.to_string(), secure.address.to_string()])
        .arg(&certificate)
        .args([&book.isbn, &book.title]);
    let done = site.run("grpc-bookshop", &mut client, 300)?;
    for line in done.stdout.lines() {
        println!("  grpc-bookshop: {line}");
    }
    Ok(())
}

/// Lists, describes and calls the service by reflection.
pub(crate) fn grpcurl(site: &Site) -> Outcome<()> {
    let program = tools::go(&site.checkout, "grpcurl", GRPCURL)?;
    let shop = site.bookshop(&[])?;
    let book = Book::first(site, &shop)?;
    let address = shop.address.to_string();
    let request = format!("{{\"isbn\": \"{}\"}}", book.isbn);
    let order = format!("{{\"isbn\": \"{}\", \"copies\": 1}}", book.isbn);
    let lines = order.repeat(3);
    let method = |name: &str| format!("bookshop.v1.Bookshop/{name}");
    let names = ["GetBook", "ListBooks", "PlaceOrder", "QuoteLines"].map(method);
    let title = serde_json::Value::from(book.title.as_str()).to_string();
    for (arguments, wanted, count) in [
        (vec![&*address, "list"], "bookshop.v1.Bookshop", 1),
        (
            vec![&*address, "describe", "bookshop.v1.Size"],
            "SIZE_HEAVY5 = 6",
            1,
        ),
        (vec!["-d", &request, &address, &names[0]], &title, 1),
        (vec!["-d", &request, &address, &names[1]], "\"number\"", 10),
        (vec!["-d", &lines, &address, &names[2]], "\"lines\": 3", 1),
        (vec!["-d", &lines, &address, &names[3]], "\"number\"", 3),
    ] {
        let mut command = Command::new(&program);
        command.arg("-plaintext").args(&arguments);
        let done = site.run("grpcurl", &mut command, 60)?;
        let found = done.stdout.matches(wanted).count();
        check(found == count, || {
            format!(
                "grpcurl {arguments:?}: {wanted} {found} times: {}",
                done.stdout
            )
        })?;
    }
    Ok(())
}
