import contextlib
import io
import math
import shutil
import struct
import zipfile
import zlib

import numpy as np
import pytest
import yaml
from PIL import Image

from proctor.core.errors import InvalidFile, UnknownName, UserError
from proctor.maps.grid_map import GridMap
from proctor.maps.map_files import load_map, save_map
from proctor.maps.occupancy import Occupancy

HEADER = {
    "image": "map.pgm",
    "resolution": 0.05,
    "origin": [1.0, -2.0, 0.0],
    "negate": 0,
    "occupied_thresh": 0.65,
    "free_thresh": 0.25,
}
SHADES = b"P5\n3 2\n255\n" + bytes([0, 100, 254, 255, 205, 60])


def picture(kind, mode="L", size=(3, 2), **options):
    """A file with the shades of SHADES."""
    image = Image.frombytes("L", (3, 2), SHADES[-6:]).resize(size, Image.Resampling.NEAREST).convert(mode)
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def announced_png(width, height):
    """A PNG file that begins as a huge image does."""
    content = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    start = picture("PNG")[:8] + struct.pack(">I", 13) + content + struct.pack(">I", zlib.crc32(content))
    return start + picture("PNG")[33:]


def announced_bmp(width, height):
    file = bytearray(picture("BMP"))
    file[18:26] = struct.pack("<ii", width, height)
    return bytes(file)


def random_grid(seed=0):
    rng = np.random.default_rng(seed)
    occupied, unknown = rng.random((2, 30, 47)) < 0.2
    return GridMap(occupied & ~unknown, resolution_m=0.1, origin_world=(-1.25, 0.1), unknown=unknown)


def assert_same(a, b):
    np.testing.assert_array_equal(a.occupied, b.occupied)
    np.testing.assert_array_equal(a.unknown, b.unknown)
    np.testing.assert_array_equal(a.clearance_m, b.clearance_m)
    assert (a.resolution_m, a.origin_world) == (b.resolution_m, b.origin_world)


def write_map(folder, pixels=SHADES, **header):
    merged = {key: value for key, value in (HEADER | header).items() if value is not None}
    (folder / "map.yaml").write_text(yaml.safe_dump(merged))
    (folder / "map.pgm").write_bytes(pixels)
    return folder / "map.yaml"


@pytest.mark.parametrize("name", ["my map.yaml", "a.yml", "a.npz"])
def test_a_map_comes_back_as_it_was_saved(tmp_path, name):
    grid = random_grid()
    save_map(grid, tmp_path / name)
    assert_same(load_map(tmp_path / name), grid)
    closed = load_map(tmp_path / name, unknown="occupied")
    np.testing.assert_array_equal(closed.occupied, grid.occupied | grid.unknown)
    assert closed.ends
    save_map(closed, tmp_path / name)  # what is unknown stays so, whatever it counts as
    assert_same(load_map(tmp_path / name), grid)
    with pytest.raises(UnknownName, match="policy for unknown space"):
        load_map(tmp_path / name, unknown="perhaps")


def test_nothing_is_lost_in_a_npz_file(tmp_path):
    occupied, outside = np.random.default_rng(1).random((2, 9, 8)) < 0.5
    save_map(GridMap(occupied, ends=True, outside=outside & occupied), tmp_path / "a.npz")
    found = load_map(tmp_path / "a.npz")
    assert found.ends
    np.testing.assert_array_equal(found.outside, outside & occupied)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:  # as anybody can read it
        np.testing.assert_array_equal(arrays["occupied"], occupied)
        assert arrays["frame"].tolist() == [0.05, 0.0, 0.0, 1.0]


def test_files_are_those_of_a_map_server(tmp_path):
    occupied = np.array([[True, False, False], [False, False, True]])
    unknown = np.array([[False, True, False], [False, False, False]])
    save_map(GridMap(occupied, origin_world=(1, 2), unknown=unknown), tmp_path / "map.yaml")
    assert yaml.safe_load((tmp_path / "map.yaml").read_text()) == {
        "image": "map.pgm",
        "mode": "trinary",
        "resolution": 0.05,
        "origin": [1.0, 2.0, 0.0],
        "negate": 0,
        "occupied_thresh": 0.65,
        "free_thresh": 0.196,
    }
    assert (tmp_path / "map.pgm").read_bytes() == b"P5\n3 2\n255\n" + bytes([254, 254, 0, 0, 205, 254])


