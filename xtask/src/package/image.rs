//! The OCI images, made without any image registry: libc from Debian, the binary, certificates and a user.
//!
//! `packaging/oci/Containerfile` makes an equivalent image online. Here mmdebstrap extracts three packages, and umoci
//! makes the layer and the configuration. The certificates are those of a root in which Debian's own scripts ran.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::built::BuildVariant;
use super::root::{Root, STABLE};
use super::{Made, Packages, VERSION};
use crate::error::{Outcome, TaskError};
use crate::tools::{self, copy, write};

/// User and group of the image, as numbers, because Kubernetes checks `runAsNonRoot` by number.
const OWNER: &str = "65532:65532";

/// Certificates trusted by the system, in one file.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// The installation of an image, for the table of packages.
pub(super) const UNPACKED: &str = "`umoci unpack`, its user and entry point";

/// Makes it, unpacks it like a runtime, and uses it with its own entry point and user.
pub(super) fn make(packages: &Packages) -> Outcome<Made> {
    let image = assemble(packages, BuildVariant::Complete)?;
    let root = Root::at(packages, image.root, "the image alone")?;
    root.using_as(&image.owner, &image.file, UNPACKED, &image.entry)
}

/// An image, unpacked like by a runtime.
pub(super) struct Image {
    pub(super) file: PathBuf,
    /// The unpacked file system.
    pub(super) root: PathBuf,
    /// The program and its user, as configured.
    pub(super) entry: String,
    pub(super) owner: String,
}

/// Makes the image of a build and unpacks it.
pub(super) fn assemble(packages: &Packages, variant: BuildVariant) -> Outcome<Image> {
    let name = match variant {
        BuildVariant::Complete => "posthaste",
        BuildVariant::Gateway => "posthaste-gateway",
    };
    let umoci = tools::debian(&packages.checkout, "umoci", "umoci")?;
    let folder = packages.empty("image")?;
    let layer = layer(packages, variant, &folder)?;
    let tag = folder.join("layout:latest").display().to_string();
    let umoci = |arguments: &[&str]| {
        let mut command = Command::new(&umoci);
        command.args(arguments);
        packages.run("umoci", &mut command, 120)
    };
    umoci(&[
        "init",
        "--layout",
        &folder.join("layout").display().to_string(),
    ])?;
    umoci(&["new", "--image", &tag])?;
    umoci(&["raw", "add-layer", "--image", &tag, &layer])?;
    let title = format!("--config.label=org.opencontainers.image.title={name}");
    let version = format!("--config.label=org.opencontainers.image.version={VERSION}");
    umoci(&[
        "config",
        "--image",
        &tag,
        "--config.user",
        OWNER,
        "--config.entrypoint",
        "posthaste",
        "--architecture=amd64",
        "--os=linux",
        &title,
        &version,
    ])?;
    let file = packages
        .folder
        .join(format!("{name}-{VERSION}-x86_64.oci.tar"));
    pack(packages, &folder.join("layout"), &file)?;

    let bundle = folder.join("bundle");
    umoci(&["unpack", "--image", &tag, &bundle.display().to_string()])?;
    let (entry, owner) = configured(&bundle.join("config.json"))?;
    Ok(Image {
        file,
        root: bundle.join("rootfs"),
        entry,
        owner,
    })
}

/// The file system of the image as an archive.
fn layer(packages: &Packages, variant: BuildVariant, folder: &Path) -> Outcome<String> {
    let binary = &packages.built(variant)?.binary;
    let mmdebstrap = tools::debian(&packages.checkout, "mmdebstrap", "mmdebstrap")?;
    let root = folder.join("root");
    let mut extract = Command::new(mmdebstrap);
    extract
        .args(["--variant=extract", "--include=base-files,netbase,libc6"])
        .arg("bookworm")
        .arg(&root);
    packages.run("mmdebstrap", &mut extract, 300)?;
    let stable = Root::fresh(packages, &STABLE)?;
    for inside in ["etc/ssl/certs", "usr/bin", "tmp"] {
        let path = root.join(inside);
        std::fs::create_dir_all(&path).map_err(|error| TaskError::at(&path, error))?;
    }
    copy(
        &stable.folder().join(CERTIFICATES),
        &root.join(CERTIFICATES),
    )?;
    copy(binary, &root.join("usr/bin/posthaste"))?;
    write(
        &root.join("etc/passwd"),
        format!("root:x:0:0::/:/sbin/nologin\nposthaste:x:{OWNER}::/:/sbin/nologin\n"),
    )?;
    write(&root.join("etc/group"), "root:x:0:\nposthaste:x:65532:\n")?;
    // Lists and caches of apt are useless without apt.
    for left in ["var/lib/apt", "var/cache", "etc/apt", "usr/share/doc"] {
        let _ = std::fs::remove_dir_all(root.join(left));
    }
    let layer = folder.join("layer.tar");
    pack(packages, &root, &layer)?;
    Ok(layer.display().to_string())
}

/// Packs the content of `folder`, without the devices that a runtime makes itself.
fn pack(packages: &Packages, folder: &Path, file: &Path) -> Outcome<()> {
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--sort=name",
        "--numeric-owner",
        "--exclude=./dev/*",
    ])
    .arg("--directory")
    .arg(folder)
    .arg("--file")
    .arg(file)
    .arg(".");
    packages.run("tar", &mut tar, 120).map(drop)
}

/// Program and user in the configuration of the unpacked image.
fn configured(file: &Path) -> Outcome<(String, String)> {
    let text = std::fs::read_to_string(file).map_err(|error| TaskError::at(file, error))?;
    let config: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| TaskError::at(file, error))?;
    let process = &config["process"];
    let entry = process["args"][0].as_str();
    let user = &process["user"];
    match (entry, user["uid"].as_u64(), user["gid"].as_u64()) {
        (Some(entry), Some(uid), Some(gid)) if uid != 0 => {
            Ok((entry.to_owned(), format!("{uid}:{gid}")))
        }
        _ => Err(TaskError::at(
            file,
            format!("has not the user {OWNER}: {process}"),
        )),
    }
}
