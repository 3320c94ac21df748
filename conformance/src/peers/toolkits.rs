//! SOAP toolkits of other ecosystems. Each generates its client from the WSDL of the running bookshop.
//!
//! Every client takes the same arguments and prints one line per check: `ok WHAT` or `FAILED WHAT: WHY`. The title of
//! the book is read over JSON, so that the two forms of the service also check each other.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::error::{Outcome, TaskError};
use crate::peers::generators::{first_isbn, get};
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Arguments of a client: the address of the WSDL, and a book.
pub(crate) struct Book {
    wsdl: String,
    pub(crate) isbn: String,
    pub(crate) title: String,
}

impl Book {
    pub(crate) fn first(site: &Site, shop: &Server) -> Outcome<Self> {
        let isbn = first_isbn(site, shop)?;
        let json = get(site, shop, &format!("/json/{isbn}"))?;
        let title = serde_json::from_str(&json)
            .ok()
            .and_then(|reply: Value| Some(reply.pointer("/books/0/title")?.as_str()?.to_owned()))
            .ok_or_else(|| TaskError::Failed(format!("/json/{isbn} has no title: {json}")))?;
        Ok(Self {
            wsdl: shop.url("/soap?wsdl"),
            isbn,
            title,
        })
    }

    /// Runs a client with this book and prints its lines.
    pub(crate) fn ask(&self, site: &Site, name: &str, client: &mut Command) -> Outcome<()> {
        let done = site.run(
            name,
            client.args([&self.wsdl, &self.isbn, &self.title]),
            120,
        )?;
        for line in done.stdout.lines() {
            println!("  {name}: {line}");
        }
        Ok(())
    }
}

/// Python zeep.
pub(crate) fn zeep(site: &Site) -> Outcome<()> {
    let python = tools::python(
        &site.checkout,
        "zeep",
        "conformance/programs/zeep/requirements.txt",
    )?;
    let shop = site.bookshop(&[])?;
    let mut client = Command::new(python);
    client.arg(site.checkout.path("conformance/programs/zeep/client.py"));
    Book::first(site, &shop)?.ask(site, "zeep", &mut client)
}

/// Node's `soap`.
pub(crate) fn node_soap(site: &Site) -> Outcome<()> {
    let folder = tools::node(
        &site.checkout,
        "node-soap",
        "conformance/programs/node-soap",
    )?;
    let shop = site.bookshop(&[])?;
    // Next to its modules, where node searches for them.
    let script = folder.join("client.js");
    tools::copy(
        &site
            .checkout
            .path("conformance/programs/node-soap/client.js"),
        &script,
    )?;
    Book::first(site, &shop)?.ask(site, "node-soap", Command::new("node").arg(script))
}

/// PHP's SoapClient.
pub(crate) fn php(site: &Site) -> Outcome<()> {
    let php = php_with_soap(site)?;
    let shop = site.bookshop(&[])?;
    let mut client = Command::new(&php);
    client.arg(site.checkout.path("conformance/programs/php/client.php"));
    Book::first(site, &shop)?.ask(site, "php", &mut client)
}

/// PHP with SoapClient, installed if necessary.
pub(crate) fn php_with_soap(site: &Site) -> Outcome<PathBuf> {
    let php = tools::debian(&site.checkout, "php", "php-cli")?;
    let has_soap = || {
        Command::new(&php)
            .args(["-r", "exit(class_exists('SoapClient') ? 0 : 1);"])
            .status()
    };
    if !has_soap().is_ok_and(|status| status.success()) {
        tools::install(&site.checkout, "php-soap")?;
    }
    Ok(php)
}

