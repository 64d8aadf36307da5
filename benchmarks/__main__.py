"""All benchmarks, side by side with a peer or the bare library in the same run: `make bench`.

Prints one line each: name, ours, theirs, ratio, and the largest ratio that is accepted.
"""

import importlib
import pkgutil
import sys

import benchmarks


def main() -> int:
    broken = 0
    print(f"{'benchmark':<58}{'ours':>12}{'theirs':>12}{'ratio':>9}{'bar':>9}")
    for info in sorted(pkgutil.iter_modules(benchmarks.__path__), key=lambda info: info.name):
        if not info.name.startswith("bench_"):
            continue
        for row in importlib.import_module(f"benchmarks.{info.name}").bench():
            ratio = row.ours / row.theirs
            held = ratio <= row.bar
            broken += not held
            print(
                f"{row.name:<58}{_shown(row.ours, row.unit):>12}{_shown(row.theirs, row.unit):>12}"
                f"{ratio:>9.3f}{row.bar:>9.3f}{'' if held else '  ABOVE'}",
                flush=True,
            )
    return 1 if broken else 0


def _shown(value: float, unit: str) -> str:
    return f"{1e3 * value:.3f} ms" if unit == "s" else f"{value:.3f} {unit}"


if __name__ == "__main__":
    sys.exit(main())