def test_the_first_row_of_an_image_is_the_last_of_the_map(tmp_path):
    grid = load_map(write_map(tmp_path))
    assert grid.origin_world == (1.0, -2.0)
    assert grid.occupied.tolist() == [[False, False, True], [True, False, False]]
    assert grid.unknown.tolist() == [[False, False, False], [False, True, False]]


def test_plain_and_16_bit_images_are_the_same(tmp_path):
    due = load_map(write_map(tmp_path))
    plain = b"P2\n# by hand\n3 2\n255\n0 100 254\n255 205 60\n"
    assert_same(load_map(write_map(tmp_path, plain)), due)
    deep = (
        b"P5 3 2 65535\n" + np.array([0, 100, 254, 255, 205, 60], ">u2").__mul__(257).astype(">u2").tobytes()
    )
    assert_same(load_map(write_map(tmp_path, deep)), due)


@pytest.mark.parametrize(
    ("name", "kind", "mode"),
    [
        ("map.png", "PNG", "L"),
        ("map.png", "PNG", "RGB"),
        ("map.png", "PNG", "RGBA"),
        ("map.png", "PNG", "P"),
        ("map.bmp", "BMP", "L"),
        ("map.bmp", "BMP", "RGB"),
        ("an image", "PNG", "LA"),
    ],
)
def test_png_and_bmp_images_are_the_same_as_pgm(tmp_path, name, kind, mode):
    due = load_map(write_map(tmp_path))
    (tmp_path / name).write_bytes(picture(kind, mode))
    assert_same(load_map(write_map(tmp_path, image=name)), due)


