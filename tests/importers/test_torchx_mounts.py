"""Mounts arrive as objects without their class, or as strings with their own options."""

from __future__ import annotations

import pytest

from symphony_charts.importers.report import Log
from symphony_charts.integrations.common.fields import Fields
from symphony_charts.integrations.torchx.appdef import AnyMount, BindMount, DeviceMount, VolumeMount, read_mounts


def mounts(value: object) -> tuple[list[AnyMount], Log]:
    log = Log()
    return read_mounts(Fields({"mounts": value}, "roles[0]", log)), log


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["type=bind,src=/a,dst=/b,readonly"], [BindMount(src_path="/a", dst_path="/b", read_only=True)]),
        (["type=volume,src=claim,dst=/b"], [VolumeMount(src="claim", dst_path="/b")]),
        (["type=device,src=/dev/fuse"], [DeviceMount(src_path="/dev/fuse", dst_path="/dev/fuse")]),
        (
            "type=device,src=/dev/x,dst=/dev/y,perm=r",
            [DeviceMount(src_path="/dev/x", dst_path="/dev/y", permissions="r")],
        ),
        (["type=bind", "src=/a", "dst=/b"], [BindMount(src_path="/a", dst_path="/b")]),
        (
            [{"src_path": "/a", "dst_path": "/b", "read_only": True}],
            [BindMount(src_path="/a", dst_path="/b", read_only=True)],
        ),
        ([{"src": "c", "dst_path": "/b", "read_only": False}], [VolumeMount(src="c", dst_path="/b")]),
        (
            [{"src_path": "/dev/x", "dst_path": "/dev/x", "permissions": "rw"}],
            [DeviceMount(src_path="/dev/x", dst_path="/dev/x", permissions="rw")],
        ),
        (
            ["type=bind,src=/a,dst=/b,type=volume,src=c,dst=/d"],
            [BindMount(src_path="/a", dst_path="/b"), VolumeMount(src="c", dst_path="/d")],
        ),
    ],
)
def test_each_form_of_a_mount_is_read(value: object, expected: list[AnyMount]) -> None:
    found, log = mounts(value)
    assert found == expected
    assert not log.problems


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (["src=/a,dst=/b"], "must begin with `type=`"),
        (["type=bind,src=/a"], "has no dst"),
        (["type=tmpfs,src=/a,dst=/b"], "not a mount type"),
        (["type=bind,src=/a,dst=/b,colour=red"], "unknown mount option"),
        (["type=device,src=/dev/x,perm=rwx"], "not device permissions"),
        ([7], "expected a map, got 7"),
        ({"a": 1}, "is not a list of mounts"),
    ],
)
def test_each_wrong_mount_is_a_fault_at_its_place(value: object, what: str) -> None:
    _, log = mounts(value)
    assert what in log.problems[0].what
    assert log.problems[0].path.startswith("roles[0].mounts")


@pytest.mark.parametrize(("permissions", "is_read_only"), [("r", True), ("rw", False), ("m", False), ("rwm", False)])
def test_a_device_without_w_and_m_is_read_only(permissions: str, is_read_only: bool) -> None:
    assert DeviceMount(src_path="/d", dst_path="/d", permissions=permissions).is_read_only is is_read_only
