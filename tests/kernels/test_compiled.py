"""Machine code on disk: never older than what it was made of."""

import ast
from pathlib import Path

import numpy as np
import pytest

import proctor.kernels
from proctor.kernels import compiled as module
from proctor.kernels.clearance import ClearanceField, clearance_at

PACKAGE = Path(proctor.kernels.__file__).parent


def test_machine_code_is_as_new_as_the_package_it_is_made_of(tmp_path):
    package, cache = tmp_path / "kernels", str(tmp_path / "cache")
    package.mkdir()
    (package / "kernel.py").write_text("from limits import MOST")
    (package / "limits.py").write_text("MOST = 2.0")
    before = module.cache_folder(cache, package)
    module.cache_folder.cache_clear()
    assert module.cache_folder(cache, package) == before
    assert before.is_dir()
    (package / "limits.py").write_text("MOST = 3.0")
    module.cache_folder.cache_clear()
    assert module.cache_folder(cache, package) != before


@pytest.mark.parametrize("file", sorted(PACKAGE.glob("*.py")), ids=lambda file: file.stem)
def test_kernels_take_only_types_from_outside_of_their_package(file):
    # The cache would not notice a change of anything else.
    imports = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    ours = {node.module for node in imports if (node.module or "").startswith("proctor")}
    outside = {name for name in ours if not name.startswith("proctor.kernels.")}
    assert outside <= ({"proctor.core.array_cache"} if file.stem == "compiled" else {"proctor.core.types"})
    assert not [node for node in ast.walk(ast.parse(file.read_text())) if getattr(node, "level", 0)]


def test_everything_that_is_compiled_is_in_one_package():
    others = [file for file in PACKAGE.parent.rglob("*.py") if file.parent != PACKAGE]
    assert not [file for file in others if "import numba" in file.read_text()]
    assert not [file for file in others if "kernels.compiled" in file.read_text()]


def test_a_cache_that_cannot_be_made_is_done_without(tmp_path):
    (tmp_path / "file").write_text("")
    assert not module.cache_folder(str(tmp_path / "file")).exists()


def test_numba_s_own_folder_is_left_alone():
    field = ClearanceField(np.zeros((4, 4)), 0.1, 0.0, 0.0)
    assert clearance_at(field, 0.1, 0.1)[0] == 0.0
    assert "kernels" not in str(module.config.CACHE_DIR)
