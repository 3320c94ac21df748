//! Configuration files of other proxies, for [`Software::start`](crate::testbed::program::Software::start).
//!
//! The shop serves 200 requests per second, and clients wait for 200 ms. Each file admits nearly as much, and lets at
//! most about 30 requests (150 ms) wait.

/// Directives of nginx: in `http` and in `location`.
pub(super) struct NginxLimit {
    http: &'static str,
    location: &'static str,
}

/// A leaky bucket for all requests.
pub(super) const LIMIT_REQ: NginxLimit = NginxLimit {
    http: "limit_req_zone $server_name zone=all:1m rate=195r/s;",
    location: "limit_req zone=all burst=20 nodelay;",
};

/// A leaky bucket for the requests that are not important. An empty key is not limited.
pub(super) const LIMIT_REQ_BY_TIER: NginxLimit = NginxLimit {
    http: "map $http_x_tier $unimportant { important \"\"; default all; }
  limit_req_zone $unimportant zone=unimportant:1m rate=95r/s;",
    location: "limit_req zone=unimportant burst=10 nodelay;",
};

/// A limit on requests in process.
pub(super) const LIMIT_CONN: NginxLimit = NginxLimit {
    http: "limit_conn_zone $server_name zone=all:1m;",
    location: "limit_conn all 24;",
};

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
  {http}
  upstream origin { server {origin}; keepalive 256; keepalive_requests 1000000000; }
  server {
    server_name shop;
    listen {listen} backlog=4096;
    location / {
      {location}
      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
    }
  }
}
";

/// Returns the configuration of nginx with this limit. It rejects with 503.
pub(super) fn nginx(limit: &NginxLimit) -> String {
    NGINX
        .replace("{http}", limit.http)
        .replace("{location}", limit.location)
}

/// Two requests at the shop, so that it is never idle. The others wait for at most 150 ms, important ones first.
pub(super) const HAPROXY: &str = "global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout connect 1s
  timeout client 30s
  timeout server 30s
  timeout queue 150ms
  option http-keep-alive
  retries 0
frontend clients
  bind {listen} backlog 4096
  http-request set-priority-class int(1) if { req.hdr(X-Tier) important }
  http-request set-priority-class int(2) unless { req.hdr(X-Tier) important }
  default_backend origins
backend origins
  http-reuse always
  server origin {origin} maxconn 2
";

/// Envoy's gradient controller. Samples and probes are more frequent than by default, because the shop serves 200
/// requests per second.
pub(super) const ADAPTIVE_CONCURRENCY: &str = "- name: envoy.filters.http.adaptive_concurrency
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency
          gradient_controller_config:
            sample_aggregate_percentile: { value: 90 }
            concurrency_limit_params: { concurrency_update_interval: 0.1s }
            min_rtt_calc_params: { jitter: { value: 10 }, interval: 5s, request_count: 20 }";

/// Envoy's admission control by the share of successes. The route's timeout makes a late reply a failure.
pub(super) const ADMISSION_CONTROL: &str = "- name: envoy.filters.http.admission_control
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.http.admission_control.v3.AdmissionControl
          enabled: { default_value: true, runtime_key: admission_control.enabled }
          sampling_window: 2s
          sr_threshold: { default_value: { value: 95 }, runtime_key: admission_control.sr_threshold }
          aggression: { default_value: 1.0, runtime_key: admission_control.aggression }
          success_criteria: { http_criteria: { http_success_status: [{ start: 100, end: 400 }] } }";

const ENVOY: &str = "static_resources:
  listeners:
  - address: { socket_address: { address: 127.0.0.1, port_value: {port} } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: clients
          route_config:
            virtual_hosts:
            - name: all
              domains: [\"*\"]
              routes: [{ match: { prefix: \"/\" }, route: { cluster: origin, timeout: 0.2s } }]
          http_filters:
        {filter}
          - name: envoy.filters.http.router
            typed_config:
              \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: origin
    type: STATIC
    circuit_breakers: { thresholds: [{ max_connections: 16000, max_pending_requests: 16000, max_requests: 16000 }] }
    load_assignment:
      cluster_name: origin
      endpoints:
      - lb_endpoints:
        - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: {origin_port} } } }
";

/// Returns the configuration of Envoy with this filter before its router.
pub(super) fn envoy(filter: &str) -> String {
    ENVOY.replace(
        "        {filter}",
        &format!("          {}", filter.replace('\n', "\n    ")),
    )
}
