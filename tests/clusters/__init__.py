"""Tests of clusters; pytest explains failed assertions of the conformance suite, which is no test module, as well."""

import pytest

pytest.register_assert_rewrite("tests.clusters.conformance")
