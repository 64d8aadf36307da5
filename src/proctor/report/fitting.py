"""Tables that fit the terminal: numbers are never broken over lines, and long names are shortened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

WIDTH = 80
SHORTEST_NAME = 8
LARGE = 1e5
"""From here on numbers are written with an exponent."""


def fit_names(make_table: Callable[[Mapping[str, str]], Table], names: Mapping[str, str]) -> dict[str, str]:
    """Return how to write the names in the first column of a table so that it is at most WIDTH wide.

    Args:
        make_table: Makes the table, given how to write each name.
        names: How to write each name if there is room for it.
    """
    too_wide = table_width(make_table(names)) - WIDTH
    if too_wide <= 0:
        return dict(names)
    longest = max(map(cell_len, names.values()), default=0)
    width = max(longest - too_wide, SHORTEST_NAME)
    shown: dict[str, str] = {}
    for name, text in names.items():
        short, number = shortened(text, width), 2
        while short in shown.values():
            short, number = f"{shortened(text, width - len(str(number)) - 1)}#{number}", number + 1
        shown[name] = short
    return shown


def table_width(table: Table) -> int:
    """Return how many columns a table takes if nothing limits it."""
    console = Console(width=10 * WIDTH)
    return Measurement.get(console, console.options, table).maximum


def shortened(text: str, width: int) -> str:
    """Return a text with its middle left out, at most so many columns wide."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    head = chop_cells(text, width - 1 - tail)[0]
    end = chop_cells(text[::-1], tail)[0][::-1] if tail else ""
    return f"{head}…{end}"


def name_notes(names: Iterable[str], shown: Mapping[str, str]) -> list[str]:
    """Return the full names of those that a table shortens."""
    return [f"{shown[name]}: {name}" for name in names if "…" in shown[name] and "…" not in name]


def add_number_column(table: Table, heading: str) -> None:
    """Add a column that is never broken over lines."""
    table.add_column(heading, justify="right", no_wrap=True)


def number(value: float, digits: int, *, sign: str = "") -> str:
    """Return a number in so many digits, or with an exponent if it is large."""
    value = round(value, digits) + 0.0  # no negative zero
    return f"{value:{sign}.{digits}f}" if abs(value) < LARGE else f"{value:{sign}.0e}"
