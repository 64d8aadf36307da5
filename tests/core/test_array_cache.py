import numpy as np
import pytest

from proctor.core import array_cache
from proctor.core.array_cache import cached_arrays

MADE = {"heights": np.arange(6.0).reshape(2, 3), "cells": np.array([[True, False]])}


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    array_cache._digest.cache_clear()
    file = tmp_path / "source.py"
    file.write_text("first")
    return file


class Maker:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return MADE


def call(make, source):
    arrays = cached_arrays("example", make, source=str(source), packages=("numpy",))
    assert arrays.keys() == MADE.keys()
    for name, array in arrays.items():
        assert array.dtype == MADE[name].dtype
        assert (array == MADE[name]).all()
    return make.calls


def cached_file(source):
    (file,) = (source.parent / "cache" / "proctor" / "arrays").iterdir()
    return file


def test_arrays_are_made_once(source):
    make = Maker()
    assert [call(make, source) for _ in range(3)] == [1, 1, 1]


def test_another_source_makes_them_again(source):
    make = Maker()
    call(make, source)
    source.write_text("second")
    array_cache._digest.cache_clear()  # as in another process
    assert call(make, source) == 2


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[:200], lambda content: b"no arrays" * 99],
    ids=["empty", "cut off", "another format"],
)
def test_a_damaged_file_is_made_again_and_replaced(source, damage):
    make = Maker()
    call(make, source)
    file = cached_file(source)
    file.write_bytes(damage(file.read_bytes()))
    assert [call(make, source) for _ in range(2)] == [2, 2]


def test_no_flipped_bit_gets_through(source):
    make = Maker()
    call(make, source)
    file = cached_file(source)
    content = file.read_bytes()
    for at in range(0, len(content), 7):
        file.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        calls = make.calls
        assert call(make, source) == calls + 1


@pytest.mark.parametrize("missing", ["source", "package"])
def test_code_that_is_not_in_a_file_of_an_installed_package_only_costs_time(source, missing):
    make = Maker()
    packages = ("numpy",) if missing == "source" else ("no-such-distribution",)
    file = source.parent / "a.zip" / "source.py" if missing == "source" else source
    for _ in range(2):
        assert cached_arrays("example", make, source=str(file), packages=packages) is MADE
    assert make.calls == 2


def test_a_folder_that_cannot_be_written_only_costs_time(source):
    (source.parent / "cache").write_text("a file where a folder should be")
    make = Maker()
    assert [call(make, source) for _ in range(2)] == [1, 2]


def test_a_user_without_a_home_folder_only_waits_longer(source, monkeypatch):
    def no_home(_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("pathlib.Path.home", classmethod(no_home))
    make = Maker()
    assert [call(make, source) for _ in range(2)] == [1, 2]
