"""Map files: YAML and an image as ROS's map servers write and read them, numpy's .npz, and MovingAI's .map.

Shades become occupied, free and unknown as in `loadMapFromFile` of Nav2's map_io.cpp.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray
from PIL.BmpImagePlugin import BmpImageFile
from PIL.ImageFile import ImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.PpmImagePlugin import PpmImageFile

from proctor.core.documents import convert, read_bytes, write_atomically
from proctor.core.errors import InvalidFile, UserError
from proctor.maps.grid_map import GridMap
from proctor.maps.movingai import CELL_M, load_movingai_map
from proctor.maps.occupancy import CELLS_M, FREE, OCCUPIED, UNKNOWN, Occupancy
from proctor.maps.point_cloud import MOST_CELLS, Unknown, counts_as_occupied

MOST_YAML_BYTES = 1 << 13
OCCUPIED_SHADE, UNKNOWN_SHADE, FREE_SHADE = 0, 205, 254
OCCUPIED_THRESH, FREE_THRESH = 0.65, 0.196  # so shade 205 is unknown: (255 - 205) / 255 > 0.196
LAYERS = ("occupied", "unknown", "outside")
FRAME = "frame"  # in .npz: side of a cell, x and y of the lower left corner, 1 if the floor ends

IMAGES: dict[bytes, type[ImageFile]] = {
    b"P5": PpmImageFile,
    b"P2": PpmImageFile,
    b"\x89PNG\r\n\x1a\n": PngImageFile,
    b"BM": BmpImageFile,
}
"""By the first bytes of the file. The classes read only the header until the pixels are asked for."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class MapHeader(msgspec.Struct, kw_only=True):
    """The YAML file of a map."""

    image: Annotated[str, msgspec.Meta(min_length=1)]
    resolution: Annotated[float, msgspec.Meta(ge=CELLS_M[0], le=CELLS_M[1])]
    origin: tuple[float, float, float]  # x and y of the lower left corner, and its rotation in radians
    occupied_thresh: Share
    free_thresh: Share
    negate: bool | Literal[0, 1] = 0
    mode: Literal["trinary", "scale", "raw"] = "trinary"

    def __post_init__(self) -> None:
        if not self.free_thresh < self.occupied_thresh:
            raise ValueError(f"free_thresh: expected less than occupied_thresh, found {self.free_thresh}")


def load_map(path: Path, *, unknown: Unknown = "free", cell_m: float = CELL_M) -> GridMap:
    """Read a `.yaml` or `.npz` map that `save_map` or a map server wrote; InvalidFile if it is not a map.

    The image is PGM, PNG or BMP. It lies in the folder of the `.yaml` file or below: a path that leads
    elsewhere or nowhere, as some savers write it, stands for the file of that name beside the `.yaml`
    file. `unknown` is what unknown cells count as. A `.map` of MovingAI has cells of the side `cell_m`.
    """
    counts_as_occupied(unknown)
    if path.suffix == ".map":
        return load_movingai_map(path, cell_m)
    if path.suffix == ".npz":
        occupancy, outside, ends = _load_npz(path)
        grid = occupancy.grid(unknown=unknown)
        grid.outside, grid.ends = outside, ends or grid.ends
        return grid
    if path.suffix not in (".yaml", ".yml"):
        raise InvalidFile(path, "not a map: expected a name that ends with .yaml, .yml, .npz or .map")
    header = _load_header(path)
    shades = _load_shades(_image_beside(path, header.image))
    cells = _percentages(shades, header)[::-1]  # images begin at the top
    height, width = cells.shape
    x, y, yaw = header.origin
    try:
        return Occupancy(cells, width, height, header.resolution, (x, y), yaw).grid(unknown=unknown)
    except UserError as error:
        raise InvalidFile(path, str(error)) from None


