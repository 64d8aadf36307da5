"""OpenGL without a screen: which backend, and the one context that all cameras of a process share."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from proctor.core.errors import MissingDependency, UserError

BACKENDS = ("egl", "osmesa", "glfw")
PACKAGES = ("libegl1", "libgl1", "libgl1-mesa-dri")
"""Of Debian and Ubuntu, with which a minimal system renders without a screen."""
REMEDY = (
    f"On Debian and Ubuntu: apt-get install -y {' '.join(PACKAGES)} (or libosmesa6). "
    "The environment variable MUJOCO_GL (egl, osmesa or glfw) overrides Proctor's choice."
)
_LOCK = threading.RLock()


def choose_backend() -> None:
    """Set MUJOCO_GL, unless the user has: egl where it works, else osmesa. Must precede MuJoCo's import.

    MuJoCo imports the backend that is set, and PyOpenGL with it, which ends in an error of ctypes where a
    library is missing. So a backend without its libraries is not chosen, and refused if the user has set it.
    """
    chosen = os.environ.get("MUJOCO_GL", "").lower()
    if chosen not in ("", *BACKENDS):
        raise UserError(f"MUJOCO_GL={chosen}: expected one of {', '.join(BACKENDS)}")
    if not sys.platform.startswith("linux"):
        return
    if chosen:
        libraries = _missing_libraries(chosen)
        if libraries:
            raise MissingDependency(f"OpenGL (MUJOCO_GL={chosen}: {libraries} cannot be loaded)", REMEDY)
    elif _has_egl():
        os.environ["MUJOCO_GL"] = "egl"
    elif not _missing_libraries("osmesa"):
        os.environ["MUJOCO_GL"] = "osmesa"


def missing_packages() -> tuple[str, ...]:
    """Return the Debian packages without which this machine cannot render, or nothing if it can."""
    if not sys.platform.startswith("linux") or _has_egl() or not _missing_libraries("osmesa"):
        return ()
    return PACKAGES


@contextmanager
def drawing() -> Iterator[None]:
    """Make the process's OpenGL context that of this thread, for as long as this thread draws with it.

    It is made on first use and lives as long as the process. No other thread could draw while one keeps it.
    A UserError in a process that was forked from one with a context: drawing would hang there.
    """
    with _LOCK:
        context, process_id = _context()
        if process_id != os.getpid():
            raise UserError(
                "this process was forked from one that draws, and OpenGL does not survive that; start it "
                'with context="spawn", or before the first picture is drawn'
            )
        with context.as_current():
            yield


def check_drawing() -> None:
    """Raise a MissingDependency on a machine that cannot draw."""
    with drawing():
        pass


@cache
def _context() -> tuple[Any, int]:
    backend = os.environ.get("MUJOCO_GL", "")
    if not backend and sys.platform.startswith("linux"):
        missing = _missing_libraries("egl") or "a device of EGL"
        raise MissingDependency(f"OpenGL (neither {missing} nor OSMesa was found)", REMEDY)
    try:
        # Not mujoco.GLContext: the user may have imported mujoco before the choice was made.
        headless = backend in ("egl", "osmesa")
        module = importlib.import_module(f"mujoco.{backend}" if headless else "mujoco")
        context = module.GLContext(16, 16)
        with context.as_current():
            _try_to_draw()
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        raise MissingDependency(f"OpenGL (MUJOCO_GL={backend}: {error})", REMEDY) from error
    return context, os.getpid()


def renderer_name() -> str:
    """Return the backend and the driver that draws, such as `egl, llvmpipe (LLVM 19, 256 bits)`."""
    with drawing():
        gl = importlib.import_module("OpenGL.GL")
        return f"{os.environ.get('MUJOCO_GL', 'default')}, {gl.glGetString(gl.GL_RENDERER).decode()}"


def _try_to_draw() -> None:
    """Raise a RuntimeError if the context cannot draw: GLFW does not complain where there is no screen."""
    mujoco = importlib.import_module("mujoco")
    try:
        empty = mujoco.MjModel.from_xml_string("<mujoco/>")
        mujoco.MjrContext(empty, mujoco.mjtFontScale.mjFONTSCALE_100).free()
    except mujoco.FatalError as error:
        raise RuntimeError(str(error)) from None


def _can_load(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _missing_libraries(backend: str) -> str:
    """Return the libraries that a backend needs and that cannot be loaded, in words; nothing if all can."""
    needed = {
        "egl": (("libEGL.so.1",), ("libOpenGL.so.0", "libGL.so.1")),
        "osmesa": (("libOSMesa.so.8", "libOSMesa.so.6"),),
    }
    missing = [names for names in needed.get(backend, ()) if not any(map(_can_load, names))]
    return ", ".join(" or ".join(names) for names in missing)


def _has_egl() -> bool:
    """Tell whether EGL is complete and has a device to draw on."""
    if _missing_libraries("egl"):
        return False
    egl = ctypes.CDLL("libEGL.so.1")
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    address = egl.eglGetProcAddress(b"eglQueryDevicesEXT")
    if not address:
        return False
    count = ctypes.c_int()
    query_type = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
    return bool(query_type(address)(0, None, ctypes.byref(count))) and count.value > 0