/// CXF: WSDLToJava on the running service's WSDL, javac, run.
pub(crate) fn cxf(site: &Site) -> Outcome<()> {
    let jars = tools::jars(&site.checkout, "cxf", "conformance/programs/cxf/pom.xml")?;
    let shop = site.bookshop(&[])?;
    let book = Book::first(site, &shop)?;
    let folder = site.checkout.peer_folder("cxf")?;
    let (made, classes) = (
        fresh(folder.join("generated"))?,
        fresh(folder.join("classes"))?,
    );
    let path = format!("{}/*", jars.display());
    let mut generate = Command::new("java");
    generate.args(["-cp", &path, "org.apache.cxf.tools.wsdlto.WSDLToJava"]);
    generate
        .args(["-p", "bookshop", "-d"])
        .arg(&made)
        .arg(&book.wsdl);
    site.run("wsdl2java", &mut generate, 120)?;
    let mut compile = Command::new("javac");
    compile.args(["-nowarn", "-cp", &path, "-d"]).arg(&classes);
    compile
        .args(files(&made.join("bookshop"))?)
        .arg(site.checkout.path("conformance/programs/cxf/Client.java"));
    site.run("javac", &mut compile, 120)?;
    let mut client = Command::new("java");
    client
        .arg("-cp")
        .arg(format!("{}:{path}", classes.display()))
        .arg("Client");
    book.ask(site, "cxf", &mut client)
}

/// gSOAP: wsdl2h and soapcpp2 on the running service's WSDL, gcc, run.
pub(crate) fn gsoap(site: &Site) -> Outcome<()> {
    let shop = site.bookshop(&[])?;
    let client = built_with_gsoap(site, &shop, "client")?;
    Book::first(site, &shop)?.ask(site, "gsoap", &mut Command::new(client))
}

/// A gSOAP server for the bookshop's WSDL that answers every BookLite with the bookshop's first book. `wrapper`, such
/// as `taskset`, goes before its command.
pub(crate) fn gsoap_server(site: &Site, shop: &Server, wrapper: &[&str]) -> Outcome<Server> {
    let program = built_with_gsoap(site, shop, "server")?
        .display()
        .to_string();
    let book = Book::first(site, shop)?;
    let address = free_address()?;
    let port = address.port().to_string();
    let source = shop.url("/soap");
    let line = [wrapper, &[program.as_str(), &port, &source, &book.isbn]].concat();
    site.serve(
        "gsoap-server",
        Command::new(line[0]).args(&line[1..]),
        address,
    )
}

/// Generates C from the WSDL and compiles `conformance/programs/gsoap/NAME.c` with it.
fn built_with_gsoap(site: &Site, shop: &Server, name: &str) -> Outcome<PathBuf> {
    tools::debian(&site.checkout, "wsdl2h", "gsoap")?;
    tools::debian(&site.checkout, "gcc", "gcc")?;
    if !Path::new("/usr/include/stdsoap2.h").exists() {
        tools::install(&site.checkout, "libgsoap-dev")?;
    }
    let folder = fresh(site.checkout.peer_folder("gsoap")?.join(name))?;
    let in_folder = |program: &str, arguments: &[&str]| {
        site.run(
            program,
            Command::new(program).args(arguments).current_dir(&folder),
            120,
        )
    };
    in_folder(
        "wsdl2h",
        &["-c", "-o", "bookshop.h", &shop.url("/soap?wsdl")],
    )?;
    in_folder("soapcpp2", &["-c", "-L", "-x", "bookshop.h"])?;
    let source = site
        .checkout
        .path(&format!("conformance/programs/gsoap/{name}.c"))
        .display()
        .to_string();
    let mut compile = vec!["-O2", "-I.", "-o", name, &source, "soapC.c", "soapClient.c"];
    if name == "server" {
        compile.push("soapServer.c");
    }
    compile.push("-lgsoap");
    in_folder("gcc", &compile)?;
    Ok(folder.join(name))
}

/// Recreates the folder, empty.
fn fresh(folder: PathBuf) -> Outcome<PathBuf> {
    // Usually there is one from the last run. If it cannot be removed, creating it fails.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| TaskError::at(&folder, error))?;
    Ok(folder)
}

/// The files in a folder.
fn files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|error| TaskError::at(folder, error))?;
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect())
}
