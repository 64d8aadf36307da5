"""What the tests of the wire have in common."""

import pytest
from hypothesis import strategies as st

from proctor.agents.codec import JsonCodec, MsgpackCodec
from proctor.agents.messages import ActionReply

CODECS = {"json": JsonCodec(), "msgpack": MsgpackCodec()}
BOTH = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
PACKED = CODECS["msgpack"]

WHOLE = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = [*WHOLE, "float16", "float32", "float64"]
KEYS = st.text(max_size=6)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def action_of(codec, action):
    return codec.read_agent(codec.encode(ActionReply(action=action))).action
