import contextlib
import io
import math
import struct
import subprocess
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from PIL import Image

from proctor.agents.arrays import MAX_PIXELS, decode_picture, encode_picture, is_picture
from proctor.agents.messages import Format

COLOUR = arrays_of.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3)))
DEPTH = arrays_of.arrays(np.uint16, st.tuples(st.integers(1, 9), st.integers(1, 9)))


def format_of(pixels, encoding="png"):
    return Format(dtype=pixels.dtype.name, shape=pixels.shape, encoding=encoding)


def shades(height=48, width=64):
    """A picture without edges, which JPEG keeps well."""
    rows, columns = np.mgrid[0:height, 0:width]
    return np.stack([4 * rows, 3 * columns, rows + columns], axis=2).astype(np.uint8)


def depths(height=48, width=64):
    return np.arange(height * width, dtype=np.uint16).reshape(height, width) * 17


@settings(max_examples=50)
@given(COLOUR | DEPTH)
def test_png_gives_back_every_pixel(pixels):
    found = decode_picture(encode_picture(pixels, "png"), format_of(pixels))
    assert found.dtype == pixels.dtype
    assert np.array_equal(found, pixels)
    found[...] = 0  # a policy may draw on it


@pytest.mark.parametrize("pixels", [shades(), depths()], ids=["colour", "depth"])
def test_a_png_is_one_for_strict_readers(pixels, tmp_path):
    data = encode_picture(pixels, "png")
    with Image.open(io.BytesIO(data)) as image:
        image.verify()  # each chunk's checksum
        assert image.format == "PNG"
    (tmp_path / "picture.png").write_bytes(data)
    # node reads it by the letter of the format: chunks, checksums, and as many bytes as there are pixels
    script = """
        const data = require("fs").readFileSync(process.argv[1]), zlib = require("zlib")
        let at = 8, kinds = [], packed = []
        while (at < data.length) {
            const size = data.readUInt32BE(at), kind = data.toString("latin1", at + 4, at + 8)
            if (kind == "IDAT") packed.push(data.subarray(at + 8, at + 8 + size))
            kinds.push(kind), at += 12 + size
        }
        console.log(kinds.join(" "), at == data.length, zlib.inflateSync(Buffer.concat(packed)).length)
    """
    height, line = pixels.shape[0], pixels[0].nbytes
    try:
        run = subprocess.run(
            ["node", "-e", script, str(tmp_path / "picture.png")],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except FileNotFoundError:
        pytest.skip("node is not installed")
    assert run.stdout.split() == ["IHDR", "IDAT", "IEND", "true", str(height * (1 + line))], run.stderr


def test_arrays_that_do_not_lie_in_memory_row_by_row():
    for pixels in (shades()[::-1, ::2], np.asfortranarray(shades()), depths().T, depths().astype(">u2")):
        found = decode_picture(encode_picture(pixels, "png"), format_of(pixels))
        assert np.array_equal(found, pixels)


def test_jpeg_is_close():
    pixels = shades()
    found = decode_picture(encode_picture(pixels, "jpeg"), format_of(pixels, "jpeg"))
    assert np.abs(found.astype(int) - pixels).max() <= 12
    assert np.abs(found.astype(int) - pixels).mean() < 2
    found[...] = 0


@pytest.mark.parametrize(
    ("dtype", "shape", "answer"),
    [
        ("uint8", (4, 4, 3), True),
        ("uint16", (4, 4), True),
        ("uint8", (4, 4), False),
        ("uint8", (4, 4, 4), False),
        ("uint16", (4, 4, 3), False),
        ("float32", (4, 4), False),
        ("uint8", (0, 4, 3), False),  # PNG has no empty pictures
    ],
)
def test_what_can_be_a_picture(dtype, shape, answer):
    assert is_picture(dtype, shape) is answer


def png_announcing(width, height, *, bits=8, colour_type=2):
    """A file of a hundred bytes with a right header."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, 0)
    packed = chunk(b"IDAT", zlib.compress(bytes(100)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + packed + chunk(b"IEND", b"")


def jpeg_announcing(width, height):
    data = bytearray(encode_picture(shades(), "jpeg"))
    at = data.index(b"\xff\xc0") + 5  # start of frame: length, precision, then height and width
    data[at : at + 4] = struct.pack(">HH", height, width)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (png_announcing(100_000, 100_000), "png"),
        (png_announcing(2**31 - 1, 2**31 - 1), "png"),
        (jpeg_announcing(65_535, 65_535), "jpeg"),
    ],
)
def test_a_small_file_that_announces_a_giant_picture_is_refused(data, encoding):
    with pytest.raises(ValueError, match="expected a picture of 64x48 RGB, found"):
        decode_picture(data, Format(dtype="uint8", shape=(48, 64, 3), encoding=encoding))


@pytest.mark.parametrize("shape", [(100_000, 100_000, 3), (math.isqrt(MAX_PIXELS) + 1,) * 2 + (3,)])
def test_a_giant_picture_is_refused_even_if_it_was_announced(shape):
    data = png_announcing(shape[1], shape[0])
    with pytest.raises(ValueError, match="no picture can be of uint8"):
        decode_picture(data, Format(dtype="uint8", shape=shape, encoding="png"))


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


GREY = Image.fromarray(shades()[..., 0])


@pytest.mark.parametrize(
    ("data", "encoding", "problem"),
    [
        (b"", "png", "cannot be read"),
        (b"", "jpeg", "cannot be read"),
        (b"GIF89a" + bytes(50), "png", "cannot be read"),
        (saved(GREY, "GIF"), "png", "cannot be read"),
        (saved(GREY, "PNG"), "png", "expected a picture of 64x48 RGB, found 64x48 L"),
        (saved(GREY.convert("P"), "PNG"), "png", "found 64x48 P"),
        (saved(GREY.convert("RGBA"), "PNG"), "png", "found 64x48 RGBA"),
        (saved(GREY, "JPEG"), "jpeg", "found 64x48 L"),
        (saved(GREY.convert("CMYK"), "JPEG"), "jpeg", "found 64x48 CMYK"),
        (encode_picture(shades(48, 63), "png"), "png", "found 63x48 RGB"),
        (encode_picture(shades(64, 48), "png"), "png", "found 48x64 RGB"),
        (encode_picture(depths(), "png"), "png", "found 64x48 I;16"),
        (encode_picture(shades(), "png"), "jpeg", "cannot be read"),
        (encode_picture(shades(), "jpeg"), "png", "cannot be read"),
        (encode_picture(shades(), "png")[:200], "png", "cannot be read"),
        (encode_picture(shades(), "jpeg")[:-100], "jpeg", "cannot be read"),
        (png_announcing(64, 48), "png", "cannot be read"),
    ],
)
def test_other_files_are_refused(data, encoding, problem):
    with pytest.raises(ValueError, match=problem):
        decode_picture(data, Format(dtype="uint8", shape=(48, 64, 3), encoding=encoding))


def test_what_comes_after_a_picture_does_not_matter():
    for encoding in ("png", "jpeg"):
        data, format_ = encode_picture(shades(), encoding), format_of(shades(), encoding)
        assert np.array_equal(decode_picture(data + bytes(1000), format_), decode_picture(data, format_))


def test_of_an_animation_the_first_picture_counts():
    frames = [Image.fromarray(shades()), Image.fromarray(255 - shades())]
    data = saved(frames[0], "PNG", save_all=True, append_images=frames[1:])
    assert b"acTL" in data
    assert np.array_equal(decode_picture(data, format_of(shades())), shades())


@settings(max_examples=150)
@given(st.data(), st.sampled_from(["png", "jpeg"]))
def test_a_damaged_file_is_a_picture_or_refused(data, encoding):
    file = bytearray(encode_picture(shades(12, 16), encoding))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(file) - 1))
        file[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    format_ = Format(dtype="uint8", shape=(12, 16, 3), encoding=encoding)
    with contextlib.suppress(ValueError):
        assert decode_picture(bytes(file), format_).shape == (12, 16, 3)