def test_16_bit_and_1_bit_png_images(tmp_path):
    due = load_map(write_map(tmp_path))
    deep = np.array([[0, 100, 254], [255, 205, 60]], np.uint16) * 257
    Image.fromarray(deep).save(tmp_path / "map.png")
    assert_same(load_map(write_map(tmp_path, image="map.png")), due)
    Image.fromarray(deep > 30_000).save(tmp_path / "map.png")
    assert load_map(write_map(tmp_path, image="map.png")).occupied.tolist() == [[0, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(("mode", "unknown"), [("trinary", True), ("scale", True), ("raw", False)])
def test_what_is_transparent_is_unknown(tmp_path, mode, unknown):
    pixels = np.zeros((2, 2, 2), np.uint8)
    pixels[..., 1] = [[255, 254], [0, 255]]
    Image.fromarray(pixels, "LA").save(tmp_path / "map.png")
    grid = load_map(write_map(tmp_path, image="map.png", mode=mode))
    assert grid.unknown.tolist() == [[unknown, False], [False, unknown]]


def test_shades_at_a_threshold_belong_to_it(tmp_path):
    # As in Nav2's map_io.cpp: (255 - 204) / 255 is 0.2, and (255 - 102) / 255 is 0.6.
    image = b"P5\n2 2\n255\n" + bytes([204, 203, 102, 103])
    grid = load_map(write_map(tmp_path, image, free_thresh=0.2, occupied_thresh=0.6))
    assert grid.occupied.tolist() == [[True, False], [False, False]]
    assert grid.unknown.tolist() == [[False, True], [False, True]]


@pytest.mark.parametrize(
    "image", ["pictures/a.pgm", "/elsewhere/a.pgm", "../elsewhere/a.pgm", "HERE/a.pgm", "maps/a.pgm"]
)
def test_an_image_is_found_beside_the_map(tmp_path, image):
    due = load_map(write_map(tmp_path))
    folder = tmp_path / "maps"
    (folder / "pictures").mkdir(parents=True)
    image = image.replace("HERE", str(folder))
    path = write_map(folder, image=image)
    (folder / "map.pgm").rename(folder / ("pictures/a.pgm" if "pictures" in image else "a.pgm"))
    assert_same(load_map(path), due)
    shutil.rmtree(folder / "pictures")
    (folder / "a.pgm").unlink(missing_ok=True)
    with pytest.raises(InvalidFile, match=r"a\.pgm.*(no such file|leaves the folder of the map)"):
        load_map(path)


def test_numbers_are_read_as_nav2_writes_them(tmp_path):
    path = write_map(tmp_path)
    path.write_text(path.read_text().replace("0.05", "5e-2").replace("-2.0", "-1E+1").replace("1.0", "1e-05"))
    grid = load_map(path)
    assert (grid.resolution_m, grid.origin_world) == (0.05, (1e-05, -10.0))


@pytest.mark.parametrize("negate", [1, True])
def test_negated_images_are_dark_where_it_is_free(tmp_path, negate):
    grid = load_map(write_map(tmp_path, negate=negate))
    assert grid.occupied.tolist() == [[True, True, False], [False, False, True]]
    assert grid.unknown.tolist() == [[False, False, False], [False, True, False]]


def test_in_scale_mode_what_lies_between_is_stretched(tmp_path):
    # Occupied by 0.49, that is 60 % of the way from 0.25 to 0.65; by 0.55, 75 %; and by 0.30, 12 %.
    image = b"P5\n3 2\n255\n" + bytes([0, 130, 115, 178, 255, 60])
    grid = load_map(write_map(tmp_path, image, mode="scale"))
    assert grid.occupied.tolist() == [[False, False, True], [True, False, True]]
    assert grid.unknown.tolist() == [[False, False, False], [False, True, False]]


def test_in_raw_mode_shades_are_percentages(tmp_path):
    image = b"P5\n3 2\n255\n" + bytes([0, 100, 65, 50, 255, 25])
    grid = load_map(write_map(tmp_path, image, mode="raw"))
    assert grid.occupied.tolist() == [[False, False, False], [False, True, True]]
    assert grid.unknown.tolist() == [[True, True, False], [False, False, False]]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"image": None}, "missing required field `image`"),
        ({"image": 5}, "image: Expected `str`"),
        ({"image": ""}, "image: Expected `str` of length >= 1"),
        (
            {"image": "../other.pgm"},
            "image: '../other.pgm' leaves the folder of the map: put the image into it",
        ),
        ({"image": "/etc/passwd"}, "image: '/etc/passwd' leaves the folder"),
        ({"image": "a\0b"}, "image: .*is not a file name"),
        ({"image": "none.pgm"}, "none.pgm: no such file"),
        ({"image": "."}, "cannot be read"),
        ({"resolution": None}, "missing required field `resolution`"),
        ({"resolution": 0}, "resolution: Expected `float` >= 0.0001"),
        ({"resolution": -0.05}, "resolution: Expected `float` >= 0.0001, found -0.05"),
        ({"resolution": float("nan")}, "resolution: Expected `float` >= 0.0001, found nan"),
        ({"resolution": float("inf")}, "resolution: Expected `float` <= 100.0, found inf"),
        ({"resolution": "fine"}, "resolution: Expected `float`, got `str`"),
        ({"resolution": True}, "resolution: Expected `float`, got `bool`"),
        ({"origin": [0, 0]}, "origin: Expected `array` of length 3"),
        ({"origin": [0, 0, 0, 0]}, "origin: Expected `array` of length 3"),
        ({"origin": [0, float("nan"), 0]}, r"expected a finite origin, .*found \(0.0, nan\)"),
        ({"origin": [0, 0, float("inf")]}, "expected a finite yaw, found inf"),
        (
            {"origin": [-1e300, 0, 0]},
            r"expected a finite origin, at most 1e\+07 m in x and y, found \(-1e\+300",
        ),
        ({"origin": "here"}, "origin: Expected `array`, got `str`"),
        ({"occupied_thresh": 1.5}, "occupied_thresh: Expected `float` <= 1.0"),
        ({"occupied_thresh": 0.2}, "free_thresh: expected less than occupied_thresh, found 0.25"),
        ({"free_thresh": -1}, "free_thresh: Expected `float` >= 0.0"),
        ({"negate": 2}, "negate: Invalid enum value 2, expected 0 or 1"),
        ({"negate": "no"}, "negate: Expected"),
        ({"mode": "costs"}, "mode: Invalid enum value 'costs', expected 'raw' or 'scale' or 'trinary'"),
    ],
)
def test_headers_that_are_wrong(tmp_path, header, words):
    path = write_map(tmp_path, **header)
    with pytest.raises(InvalidFile, match=words) as caught:
        load_map(path)
    assert str(caught.value).startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "map.yaml: empty file, expected a map's keys, such as image, resolution and origin"),
        ("[1, 2]", "Expected `object`, got `array`"),
        ("a: [1", "line 1, column 6: invalid YAML"),
        ("image: !!python/object/apply:os.system ['true']", "line 1, column 8: invalid YAML: could not"),
        ("image: \x01", "invalid YAML: unacceptable character"),
        ("image: 2024-13-45", "invalid YAML: month must be in 1..12"),
        ("- " * 2000, "invalid YAML: maximum recursion depth"),
        ('image: !!timestamp "x"', "invalid YAML"),
        ('image: !!int ""', "invalid YAML"),
        ("image: !!bool maybe", "invalid YAML"),
        ("? [a]\n: b", "line 1, column 3: invalid YAML: found unhashable key"),
        ("1: 2", "missing required field|Expected `str`"),
        ("a: &a [x]\n" + "b: [" + "*a, " * 9 + "]", "missing required field"),
        ("# " + "x" * 70_000, "has 70002 bytes, expected at most 8192"),
    ],
)
def test_yaml_that_is_none(tmp_path, text, words):
    (tmp_path / "map.yaml").write_text(text)
    with pytest.raises(InvalidFile, match=words):
        load_map(tmp_path / "map.yaml")


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (b"", r"expected a PGM \(P5 or P2\), PNG or BMP image, found b''"),
        (b"P6\n1 1\n255\n000", r"PNG or BMP image, found b'P6\\n1 1"),
        (b"\x89PNG", "PNG or BMP image, found"),
        (b"GIF89a", "PNG or BMP image, found b'GIF89a'"),
        (b"\x89PNG\r\n\x1a\n", "an image that cannot be read"),
        (picture("PNG")[:40], "an image that cannot be read"),
        (picture("PNG")[:-30], "an image that cannot be read"),
        (picture("PNG", size=(1, 5)), "found 1 x 5"),
        (
            announced_png(100_000, 100_000),
            "expected an image of 2 x 2 to 16777216 pixels, found 100000 x 100000",
        ),
        (picture("BMP")[:30], "an image that cannot be read"),
        (picture("BMP")[:-4], "an image that cannot be read"),
        (announced_bmp(100_000, 100_000), "found 100000 x 100000"),
        (b"P5", "cannot be read"),
        (b"P5\n3 2\n", "cannot be read"),
        (b"P5\n3 -2\n255\n" + bytes(6), "cannot be read|expected an image of"),
        (b"P5\n0 0\n255\n", "cannot be read|expected an image of"),
        (b"P5\n1 9\n255\n" + bytes(9), "expected an image of 2 x 2 to 16777216 pixels, found 1 x 9"),
        (b"P5\n99999 99999\n255\n", "found 99999 x 99999"),
        (b"P5\n99999999999 3\n255\n", "cannot be read"),
        (b"P5\n3 2\n255\n000", "cannot be read"),
        (b"P5\n3 2\n0\n" + bytes(6), "cannot be read"),
        (b"P5\nx y\n255\n" + bytes(6), "cannot be read"),
        (b"P2\n3 2\n255\n1 2 3", "cannot be read"),
        (b"P2\n3 2\n255\n1 2 3 4 5 999", "cannot be read"),
        (b"P2\n3 2\n255\n1 2 3 4 5 -6", "cannot be read"),
        (b"P2\n3 2\n255\n1 2 3 4 5 x", "cannot be read"),
    ],
)
def test_images_that_are_none(tmp_path, image, words):
    with pytest.raises(InvalidFile, match=words) as caught:
        load_map(write_map(tmp_path, image))
    assert str(caught.value).startswith(str(tmp_path / "map.pgm"))


