"""Tests of clusters; also make pytest explain failed assertions of the conformance suite, which is no test module."""

import pytest

pytest.register_assert_rewrite("tests.clusters.conformance")
