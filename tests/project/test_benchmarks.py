"""Benchmarks and scripts import, and one benchmark that fails does not hide the others."""

import sys

import pytest
from programs import FILES, REPOSITORY, import_failures


def test_what_is_run_by_hand_imports():
    assert {path.parent.name for path in FILES} == {"benchmarks", "scripts"}
    assert import_failures(FILES) == []


def test_a_file_that_does_not_import_is_named(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("from proctor.core.types import nobody_has_this\n")
    assert import_failures([broken, REPOSITORY / "scripts/fill_caches.py"]) == [str(broken)]


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys):
    """Runs `make bench` with modules of our own; returns the exit code and the lines that it prints."""
    monkeypatch.syspath_prepend(str(REPOSITORY))
    import benchmarks  # noqa: PLC0415 - it is found only now
    from benchmarks.__main__ import main  # noqa: PLC0415

    def run(**modules):
        for name, body in modules.items():
            (tmp_path / f"bench_{name}.py").write_text(
                f"from benchmarks.rows import NotMeasured, Row\n{body}\n"
            )
        monkeypatch.setattr(benchmarks, "__path__", [str(tmp_path)])
        code = main([])
        for name in modules:
            sys.modules.pop(f"benchmarks.bench_{name}", None)
        return code, capsys.readouterr().out.splitlines()[1:]

    return run


def test_a_benchmark_that_fails_does_not_hide_the_others(bench):
    code, lines = bench(
        a="from proctor.core.types import nobody_has_this",
        b="def bench():\n    yield Row('early', 1e-3, 2e-3, 1.0)\n    raise ValueError('no house')",
        c="def bench(): return [Row('slow', 3.0, 2.0, 1.0), Row('quick', 1.0, 2.0, 1.0)]",
        d="def bench(): yield NotMeasured('robot', 'it is not here', is_failure=False)",
    )
    assert code == 1
    early, slow, quick, above, *missing = lines
    assert early.split() == ["early", "1.000", "ms", "2.000", "ms", "0.500", "1.000"]
    assert slow.endswith("ABOVE")
    assert quick.startswith("quick")
    assert above == "above its bar: slow"
    assert missing[0].startswith("failed: bench_a: ImportError: cannot import name 'nobody_has_this'")
    assert missing[1:] == ["failed: bench_b: ValueError: no house", "not measured: robot: it is not here"]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_bar_of_nothing_lets_nothing_pass(bench, lost):
    code, lines = bench(lost=f"def bench(): return [Row('lost', {lost}, 100, 0.0, 'of')]")
    assert code == lost
    assert lines[0].endswith("ABOVE") == bool(lost)


def test_what_the_machine_lacks_is_no_failure(bench):
    code, lines = bench(a="def bench(): yield NotMeasured('robot', 'it is not here', is_failure=False)")
    assert (code, lines) == (0, ["not measured: robot: it is not here"])
