//! Installation of the tools that only peers need: Node, Java, Go and optimised Rust programs.

use std::path::PathBuf;
use std::process::Command;

use posthaste_harness::tools::{BUILD, DOWNLOAD, cargo_install, made_from, missing};

use crate::checkout::Checkout;
use crate::error::{Outcome, TaskError};
use crate::process;

pub(crate) use posthaste_harness::tools::{
    cargo, copy, debian, download, find, first_in_path, install, made, python, write,
};

/// A folder with the `node_modules` of a package.json and its lock in `source`.
pub(crate) fn node(checkout: &Checkout, name: &str, source: &str) -> Outcome<PathBuf> {
    debian(checkout, "node", "nodejs")?;
    debian(checkout, "npm", "npm")?;
    let folder = checkout.peer_folder(name)?;
    let logs = checkout.peer_folder("logs")?;
    let cache = checkout.peer_folder("npm-cache")?;
    let lock = checkout.path(source).join("package-lock.json");
    made_from(&lock, &folder.join("node_modules"), || {
        for file in ["package.json", "package-lock.json"] {
            copy(&checkout.path(source).join(file), &folder.join(file))?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--cache"])
            .arg(&cache)
            .current_dir(&folder);
        process::run("npm", &mut npm, DOWNLOAD, &logs)
            .map(drop)
            .map_err(|error| missing(source, &error))
    })?;
    Ok(folder)
}

/// A folder with the jars that the pom.xml at `pom` lists, and a JDK to run them.
pub(crate) fn jars(checkout: &Checkout, name: &str, pom: &str) -> Outcome<PathBuf> {
    debian(checkout, "javac", "default-jdk-headless")?;
    debian(checkout, "mvn", "maven")?;
    let jars = checkout.peer_folder(name)?.join("jars");
    let logs = checkout.peer_folder("logs")?;
    let repository = checkout.peer_folder("maven")?;
    let pom = checkout.path(pom);
    made_from(&pom, &jars, || {
        let mut maven = Command::new("mvn");
        maven
            .args(["--batch-mode", "--quiet", "--file"])
            .arg(&pom)
            .arg(format!("-Dmaven.repo.local={}", repository.display()))
            .arg("org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", jars.display()));
        process::run("maven", &mut maven, DOWNLOAD, &logs)
            .map(drop)
            .map_err(|error| missing("the jars of pom.xml", &error))
    })?;
    Ok(jars)
}

/// The program of this Go module (`path@version`).
pub(crate) fn go(checkout: &Checkout, name: &str, module: &str) -> Outcome<PathBuf> {
    let go = debian(checkout, "go", "golang-go")?;
    let folder = checkout.peer_folder(name)?.join("bin");
    let logs = checkout.peer_folder("logs")?;
    made(module.as_bytes(), &folder, || {
        eprintln!("  getting {module} with go install");
        let mut install = Command::new(go);
        install.args(["install", module]).env("GOBIN", &folder);
        process::run("go", &mut install, DOWNLOAD, &logs)
            .map(drop)
            .map_err(|error| missing(module, &error))
    })?;
    let path = module.split('@').next().unwrap_or(module);
    Ok(folder.join(path.rsplit('/').next().unwrap_or(path)))
}

/// The program of the Go module in the folder `source` of the checkout.
pub(crate) fn go_built(checkout: &Checkout, name: &str, source: &str) -> Outcome<PathBuf> {
    let go = debian(checkout, "go", "golang-go")?;
    let source = checkout.path(source);
    let folder = checkout.peer_folder(name)?.join("bin");
    let logs = checkout.peer_folder("logs")?;
    let mut wanted = Vec::new();
    for file in ["go.mod", "go.sum", "main.go"] {
        let path = source.join(file);
        wanted.extend(std::fs::read(&path).map_err(|error| TaskError::at(&path, error))?);
    }
    let program = folder.join(name);
    made(&wanted, &folder, || {
        eprintln!("  building {} with go", source.display());
        let mut build = Command::new(go);
        build
            .args(["build", "-trimpath", "-o"])
            .arg(&program)
            .current_dir(&source);
        process::run("go", &mut build, BUILD, &logs)
            .map(drop)
            .map_err(|error| missing(name, &error))
    })?;
    Ok(program)
}

/// The program of this crate of the registry, built with the crate's own release profile, for a program whose cost is measured.
pub(crate) fn cargo_optimised(
    checkout: &Checkout,
    name: &str,
    version: &str,
    features: &str,
) -> Outcome<PathBuf> {
    let wanted = format!("{name} {version} {features} optimised");
    cargo_install(checkout, &wanted, [name, version, features], &[])
}