@pytest.mark.parametrize("kind", ["PPM", "PNG", "BMP"])
@pytest.mark.parametrize("mode", ["L", "P", "RGBA"])
def test_images_with_flipped_bits_are_read_or_refused(tmp_path, kind, mode):
    whole = picture(kind, "L" if kind == "PPM" else mode, size=(7, 5))
    rng = np.random.default_rng(0)
    for _ in range(60):
        spoilt = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            spoilt[rng.integers(2, len(whole))] ^= 1 << rng.integers(8)
        path = write_map(tmp_path, bytes(spoilt))
        with contextlib.suppress(InvalidFile):
            load_map(path)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "maps").mkdir()
    path = write_map(tmp_path / "maps")
    (tmp_path / "secret.pgm").write_bytes(SHADES)
    (tmp_path / "maps" / "map.pgm").unlink()
    (tmp_path / "maps" / "map.pgm").symlink_to(tmp_path / "secret.pgm")
    with pytest.raises(InvalidFile, match="leaves the folder"):
        load_map(path)


def npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), **options)
    return file.getvalue()


def announced(header):
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def members(**changes):
    cells = np.zeros((4, 5), dtype=bool)
    due = {"occupied": cells, "unknown": cells, "outside": cells, "frame": np.array([0.05, 0.0, 0.0, 0.0])}
    return {
        name: value if isinstance(value, bytes) else npy(value) for name, value in (due | changes).items()
    }


def write_npz(path, contents):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(f"{name}.npy", content)
    return path


