"""Frames that a broken or hostile peer might send, drawn by hypothesis: nearly right, wrong, and absurd."""

import json
from typing import Literal, NamedTuple

import msgpack
from hypothesis import strategies as st


class FuzzedFrame(NamedTuple):
    """What to put on the wire."""

    kind: Literal["text", "binary", "raw"]
    """A WebSocket message, or bytes that only pretend to be one."""
    data: bytes


EDGE_NUMBERS = [0, -1, 1, 4, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1e308, -0.0, 5e-324]
NOT_FINITE = [float("nan"), float("inf"), float("-inf")]
HARD_TEXTS = ["", "proctor", "\x00", "\ud800", "action", "FORWARD", "__ndarray__", "9" * 5000, "é" * 999]
TYPES = ["hello", "reset_episode", "get_action", "action", "episode_end", "error", "ping", "", None, 3]

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=20)
    | st.sampled_from([*EDGE_NUMBERS, *NOT_FINITE, *HARD_TEXTS])
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.integers(0, 9), inner, max_size=4)
    ),
    max_leaves=5,
)
arrays = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["<u2", "|u1", "<f8", "|O", "V8", "<M8[s]", "U4", "(2,3)f4", "", "f", 5]),
        "shape": st.lists(st.sampled_from([-1, 0, 1, 2, 3, 2**40, 2**63, "3", None]), max_size=5) | values,
        "data": st.binary(max_size=64) | values,
    }
)
pictures = st.sampled_from(["", "====", "iVBORw0KGgo=", "/9j/", "AAAA" * 100, "\u2603"]) | st.text(
    max_size=30
)
actions = (
    st.sampled_from([0, 1, 2, 3, "FORWARD", {"action": 1}, {"action": {"action": {"action": 1}}}])
    | values
    | arrays
)
poses = st.fixed_dictionaries({"type": st.just("joint_position"), "qpos": st.lists(st.floats(), max_size=12)})


def messages(session_id: str = "s") -> st.SearchStrategy[dict]:
    """Draw messages of all types with any of their fields wrong, missing, or of another message."""
    observation = st.dictionaries(
        st.sampled_from(["rgb", "depth", "qpos", "instruction", "x"]), pictures | arrays | values, max_size=4
    )
    formats = st.dictionaries(
        st.sampled_from(["rgb", "depth", "qpos"]),
        st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(["uint8", "uint16", "float64", "object", "zzz"]),
                "shape": st.lists(st.integers(-1, 2**40), max_size=4),
                "encoding": st.sampled_from(["png", "jpeg", "list", "raw", "gif"]),
            }
        )
        | values,
        max_size=3,
    )
    fields = {
        "session_id": st.sampled_from([session_id, "other", ""]) | values,
        "request_id": st.integers(-1, 5) | values,
        "action": actions | poses,
        "observation": observation | values,
        "observation_format": formats | values,
        "episode": st.dictionaries(st.sampled_from(["episode_id", "instruction", "seed"]), values) | values,
        "protocol": st.sampled_from(["proctor", "other"]) | values,
        "version": st.sampled_from([0, 1, 2, 10**30]) | values,
        "pictures": st.sampled_from(["png", "jpeg", "gif"]) | values,
        "status": st.sampled_from(["success", "failure", "?"]) | values,
        "metrics": st.dictionaries(st.text(max_size=5), values, max_size=3) | values,
        "num_steps": st.integers() | values,
        "message": values,
        "payload": values,
    }
    return st.fixed_dictionaries({}, optional={"type": st.sampled_from(TYPES) | values, **fields})


def _as_json(value: object) -> bytes:
    return json.dumps(_textual(value)).encode("utf-8", "surrogatepass")


def _textual(value: object) -> object:
    """Replace what JSON cannot hold; NaN and infinity stay, as sloppy encoders write them."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): _textual(inner) for key, inner in value.items()}
    return [_textual(inner) for inner in value] if isinstance(value, list) else value


def _as_msgpack(value: object) -> bytes:
    try:
        return msgpack.packb(value, unicode_errors="surrogatepass")
    except (OverflowError, ValueError):  # numbers beyond 64 bits
        return msgpack.packb(str(value)[:100], unicode_errors="surrogatepass")


@st.composite
def frames(draw: st.DrawFn, session_id: str = "s") -> FuzzedFrame:
    """Draw a frame: mostly a message, sometimes damaged; else nested absurdly, noise, or no WebSocket."""
    sort = draw(st.sampled_from(["message"] * 8 + ["deep", "noise", "raw"]))
    if sort == "deep":
        depth = draw(st.sampled_from([10, 600, 5000, 200_000]))
        opening, kind = draw(
            st.sampled_from(
                [(b"[", "text"), (b'{"a":', "text"), (b"\x91", "binary"), (b"\x81\xa1a", "binary")]
            )
        )
        wrapped = draw(st.booleans())
        head = {"text": b'{"type":"action","action":', "binary": b"\x82\xa4type\xa6action\xa6action"}[kind]
        return FuzzedFrame(kind, (head if wrapped else b"") + opening * depth)
    if sort == "noise":
        return FuzzedFrame(draw(st.sampled_from(["text", "binary"])), draw(st.binary(max_size=200)))
    if sort == "raw":
        return FuzzedFrame("raw", draw(st.binary(min_size=2, max_size=40)))
    message = draw(messages(session_id) | values)
    kind = draw(st.sampled_from(["text", "binary"]))
    data = _as_json(message) if draw(st.integers(0, 9)) and kind == "text" else _as_msgpack(message)
    damage = draw(st.sampled_from(["none"] * 4 + ["cut", "flip", "repeat"]))
    place = draw(st.integers(0, max(0, len(data) - 1)))
    if damage == "cut":
        data = data[:place]
    elif damage == "flip" and data:
        data = data[:place] + bytes([data[place] ^ draw(st.integers(1, 255))]) + data[place + 1 :]
    elif damage == "repeat":
        data = data[:place] + data[place : place + 8] * draw(st.integers(2, 50)) + data[place:]
    return FuzzedFrame(kind, data)