def save_map(grid: GridMap, path: Path) -> None:
    """Write a map: `.npz` loses nothing; `.yaml` and its image are for every map server."""
    try:
        if path.suffix == ".npz":
            write_atomically(path, _npz(grid))
        elif path.suffix in (".yaml", ".yml"):
            image = path.with_suffix(".pgm")
            write_atomically(image, _pgm(grid))
            write_atomically(path, _yaml(grid, image.name))
        else:
            raise UserError(f"{path}: expected a name that ends with .yaml, .yml or .npz")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


def _pgm(grid: GridMap) -> bytes:
    rows, columns = grid.occupied.shape
    known = np.where(grid.occupied, OCCUPIED_SHADE, FREE_SHADE)
    shades = np.where(grid.unknown, UNKNOWN_SHADE, known).astype(np.uint8)[::-1]
    return b"P5\n%d %d\n255\n" % (columns, rows) + shades.tobytes()


def _yaml(grid: GridMap, image: str) -> bytes:
    header = {
        "image": image,
        "mode": "trinary",
        "resolution": float(grid.resolution_m),
        "origin": [*map(float, grid.origin_world), 0.0],
        "negate": 0,
        "occupied_thresh": OCCUPIED_THRESH,
        "free_thresh": FREE_THRESH,
    }
    text: str = yaml.safe_dump(header, sort_keys=False, default_flow_style=None, allow_unicode=True)
    return text.encode()


class _HeaderLoader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads 1e-05 as a number, as yaml-cpp writes it in Nav2's map saver; in YAML 1.1 it is a text."""


_HeaderLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def _load_header(path: Path) -> MapHeader:
    raw = read_bytes(path)
    if len(raw) > MOST_YAML_BYTES:
        raise InvalidFile(
            path, f"has {len(raw)} bytes, expected at most {MOST_YAML_BYTES} in a map's YAML file"
        )
    try:
        value = _HeaderLoader(raw).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise InvalidFile(path, f"invalid YAML: {error.problem}", place=place) from None
    except Exception as error:  # noqa: BLE001  PyYAML fails in many ways on strange values
        raise InvalidFile(path, f"invalid YAML: {' '.join(str(error).split())}") from None
    if value is None:
        raise InvalidFile(path, "empty file, expected a map's keys, such as image, resolution and origin")
    return convert(value, MapHeader, path)


def _image_beside(path: Path, name: str) -> Path:
    """Return the image's file, in the folder of the YAML file or below: no other file is ever read."""
    try:
        folder = path.parent.resolve()
        named, beside = (folder / name).resolve(), (folder / PurePath(name).name).resolve()
        for file in (named, beside):
            if file.is_relative_to(folder) and file.is_file():
                return file
        if named.is_relative_to(folder):
            return named  # whoever reads it says what is wrong with it
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidFile(path, f"{name!r} is not a file name: {error}", place="image") from None
    raise InvalidFile(path, f"{name!r} leaves the folder of the map: put the image into it", place="image")


class _Shades(NamedTuple):
    """The pixels of an image, (rows, columns), from the top."""

    values: NDArray[np.uint8]  # from black to white
    is_opaque: NDArray[np.bool_]


