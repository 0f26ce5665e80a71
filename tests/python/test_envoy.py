"""Envoy 1.40 in front of servers that tell it their load, in answers and outside of them."""

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

import clients
import envoy
import servers
import tiers
import waiting
from repositories import identity_config, write_model

pytestmark = [tiers.peers, envoy.needed]



def slow_config(ms):
    delay = f'parameters {{ key: "execute_delay_ms" value {{ string_value: "{ms}" }} }}\n'
    return identity_config(more=delay + "instance_group [ { count: 1 } ]\n")


@pytest.fixture
def fleet(tmp_path):
    """Three servers of the same model, which takes ten times as long on the last."""
    running = []
    try:
        for number, ms in enumerate((2, 2, 20)):
            folder = tmp_path / str(number)
            write_model(folder, "vector", "galatea", "identity", slow_config(ms))
            running.append(servers.galatea(folder, "--send-load-reports=always"))
        yield running
    finally:
        for server in running:
            server.stop()


def policy(**more):
    return envoy.by_load(blackout_period="0.1s", weight_update_period="0.1s", **more)


def config(addresses, is_http2, balanced, headers=()):
    return {"static_resources": {
        "listeners": [envoy.listener("front", "servers", headers)],
        "clusters": [envoy.cluster("servers", addresses, is_http2, balanced)],
    }}


def total(stats, name):
    return sum(value for key, value in stats.items() if key.endswith(name))


def test_envoy_accepts_the_configuration(tmp_path):
    balanced = policy(enable_oob_load_report=True, oob_reporting_period="1s",
                      metric_names_for_computing_utilization=["named_metrics.galatea.load.vector"])
    envoy.validate(envoy.written(tmp_path, config(["127.0.0.1:1"], True, balanced)))


def test_reports_outside_of_answers_reach_envoy(fleet):
    balanced = policy(enable_oob_load_report=True, oob_reporting_period="0.1s")
    addresses = [server.grpc for server in fleet]
    with envoy.Envoy(config(addresses, True, balanced)) as proxy:
        stock = grpcclient.InferenceServerClient(proxy.address("front"))
        expected = np.ones(3, np.float32)

        def are_told():
            for _ in range(10):
                assert (clients.infer(stock, "grpc", "vector", {"INPUT0": expected})["OUTPUT0"] == expected).all()
            weights = proxy.weights("servers")
            assert set(weights) == set(addresses)
            assert len(set(weights.values())) > 1, (weights, proxy.stats("lb_orca"))
            # The slow server works a larger share of its time for each request, so it gets the fewest.
            return weights[addresses[2]] == min(weights.values())

        waiting.eventually("the slow server has the least weight", are_told)
        stats = proxy.stats("lb_orca_oob")
        assert total(stats, "active_sessions") == 3 and total(stats, "stream_failures") == 0, stats
        # Envoy counts the reports of a server that has answered nothing in the last second as errors: they give no weight.
        assert total(stats, "reports_received") > total(stats, "report_errors"), stats


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_reports_in_answers_reach_envoy(fleet, protocol):
    addresses = [getattr(server, protocol) for server in fleet]
    with envoy.Envoy(config(addresses, protocol == "grpc", policy())) as proxy:
        stock = clients.MODULES[protocol].InferenceServerClient(proxy.address("front"))
        vector = np.ones(3, np.float32)

        def are_read():
            for _ in range(10):
                clients.infer(stock, protocol, "vector", {"INPUT0": vector})
            weights = proxy.weights("servers")
            return len(set(weights.values())) > 1 and weights[addresses[2]] == min(weights.values())

        waiting.eventually("the slow server has the least weight", are_read)
