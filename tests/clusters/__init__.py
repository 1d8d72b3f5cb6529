"""Tests of clusters. pytest also explains failed assertions of the conformance suite, which is not a test module."""

import pytest

pytest.register_assert_rewrite("tests.clusters.conformance")