def test_the_npz_that_is_spoilt_below_is_good(tmp_path):
    assert load_map(write_npz(tmp_path / "a.npz", members())).occupied.shape == (4, 5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"occupied": np.zeros((4, 5))}, "occupied: .*expected bool, found float64"),
        (
            {"occupied": np.zeros(5, bool)},
            r"occupied: expected \(rows, columns\), all the same, found \(5,\)",
        ),
        ({"unknown": np.zeros((4, 6), bool)}, r"unknown: .*found \(4, 6\)"),
        ({"outside": np.zeros((0, 5), bool)}, "outside: "),
        ({"frame": np.array([0.05, 0, 0])}, "frame: expected cell, x, y and 0 or 1"),
        ({"frame": np.array([0.05, 0, 0, 2.0])}, "frame: expected cell, x, y and 0 or 1"),
        ({"frame": np.array([0.0, 0, 0, 0])}, "expected cells of 0.0001 to 100.0 m, found 0.0"),
        ({"frame": np.array([np.nan, 0, 0, 0])}, "expected cells of"),
        ({"frame": np.array([0.05, np.inf, 0, 0])}, "expected a finite origin"),
        ({"occupied": npy(np.array([{}]), allow_pickle=True)}, "occupied: .*expected bool, found object"),
        ({"occupied": b"\x93NUMPY"}, "occupied: no array"),
        ({"occupied": b"nothing"}, "occupied: no array"),
        (
            {"occupied": announced("{'descr': '|b1', 'fortran_order': False, 'shape': (10**12,)}")},
            "occupied: ",
        ),
        (
            {"occupied": announced("{'descr': '|b1', 'fortran_order': False, 'shape': (99999999, 9999)}")},
            r"occupied: .*found bool \(99999999, 9999\)",
        ),
        ({"occupied": announced("(" * 90)}, "occupied: no array"),
        ({"occupied": npy(np.zeros((6000, 6000), bool))}, "occupied: has 36000128 bytes"),
    ],
)
def test_npz_files_that_are_no_map(tmp_path, changes, words):
    with pytest.raises(InvalidFile, match=words):
        load_map(write_npz(tmp_path / "a.npz", members(**changes)))


