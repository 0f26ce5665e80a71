"""Plays of tests/fleet in their short forms: real servers behind the real Envoy, as `galatea deploy envoy` sets it up."""

import os
import sys

import pytest

import envoy
import servers
import tiers

sys.path.append(str(servers.ROOT / "tests/fleet"))

import failures  # noqa: E402
import faults  # noqa: E402
import rolling  # noqa: E402
import sequences  # noqa: E402
import shares  # noqa: E402

pytestmark = envoy.needed


@tiers.peers
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_host_that_fails_and_returns_costs_no_request(tmp_path, protocol):
    failures.fail_and_return(tmp_path, protocol=protocol).check()


@tiers.peers
def test_without_retries_requests_fail_and_none_is_wrong(tmp_path):
    failures.fail_and_return(tmp_path, requests=1000, retries=False).check()


@tiers.peers
def test_a_host_with_errors_is_ejected_and_a_slow_one_gets_few(tmp_path):
    failures.errors_and_slowness(tmp_path).check()


@tiers.peers
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_rolling_changes_cost_no_request(tmp_path, protocol):
    rolling.change_all(tmp_path, protocol).check()


@tiers.peers
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_host_that_hangs_costs_no_request(tmp_path, protocol):
    failures.hangs(tmp_path, protocol).check()


@tiers.peers
def test_sequences_of_a_host_that_dies_are_told_as_lost(tmp_path):
    sequences.a_host_dies(tmp_path).check()


@tiers.measure
def test_random_faults(tmp_path):
    faults.random_faults(tmp_path, int(os.environ.get("GALATEA_FLEET_SEED", "37"))).check()


@tiers.measure
def test_shares_follow_the_capacity(tmp_path):
    shares.by_capacity(tmp_path).check()


@tiers.measure
def test_a_hundred_upgrades_under_load(tmp_path):
    rolling.upgrade_often(tmp_path).check()
