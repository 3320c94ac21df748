//! The same doubtful requests to us, to nginx and to HAProxy.
//!
//! The gateway must not forward requests that two servers could read differently. The answers of the others are printed
//! without judgement. They show where we are stricter.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use super::start;
use crate::error::{Outcome, TaskError, check};
use crate::nginx::Nginx;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Time limit for an answer. A proxy that waits for more of the request gives none.
const PATIENCE: Duration = Duration::from_millis(500);

/// A request with fields and a body, followed by a second request that must not be forwarded if the first is doubtful.
struct RequestShape {
    fields: &'static str,
    body: &'static str,
    /// True if readers disagree about it, so that it must not reach an upstream.
    is_doubtful: bool,
}

/// Answers of a proxy to a shape.
struct StrictAnswer {
    statuses: Vec<String>,
    /// True if a reply names nginx. From the gateway it is then the origin's, with any status.
    names_nginx: bool,
}

const fn doubtful(fields: &'static str, body: &'static str) -> RequestShape {
    RequestShape {
        fields,
        body,
        is_doubtful: true,
    }
}

const SHAPES: &[RequestShape] = &[
    RequestShape {
        fields: "Host: s\r\nContent-Length: 5",
        body: "hello",
        is_doubtful: false,
    },
    RequestShape {
        fields: "Host: s\r\nTransfer-Encoding: chunked",
        body: "5\r\nhello\r\n0\r\n\r\n",
        is_doubtful: false,
    },
    doubtful("Host: s\r\nContent-Length: 5\r\nContent-Length: 6", "hello"),
    doubtful("Host: s\r\nContent-Length: 5, 5", "hello"),
    doubtful("Host: s\r\nContent-Length: +5", "hello"),
    doubtful("Host: s\r\nContent-Length: 0x5", "hello"),
    doubtful("Host: s\r\nContent-Length : 5", "hello"),
    doubtful("Host: s\r\nX: 1\r\n Content-Length: 5", "hello"),
    doubtful("Host: s\r\nX: a\rContent-Length: 5", "hello"),
    doubtful("Host: s\r\nTransfer-Encoding: xchunked", "0\r\n\r\n"),
    doubtful("Host: s\r\nTransfer-Encoding: identity", "0\r\n\r\n"),
    doubtful(
        "Host: s\r\nTransfer-Encoding: chunked, identity",
        "0\r\n\r\n",
    ),
    doubtful("Host: s\r\nTransfer-Encoding:\x0bchunked", "0\r\n\r\n"),
    doubtful(
        "Host: s\r\nTransfer-Encoding: chunked",
        "0x5\r\nhello\r\n0\r\n\r\n",
    ),
    doubtful(
        "Host: s\r\nTransfer-Encoding: chunked",
        "5 5\r\nhello\r\n0\r\n\r\n",
    ),
    doubtful(
        "Host: s\r\nTransfer-Encoding: chunked",
        "3\r\nhello\r\n0\r\n\r\n",
    ),
    doubtful("Host: s\r\nTransfer-Encoding: chunked", "5\nhello\n0\n\n"),
    doubtful("Host: s\r\nHost: t\r\nContent-Length: 5", "hello"),
    doubtful("Content-Length: 5", "hello"),
    doubtful("Host: s\r\nX: a\0b\r\nContent-Length: 5", "hello"),
];

