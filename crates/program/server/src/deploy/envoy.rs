//! The configuration of Envoy 1.40, as YAML.
//!
//! Fields: the API reference of Envoy v3, and `client_side_weighted_round_robin` for the reports of load. The program writes the
//! text from pieces: each piece is one thing that an operator may look for.

use std::slice;

use super::{command_line::EnvoyFlags, host::Host};

/// A protocol, and what differs with it.
struct Protocol {
    name: &'static str,
    host_port: fn(&Host) -> u16,
    /// The check of a server's health.
    health_check: &'static str,
    /// The failures after which another server may answer.
    retry_on: &'static str,
    /// The failures after which a server has not seen the request, which a sequence allows to repeat.
    retry_on_unseen: &'static str,
    options: &'static str,
    /// Lines by which Envoy asks for the load of the servers.
    reports: &'static str,
    /// Lines of a route by which servers put their load into answers, and clients do not see it.
    report_headers: &'static str,
}

const HTTP: Protocol = Protocol {
    name: "http",
    host_port: |host| host.http,
    health_check: "http_health_check: { path: /v2/health/ready }",
    retry_on: "connect-failure,refused-stream,reset,retriable-status-codes",
    retry_on_unseen: "connect-failure,refused-stream",
    options: "http_protocol_options: {}",
    reports: "",
    report_headers: "
                  request_headers_to_add:
                    - header: { key: endpoint-load-metrics-format, value: TEXT }
                      append_action: OVERWRITE_IF_EXISTS_OR_ADD
                  response_headers_to_remove: [endpoint-load-metrics]",
};

const GRPC: Protocol = Protocol {
    name: "grpc",
    host_port: |host| host.grpc,
    health_check: "grpc_health_check: {}",
    retry_on: "connect-failure,refused-stream,reset,unavailable",
    retry_on_unseen: "connect-failure,refused-stream",
    options: "http2_protocol_options: {}",
    reports: "
                enable_oob_load_report: true
                oob_reporting_period: 1s",
    report_headers: "",
};

/// Returns the configuration.
pub fn configuration(flags: &EnvoyFlags) -> String {
    let mut text = format!(
        "{HEAD}admin:\n  address:\n    socket_address: {{ address: 127.0.0.1, port_value: {} }}\nstatic_resources:\n  listeners:\n",
        flags.admin_port
    );
    text += &listener(&HTTP, flags.http_port, flags);
    text += &listener(&GRPC, flags.grpc_port, flags);
    text += "  clusters:\n";
    for protocol in [&HTTP, &GRPC] {
        text += &cluster(protocol, protocol.name, &by_load(protocol), &flags.hosts, flags);
        text += &sequence_clusters(protocol, flags);
    }
    text
}

/// Returns the clusters of sequences: for each server itself, and all others in its place while it is away.
///
/// One ring of all servers would not do: Envoy builds it anew when a server goes or comes, with other numbers of points, and a
/// sixth of the sequences of the other servers would move.
fn sequence_clusters(protocol: &Protocol, flags: &EnvoyFlags) -> String {
    let all = format!("{}_sequences", protocol.name);
    let mut text = cluster(protocol, &all, BY_SEQUENCE, &flags.hosts, flags);
    for (number, host) in flags.hosts.iter().enumerate() {
        let own = format!("{}_server_{number}", protocol.name);
        text += &cluster(protocol, &own, BY_SEQUENCE, slice::from_ref(host), flags);
        text += &format!(
            r#"    - name: {all}_{number}
      connect_timeout: 1s
      lb_policy: CLUSTER_PROVIDED
      cluster_type:
        name: envoy.clusters.aggregate
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig
          # The second takes the sequences while the first is away.
          clusters: [{own}, {all}]
"#
        );
    }
    text
}

const HEAD: &str = "\
# Servers of Galatea behind Envoy 1.40. Written by `galatea deploy envoy`; docs/fleet.md says how it works.
";

