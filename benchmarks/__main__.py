"""All benchmarks, side by side with a peer or the bare library in the same run: `make bench`.

`python -m benchmarks chat mcp` runs two of them. Prints one line each: name, ours, theirs, ratio, and the
largest ratio that is accepted. One that fails does not keep the others from being measured; what failed is
listed again at the end.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence

import benchmarks
from benchmarks.rows import NotMeasured, Row


def main(words: Sequence[str] | None = None) -> int:
    found = (info.name for info in pkgutil.iter_modules(benchmarks.__path__))
    known = sorted(name.removeprefix("bench_") for name in found if name.startswith("bench_"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help=f"all by default: {', '.join(known)}")
    names = parser.parse_args(words).name or known
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no benchmark {unknown[0]!r}: expected {', '.join(known)}")
    print(f"{'benchmark':<58}{'ours':>12}{'theirs':>12}{'ratio':>9}{'bar':>9}")
    return report(row for name in names for row in rows_of(f"bench_{name}"))


def rows_of(module: str) -> Iterator[Row | NotMeasured]:
    """Measure what one module measures; an exception is one more line."""
    try:
        yield from importlib.import_module(f"benchmarks.{module}").bench()
    except Exception as error:  # noqa: BLE001 - whatever it is, the others are measured
        traceback.print_exc()
        yield NotMeasured(module, f"{type(error).__name__}: {error}")


def report(rows: Iterable[Row | NotMeasured]) -> int:
    """Print the rows as they come, then what is missing or above its bar; return the exit code."""
    missing, above = [], []
    for row in rows:
        if isinstance(row, NotMeasured):
            missing.append(row)
            continue
        held = row.ours <= row.bar * row.theirs
        if not held:
            above.append(row)
        ratio = f"{row.ours / row.theirs:.3f}" if row.theirs else "-"
        print(
            f"{row.name:<58}{_shown(row.ours, row.unit):>12}{_shown(row.theirs, row.unit):>12}"
            f"{ratio:>9}{row.bar:>9.3f}{'' if held else '  ABOVE'}",
            flush=True,
        )
    for row in above:
        print(f"above its bar: {row.name}")
    for gap in missing:
        print(f"{'failed' if gap.is_failure else 'not measured'}: {gap.name}: {gap.reason}")
    return 1 if above or any(gap.is_failure for gap in missing) else 0


def _shown(value: float, unit: str) -> str:
    return f"{1e3 * value:.3f} ms" if unit == "s" else f"{value:.3f} {unit}"


if __name__ == "__main__":
    sys.exit(main())