def test_npz_files_that_are_broken(tmp_path):
    path = write_npz(tmp_path / "a.npz", {"occupied": members()["occupied"]})
    with pytest.raises(InvalidFile, match=r"frame: missing"):
        load_map(path)
    whole = write_npz(path, members()).read_bytes()
    for spoilt in (b"", b"PK\x03\x04", whole[:-30], whole[: len(whole) // 2]):
        path.write_bytes(spoilt)
        with pytest.raises(InvalidFile, match=r"a broken \.npz file"):
            load_map(path)
    rng = np.random.default_rng(0)
    for _ in range(200):  # whatever bit is flipped, it is read or refused
        spoilt = bytearray(whole)
        spoilt[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(spoilt))
        with contextlib.suppress(InvalidFile):
            load_map(path)


@pytest.mark.parametrize("name", ["map.png", "map", "map.json"])
def test_names_of_other_files_are_refused(tmp_path, name):
    with pytest.raises(InvalidFile, match=r"ends with \.yaml, \.yml, \.npz or \.map"):
        load_map(tmp_path / name)
    with pytest.raises(UserError, match=r"ends with \.yaml, \.yml or \.npz"):
        save_map(random_grid(), tmp_path / name)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="cannot be written: No such file"):
        save_map(random_grid(), tmp_path / "none" / "map.npz")
    with pytest.raises(InvalidFile, match="no such file"):
        load_map(tmp_path / "map.npz")


def test_an_occupancy_grid_comes_back(tmp_path):
    grid = random_grid()
    message = Occupancy.of(grid)
    assert message.data.dtype == np.int8
    assert message.data.shape == (30 * 47,)
    assert (message.width, message.height) == (47, 30)
    assert_same(message.grid(), grid)
    assert_same(message._replace(data=message.data.tolist()).grid(), grid)


@pytest.mark.parametrize(("turns", "yaw"), [(1, math.pi / 2), (2, math.pi), (3, -math.pi / 2), (4, math.tau)])
def test_a_map_turned_by_a_right_angle_keeps_its_cells(tmp_path, turns, yaw):
    path = write_map(tmp_path, b"P5\n30 20\n255\n" + np.random.default_rng(0).bytes(600))
    upright = load_map(path)
    turned = load_map(write_map(tmp_path, path.with_suffix(".pgm").read_bytes(), origin=[1.0, -2.0, yaw]))
    np.testing.assert_array_equal(turned.occupied, np.rot90(upright.occupied, -turns))
    np.testing.assert_array_equal(turned.unknown, np.rot90(upright.unknown, -turns))
    corner = {1: (-1.0, 0.0), 2: (-1.5, -1.0), 3: (0.0, -1.5), 4: (0.0, 0.0)}[turns]
    np.testing.assert_allclose(turned.origin_world, np.array([1.0, -2.0]) + corner, atol=1e-9)


@pytest.mark.parametrize("yaw", [0.3, 1.0, 2.5, -0.8, math.pi / 4])
def test_a_turned_map_loses_no_obstacle_and_makes_up_none(yaw):
    rng = np.random.default_rng(1)
    data = rng.choice([0, 100, -1], p=[0.8, 0.1, 0.1], size=(20, 30))
    grid = Occupancy(data, 30, 20, 0.1, (5.0, -3.0), yaw).grid()
    cos, sin = math.cos(yaw), math.sin(yaw)
    points = rng.random((100_000, 2)) * (30, 20)  # on the message, in its cells
    of_message = data[points[:, 1].astype(int), points[:, 0].astype(int)]
    world = points @ np.array([[cos, sin], [-sin, cos]]) * 0.1 + (5.0, -3.0)
    columns, rows = ((world - grid.origin_world) / 0.1).astype(int).T
    assert grid.occupied[rows, columns][of_message == 100].all()
    assert (grid.unknown | grid.occupied)[rows, columns][of_message == -1].all()
    # Each occupied cell, a little enlarged, has a point in an occupied cell of the message.
    within = np.stack(np.meshgrid(*[np.linspace(-0.04, 1.04, 55)] * 2), axis=-1).reshape(-1, 2)
    cells = np.argwhere(grid.occupied)[:, None, ::-1] + within + (np.array(grid.origin_world) - (5, -3)) / 0.1
    columns, rows = np.moveaxis(np.floor(cells @ np.array([[cos, -sin], [sin, cos]])).astype(int), -1, 0)
    inside = (columns >= 0) & (columns < 30) & (rows >= 0) & (rows < 20)
    hits = inside & (data[np.clip(rows, 0, 19), np.clip(columns, 0, 29)] == 100)
    assert hits.any(axis=1).all()
    assert grid.unknown[0, 0]  # beyond the message
    assert not (grid.unknown & grid.occupied).any()


def test_a_turned_map_is_not_too_large():
    data = np.zeros((4000, 4000), np.int8)
    with pytest.raises(UserError, match=r"found 5657 x 5657 when it is turned by 0\.785"):
        Occupancy(data, 4000, 4000, 0.1, yaw=math.pi / 4).grid()


def test_an_occupancy_grid_begins_at_the_lower_left():
    grid = Occupancy([0, 100, -1, 65, 64, 25], 3, 2, 0.1, (5.0, 6.0)).grid()
    assert grid.occupied.tolist() == [[False, True, False], [True, False, False]]
    assert grid.unknown.tolist() == [[False, False, True], [False, True, False]]
    assert grid.clearance_at(5.15, 6.05) < 0
    assert Occupancy.of(grid).data.tolist() == [0, 100, -1, 100, -1, 0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data": [0] * 5}, "expected 6 whole numbers"),
        ({"data": [0.0] * 6}, "found float64"),
        ({"data": [0, 0, 101, 0, 0, 0]}, r"data\[2\] is 101"),
        ({"data": np.array([0, 0, 0, 255, 0, 0], np.uint8)}, r"data\[3\] is 255"),
        ({"data": [0, 0, 0, 0, -2, 0]}, r"data\[4\] is -2"),
        ({"width": 6, "height": 1}, "2 x 2 to 16777216 cells, found 6 x 1"),
        ({"width": 10**6, "height": 10**6}, "found 1000000 x 1000000"),
        ({"resolution_m": 0.0}, "expected cells of"),
        ({"resolution_m": float("nan")}, "expected cells of"),
        ({"origin_world": (0.0, float("inf"))}, "finite origin"),
        ({"yaw": float("nan")}, "finite yaw, found nan"),
        ({"yaw": float("inf")}, "finite yaw"),
    ],
)
def test_occupancy_grids_that_are_wrong(changes, words):
    with pytest.raises(UserError, match=words):
        Occupancy([0] * 6, 3, 2, 0.1)._replace(**changes).grid()
