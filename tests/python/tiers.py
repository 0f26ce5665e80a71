"""The tiers of the suite and the servers that a test runs on.

A test without a mark belongs to the tier *commit*: it starts only our server, and what the real server answered is in
tests/golden. The mark `peers` is for tests that ask something that is not ours: the real Triton, browsers in full, other
languages. The mark `measure` is for tests that look at times, fill the machine, or last long. They print a trend.
"""

import pytest

peers = pytest.mark.peers
measure = pytest.mark.measure

# The real Triton as a parameter of a test or of a fixture.
REAL = pytest.param("triton", marks=peers)
BOTH = ["galatea", REAL]
# A test that runs on our server in the tier commit and on the real one in the tier peers.
both = pytest.mark.parametrize("target", BOTH)
