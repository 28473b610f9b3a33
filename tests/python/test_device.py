"""Devices and errors through the extension."""

import os
import re
from pathlib import Path

import pytest

import headrace
from headrace import Device, Errc

ERROR_HEADER = Path(__file__).parents[2] / "include/headrace/base/error.hpp"


def test_there_is_always_a_cpu_device():
    names = [device.name for device in Device.list()]
    assert "cpu:0" in names
    assert names.index("cpu:0") == len(names) - 1, "CUDA devices come first"


def test_absence_of_cuda_is_an_answer():
    has_cuda = any(device.kind == headrace.device.DeviceKind.cuda for device in Device.list())
    assert (Device.cuda_absence() == "") == has_cuda


@pytest.mark.parametrize(("name", "full"), [("cpu", "cpu:0"), ("cpu:0", "cpu:0"), ("cpu:3", "cpu:3")])
def test_parse(name: str, full: str):
    device = Device.parse(name)
    assert device.name == full
    assert Device.parse(device.name) == device
    assert hash(Device.parse(device.name)) == hash(device)
    assert repr(device) == f"headrace.Device.parse('{full}')"


def test_devices_differ_from_each_other_and_from_everything_else():
    assert Device.parse("cpu:0") != Device.parse("cpu:1")
    assert Device.parse("cpu:0") != "cpu:0"


def test_properties_and_memory():
    device = Device.parse("cpu")
    properties = device.properties
    assert properties.name
    assert properties.multiprocessor_count >= 1
    assert properties.compute_capability == 0
    memory = device.memory()
    assert 0 <= memory.free_bytes <= memory.total_bytes


@pytest.mark.parametrize("name", ["", "gpu", "cpu:", "cpu:-1", "cpu:64", "cpu:1x", "cuda:999", "cpu:99999999999"])
def test_an_unknown_device_is_named(name: str):
    with pytest.raises(headrace.UsageError, match=re.escape(f"'{name}'")) as caught:
        Device.parse(name)
    assert caught.value.code is Errc.not_found
    assert caught.value.native == 0
    assert "cpu:0" in str(caught.value), "the message says what is present"


def test_the_host_has_memory_and_no_more_than_its_machine():
    memory = headrace.device.host_memory()
    assert 0 < memory.free_bytes <= memory.total_bytes <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_errors_are_headrace_errors():
    for error in (headrace.UsageError, headrace.DataError, headrace.DeviceError, headrace.SystemError):
        assert issubclass(error, headrace.Error)
    assert headrace.DataError("x").code is Errc.corrupt_data
    assert headrace.SystemError("x", "no permission", 13).native == 13


def test_error_codes_are_those_of_cpp():
    body = re.search(r"enum class Errc[^{]*\{(.*?)\};", ERROR_HEADER.read_text(encoding="utf-8"), re.DOTALL)
    assert body is not None
    assert re.findall(r"^\s*(\w+),", body[1], re.MULTILINE) == [code.name for code in Errc]
