"""Machine code on disk: never older than what it was made of."""

import importlib
import sys

import numpy as np
import pytest

from proctor.maps import compiled as module
from proctor.maps.clearance import clearance_at
from proctor.maps.clearance_field import ClearanceField

PARENT = "proctor.navigation"
KERNEL = """
from __future__ import annotations
import math
from typing import TYPE_CHECKING
{}
if TYPE_CHECKING:
    from proctor.navigation.made_up.shapes import Shape

def kernel(x: float) -> float:
    from proctor.navigation.made_up.shapes import Shape
    return x
"""


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A package of ours whose files can be changed: returns a function that gives a kernel's digest."""
    folder = tmp_path / "made_up"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "limits.py").write_text("LEAST = 1.0\nMOST = 2.0\n")
    (folder / "steps.py").write_text("from proctor.navigation.made_up import limits\nSTEP = limits.MOST\n")
    (folder / "shapes.py").write_text("class Shape: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    package = importlib.import_module(PARENT)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])

    def digest(imports, **changed):
        for name, line in changed.items():
            with (folder / f"{name}.py").open("a") as file:
                file.write(line)
        (folder / "kernel.py").write_text(KERNEL.format(imports))
        forget()
        importlib.import_module(f"{PARENT}.made_up.shapes")  # loaded, but not by the kernel
        importlib.import_module(f"{PARENT}.made_up.kernel")
        return module._digest(f"{PARENT}.made_up.kernel")

    def forget():
        for name in [name for name in sys.modules if name.startswith(f"{PARENT}.made_up")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        for function in vars(module).values():
            getattr(function, "cache_clear", bool)()

    yield digest
    forget()
    vars(package).pop("made_up", None)


@pytest.mark.parametrize(
    "imports",
    [
        "from proctor.navigation.made_up.limits import LEAST",
        "from proctor.navigation.made_up.limits import (\n    LEAST,\n    MOST,\n)",
        "from math import (\n    pi,\n); from proctor.navigation.made_up import limits as of_ours",
        "from proctor.navigation.made_up import (shapes, limits)",
        "import math, proctor.navigation.made_up.limits as limits",
        "from .limits import LEAST",
        "from . import (steps)",
        "try:\n    from proctor.navigation.made_up.limits import LEAST\nexcept ImportError:\n    LEAST = 0.0",
        "try:\n    import no_such_package\nexcept ImportError:\n    from .limits import LEAST",
        "if math.pi > 3:\n    from proctor.navigation.made_up.limits import LEAST",
        "from proctor.navigation.made_up.steps import (\n    STEP,\n)",
    ],
)
def test_machine_code_is_as_new_as_what_its_source_imports(made_up, imports):
    before = made_up(imports)
    assert made_up(imports) == before
    assert made_up(imports, limits="# changed\n") != before
    assert made_up(f"{imports}  # changed") != before


def test_machine_code_stays_when_nothing_changes_that_it_could_hold(made_up):
    imports = "from proctor.navigation.made_up.limits import LEAST"
    before = made_up(imports)
    # Imported for its types and in a function: neither is loaded when the kernel is compiled.
    assert made_up(imports, shapes="# changed\n") == before


def test_modules_that_import_each_other_have_a_digest(made_up):
    imports = "from proctor.navigation.made_up.limits import LEAST"
    circle = "from proctor.navigation.made_up import steps\n"
    before = made_up(imports, limits=circle)
    assert made_up(imports, steps="# changed\n") != before


def test_numba_s_own_folder_is_left_alone():
    field = ClearanceField(np.zeros((4, 4)), 0.1, 0.0, 0.0)
    assert clearance_at(field, 0.1, 0.1)[0] == 0.0
    assert "kernels" not in str(module.config.CACHE_DIR)