/// Sends every shape to every proxy and prints the answers.
pub(crate) fn strict(site: &Site) -> Outcome<()> {
    let origin = Nginx::start(site, "gateway-nginx", false, &[])?;
    let address = origin.server.address;
    let proxies = [
        ("posthaste", start(site, &address.to_string(), "", "")?),
        ("nginx", nginx(site, address)?.0),
        ("haproxy", haproxy(site, address)?.0),
    ];
    let mut wrong = Vec::new();
    for shape in SHAPES {
        let mut results = Vec::new();
        for (name, proxy) in &proxies {
            let answer = answer(proxy, shape)?;
            let statuses = answer.statuses.join("+");
            if *name == "posthaste" && answer.names_nginx == shape.is_doubtful {
                let went = if shape.is_doubtful {
                    "on"
                } else {
                    "no further"
                };
                wrong.push(format!(
                    "{:?} {:?} went {went}: {statuses}",
                    shape.fields, shape.body
                ));
            }
            results.push(format!("{name} {statuses}"));
        }
        println!(
            "  strict: {:?} {:?}: {}",
            shape.fields,
            shape.body,
            results.join(", ")
        );
    }
    check(wrong.is_empty(), || wrong.join("\n"))
}

/// The answer of a proxy on one connection.
fn answer(proxy: &Server, shape: &RequestShape) -> Outcome<StrictAnswer> {
    let failed = |error: std::io::Error| TaskError::Failed(format!("{}: {error}", proxy.address));
    let mut stream = TcpStream::connect(proxy.address).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let request = format!(
        "POST /1k HTTP/1.1\r\n{}\r\n\r\n{}GET /1k HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n",
        shape.fields, shape.body
    );
    // A proxy that refuses may close before reading everything. Its answer counts.
    let _ = stream.write_all(request.as_bytes());
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    let statuses: Vec<String> = text
        .split("HTTP/1.")
        .skip(1)
        .filter_map(|reply| reply.get(2..5))
        .filter(|status| status.bytes().all(|digit| digit.is_ascii_digit()))
        .map(str::to_owned)
        .collect();
    Ok(StrictAnswer {
        statuses: if statuses.is_empty() {
            vec!["none".to_owned()]
        } else {
            statuses
        },
        names_nginx: text.to_ascii_lowercase().contains("server: nginx"),
    })
}

/// Starts nginx in front of `upstream`. Returns it and its address for HTTP/2.
pub(super) fn nginx(site: &Site, upstream: SocketAddr) -> Outcome<(Server, SocketAddr)> {
    let program = tools::debian(&site.checkout, "nginx", "nginx-light")?;
    let folder = site.checkout.peer_folder("gateway-nginx-proxy")?;
    let (address, http2) = (free_address()?, free_address()?);
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let configuration = format!(
        "{user} worker_processes 1; daemon off; pid nginx.pid; error_log stderr crit;
         events {{ worker_connections 1024; }}
         http {{
           access_log off;
           client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
           uwsgi_temp_path uwsgi; scgi_temp_path scgi;
           upstream origin {{ server {upstream}; keepalive 8; }}
           server {{
             listen {address}; listen {http2} http2;
             location / {{
               proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection \"\";
             }}
           }}
         }}"
    );
    tools::write(&folder.join("nginx.conf"), configuration)?;
    let mut command = Command::new(program);
    command.arg("-p").arg(&folder).args(["-c", "nginx.conf"]);
    let server = site.serve("nginx-proxy", command.current_dir(&folder), address)?;
    Ok((server, http2))
}

/// Starts HAProxy in front of `upstream`. Returns it and its address for HTTP/2.
pub(super) fn haproxy(site: &Site, upstream: SocketAddr) -> Outcome<(Server, SocketAddr)> {
    let program = tools::debian(&site.checkout, "haproxy", "haproxy")?;
    let folder = site.checkout.peer_folder("gateway-haproxy")?;
    let (address, http2) = (free_address()?, free_address()?);
    let configuration = format!(
        "global\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 1s\n  timeout client 10s\n  \
         timeout server 10s\nfrontend front\n  bind {address}\n  bind {http2} proto h2\n  default_backend back\nbackend back\n  \
         server origin {upstream}\n"
    );
    let file = folder.join("haproxy.cfg");
    tools::write(&file, configuration)?;
    let mut command = Command::new(program);
    let server = site.serve("haproxy", command.args(["-db", "-f"]).arg(&file), address)?;
    Ok((server, http2))
}