def _load_shades(path: Path) -> _Shades:
    raw = read_bytes(path)
    kind = next((kind for start, kind in IMAGES.items() if raw.startswith(start)), None)
    if kind is None:
        raise InvalidFile(path, f"expected a PGM (P5 or P2), PNG or BMP image, found {raw[:8]!r}")
    try:
        with kind(io.BytesIO(raw)) as image:
            width, height = image.size
            if min(width, height) < 2 or width * height > MOST_CELLS:
                size = f"{width} x {height}"
                raise InvalidFile(path, f"expected an image of 2 x 2 to {MOST_CELLS} pixels, found {size}")
            if image.mode.startswith("I"):  # 16 bits
                deep = np.asarray(image, dtype=np.int64)
                return _Shades(((deep + 128) // 257).astype(np.uint8), np.ones(deep.shape, dtype=bool))
            pixels = np.asarray(image.convert("RGBA").convert("LA"))
            return _Shades(pixels[..., 0], pixels[..., 1] == 255)
    except InvalidFile:
        raise
    except Exception as error:  # noqa: BLE001  Pillow fails in many ways on files that are damaged
        raise InvalidFile(path, f"an image that cannot be read: {error}") from None


def _percentages(shades: _Shades, header: MapHeader) -> NDArray[np.int64]:
    """Return how occupied pixels are, as the three modes have it."""
    if header.mode == "raw":
        return np.where(shades.values <= OCCUPIED, shades.values.astype(np.int64), UNKNOWN)
    bright = shades.values.astype(np.float32) / np.float32(255)
    occupied = bright if header.negate else 1 - bright
    low, high = np.float32(header.free_thresh), np.float32(header.occupied_thresh)
    between: NDArray[np.int64] = np.full(bright.shape, UNKNOWN)
    if header.mode == "scale":
        between = np.floor((occupied - low) / (high - low) * 100 + 0.5).astype(np.int64)
    cells = np.where(occupied <= low, FREE, np.where(occupied >= high, OCCUPIED, between))
    return np.where(shades.is_opaque, cells, UNKNOWN)


def _npz(grid: GridMap) -> bytes:
    frame = np.array([grid.resolution_m, *grid.origin_world, grid.ends], dtype=float)
    file = io.BytesIO()
    np.savez_compressed(file, occupied=grid.occupied, unknown=grid.unknown, outside=grid.outside, frame=frame)
    return file.getvalue()


def _load_npz(path: Path) -> tuple[Occupancy, NDArray[np.bool_], bool]:
    """Return what is occupied and unknown, what is outside, and whether the floor ends with the map."""
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(path))) as archive:
            frame = _member(archive, FRAME, np.float64, path)
            layers = {name: _member(archive, name, np.bool_, path) for name in LAYERS}
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001  zipfile fails in many ways on files that are damaged
        raise InvalidFile(path, f"a broken .npz file: {error}") from None
    if frame.shape != (4,) or frame[3] not in (0, 1):
        raise InvalidFile(path, f"expected cell, x, y and 0 or 1, found {frame.tolist()}", place=FRAME)
    occupied, unknown, outside = (layers[name] for name in LAYERS)
    for name in LAYERS:
        if layers[name].ndim != 2 or layers[name].shape != occupied.shape:
            problem = f"expected (rows, columns), all the same, found {layers[name].shape}"
            raise InvalidFile(path, problem, place=name)
    cells = np.where(unknown, UNKNOWN, np.where(occupied, OCCUPIED, FREE))
    height, width = cells.shape
    occupancy = Occupancy(cells, width, height, float(frame[0]), (float(frame[1]), float(frame[2])))
    try:
        occupancy.check()
    except UserError as error:
        raise InvalidFile(path, str(error)) from None
    return occupancy, outside, bool(frame[3])


def _member(archive: zipfile.ZipFile, name: str, dtype: type, path: Path) -> NDArray[Any]:
    """Read one array. Its announced size is checked before anything is unpacked."""
    try:
        info = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise InvalidFile(path, "missing", place=name) from None
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidFile(path, f"compressed in an unknown way ({info.compress_type})", place=name)
    if info.file_size > 2 * MOST_CELLS:
        raise InvalidFile(path, f"has {info.file_size} bytes, expected at most {2 * MOST_CELLS}", place=name)
    raw = archive.read(info)
    file = io.BytesIO(raw)
    try:
        np.lib.format.read_magic(file)
        shape, _, found = np.lib.format.read_array_header_1_0(file)
        if found != dtype or math.prod(shape) * found.itemsize != len(raw) - file.tell():
            raise ValueError(f"expected {np.dtype(dtype)}, found {found} {shape} in {len(raw)} bytes")
        return np.asarray(np.load(io.BytesIO(raw), allow_pickle=False))
    except Exception as error:  # noqa: BLE001  the header is a Python literal, so it fails in many ways
        raise InvalidFile(path, f"no array that can be read: {error}", place=name) from None
