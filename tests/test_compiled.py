"""Machine code on disk: never older than what it was made of."""

from pathlib import Path

import numpy as np

from proctor.navigation import compiled as module
from proctor.navigation.maps.beams import Beams
from proctor.navigation.maps.clearance import clearance_at
from proctor.navigation.maps.clearance_field import ClearanceField


def _digests(monkeypatch, changed):
    """Return the digests of two modules as they would be if a file had one line more."""
    read = Path.read_bytes
    with monkeypatch.context() as patch:
        extra = {changed: b"\n# one more line\n"}
        patch.setattr(Path, "read_bytes", lambda path: read(path) + extra.get(path.name, b""))
        module._digest.cache_clear()
        digests = [module._digest(f"proctor.navigation.{name}") for name in ("maps.beams", "compiled")]
    module._digest.cache_clear()
    return digests


def test_machine_code_is_as_new_as_what_its_source_imports(monkeypatch):
    beams, compiled = _digests(monkeypatch, "nothing.py")
    assert _digests(monkeypatch, "beams.py") != [beams, compiled]
    changed, same = _digests(monkeypatch, "clearance_field.py")  # which beams.py imports
    assert changed != beams
    assert same == compiled
    assert Beams is not None


def test_numba_s_own_folder_is_left_alone():
    field = ClearanceField(np.zeros((4, 4)), 0.1, 0.0, 0.0)
    assert clearance_at(field, 0.1, 0.1)[0] == 0.0
    assert "kernels" not in str(module.config.CACHE_DIR)
