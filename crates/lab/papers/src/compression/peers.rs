//! Other proxies for comparison with the gateway, if installed: HAProxy and nginx with their compression.

use std::path::Path;

use posthaste_study::Failure;

use crate::testbed::Testbed;
use crate::testbed::program::Software;
use crate::testbed::proxy::ProxyUnderTest;

/// A third-party proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerProxy {
    /// HAProxy that starts no compression while its thread is idle for less than a fifth of the time.
    Haproxy,
    /// HAProxy that compresses everything.
    HaproxyAll,
    /// HAProxy that compresses nothing.
    HaproxyPlain,
    /// nginx that compresses everything, at level 1.
    NginxGzip,
    /// nginx that compresses nothing.
    NginxPlain,
}

const HAPROXY: &str = "global
  nbthread 1
  maxconn 4000
  {gate}
defaults
  mode http
  timeout connect 1s
  timeout client 30s
  timeout server 30s
  option http-keep-alive
frontend clients
  bind {listen}
  default_backend origins
backend origins
  http-reuse always
  {compression}
  server origin {origin}
";

const NGINX: &str = "worker_processes 1;
daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 16384; }
http {
  access_log off;
  keepalive_requests 1000000000;
  tcp_nodelay on;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream origin { server {origin}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen {listen} backlog=4096;
    gzip {gzip};
    gzip_comp_level 1;
    gzip_types text/xml;
    gzip_proxied any;
    location / {
      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
    }
  }
}
";

impl PeerProxy {
    /// Name in pictures, sentences and records.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Haproxy => "HAProxy, maxcompcpuusage 80",
            Self::HaproxyAll => "HAProxy, gzip",
            Self::HaproxyPlain => "HAProxy, plain",
            Self::NginxGzip => "nginx, gzip",
            Self::NginxPlain => "nginx, plain",
        }
    }

    /// Starts it between generator and origin, with its files in `folder`. `None` if it is not installed.
    pub(super) fn start(
        self,
        testbed: &Testbed,
        folder: &Path,
    ) -> Result<Option<ProxyUnderTest>, Failure> {
        let (software, configuration) = match self {
            Self::Haproxy | Self::HaproxyAll | Self::HaproxyPlain => (Software::Haproxy, HAPROXY),
            Self::NginxGzip | Self::NginxPlain => (Software::Nginx, NGINX),
        };
        let (gate, compression, gzip) = self.compresses();
        let configuration = configuration
            .replace("{gate}", gate)
            .replace("{compression}", compression)
            .replace("{gzip}", gzip);
        let folder = folder.join(format!("{self:?}"));
        let (origin, core) = (testbed.origin.address, testbed.cores.server);
        software.start(&folder, &configuration, origin, core)
    }
}

impl PeerProxy {
    /// Parts of the configuration: HAProxy's CPU limit and compression, and nginx's gzip.
    const fn compresses(self) -> (&'static str, &'static str, &'static str) {
        let haproxy = "compression algo gzip\n  compression type text/xml";
        match self {
            Self::Haproxy => ("maxcompcpuusage 80", haproxy, ""),
            Self::HaproxyAll => ("", haproxy, ""),
            Self::HaproxyPlain => ("", "", ""),
            Self::NginxGzip => ("", "", "on"),
            Self::NginxPlain => ("", "", "off"),
        }
    }
}