fn listener(protocol: &Protocol, port: u64, flags: &EnvoyFlags) -> String {
    let Protocol { name, retry_on, retry_on_unseen, report_headers, .. } = protocol;
    let EnvoyFlags { address, sequence_header, .. } = flags;
    let buffer = flags.buffer_mb << 20;
    let share = |number| {
        format!(
            "                                - {{ name: {name}_sequences_{number}, weight: 1 }}"
        )
    };
    let shares: Vec<_> = (0..flags.hosts.len()).map(share).collect();
    format!(
        r#"    - name: {name}
      address:
        socket_address: {{ address: "{address}", port_value: {port} }}
      # A request is kept up to this size, so that another server can get it.
      per_connection_buffer_limit_bytes: {buffer}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: {name}
                # Streams may last: the servers have limits of their own.
                stream_idle_timeout: 0s
                route_config:{report_headers}
                  virtual_hosts:
                    - name: {name}
                      domains: ["*"]
                      routes:
                        # Requests of a sequence go to the server that holds its state. None is repeated that a server has seen.
                        - match:
                            prefix: /
                            headers:
                              - name: {sequence_header}
                                present_match: true
                          route:
                            # The hash of the header chooses a server among all, whether it is there or not.
                            weighted_clusters:
                              use_hash_policy: true
                              clusters:
{shares}
                            timeout: 0s
                            hash_policy:
                              - header: {{ header_name: {sequence_header} }}
                            retry_policy: {sequence_retries}
                        - match: {{ prefix: / }}
                          route:
                            cluster: {name}
                            timeout: 0s
                            retry_policy: {retries}
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
"#,
        shares = shares.join("\n"),
        sequence_retries = retries(retry_on_unseen, flags.retries, NEXT_CLUSTER),
        retries = retries(retry_on, flags.retries, &another_host(flags.try_timeout)),
    )
}

/// Lines of a policy of retries: the next one goes to the cluster that stands in for the server.
const NEXT_CLUSTER: &str = "
                              retry_priority:
                                name: envoy.retry_priorities.previous_priorities
                                typed_config:
                                  \"@type\": type.googleapis.com/envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig
                                  update_frequency: 1";

/// Returns lines of a policy of retries: the next one goes to a server that has not tried yet, at the latest after so many
/// seconds without a byte of the answer; 0: a server may take as long as it likes.
fn another_host(seconds: u64) -> String {
    let timeout = match seconds {
        0 => String::new(),
        seconds => format!("
                              # Longer than a model may compute: a server that is silent for so long hangs.
                              per_try_idle_timeout: {seconds}s"),
    };
    format!(
        "{timeout}
                              retry_host_predicate:
                                - name: envoy.retry_host_predicates.previous_hosts
                                  typed_config:
                                    \"@type\": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate
                              host_selection_retry_max_attempts: 5"
    )
}

/// Returns a policy of retries that ends with the lines `more`.
fn retries(retry_on: &str, count: u64, more: &str) -> String {
    format!(
        "
                              retry_on: {retry_on}
                              # A server that is full or drains answers 503.
                              retriable_status_codes: [503]
                              num_retries: {count}{more}"
    )
}

fn cluster(
    protocol: &Protocol,
    name: &str,
    policy: &str,
    hosts: &[Host],
    flags: &EnvoyFlags,
) -> String {
    let kind = match hosts.iter().all(Host::is_ip) {
        true => "STATIC",
        false => "STRICT_DNS",
    };
    let Protocol { health_check, options, .. } = protocol;
    let buffer = flags.buffer_mb << 20;
    let hosts: String = hosts.iter().map(|host| endpoint(protocol, host)).collect();
    format!(
        r#"    - name: {name}
      type: {kind}
      connect_timeout: 1s
      per_connection_buffer_limit_bytes: {buffer}
      load_balancing_policy:
        policies:
          - typed_extension_config:
{policy}
      health_checks:
        - timeout: 1s
          interval: 1s
          no_traffic_interval: 1s
          unhealthy_threshold: 2
          healthy_threshold: 1
          {health_check}
      # A server whose answers fail gets no requests for ten seconds, longer each time.
      outlier_detection:
        interval: 1s
        base_ejection_time: 10s
        max_ejection_percent: 50
        consecutive_5xx: 5
        consecutive_gateway_failure: 3
        enforcing_consecutive_gateway_failure: 100
        split_external_local_origin_errors: true
        consecutive_local_origin_failure: 2
      common_lb_config:
        # Never send to a server that is not ready.
        healthy_panic_threshold: {{ value: 0 }}
      circuit_breakers:
        thresholds:
          - max_connections: 65536
            max_pending_requests: 65536
            max_requests: 65536
            max_retries: 1024
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config:
            {options}
      load_assignment:
        cluster_name: {name}
        endpoints:
          - lb_endpoints:
{hosts}"#
    )
}

fn endpoint(protocol: &Protocol, host: &Host) -> String {
    let (address, port) = (&host.address, (protocol.host_port)(host));
    format!(
        "              - endpoint: {{ address: {{ socket_address: {{ address: \"{address}\", port_value: {port} }} }} }}\n"
    )
}

/// Returns the policy that gives each server a share by the load that it reports.
fn by_load(protocol: &Protocol) -> String {
    format!(
        r#"              name: envoy.load_balancing_policies.client_side_weighted_round_robin
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin
                blackout_period: 1s
                weight_expiration_period: 10s
                weight_update_period: 1s{}"#,
        protocol.reports
    )
}

const BY_SEQUENCE: &str = r#"              name: envoy.load_balancing_policies.ring_hash
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash"#;
