"""An episode of navigation for a chat policy, without a world."""

from contextlib import contextmanager

import numpy as np
from strict_servers import KEY

from proctor.agents.chat.policy import ChatPolicy
from proctor.core.types import CameraFacts, EpisodeInfo, Sensor

VLN = "proctor.exams.vln.chat:VlnChat"
SHAPE = (48, 64, 3)


def info(**changes):
    known = {
        "episode_id": "e",
        "instruction": "Go to the sofa.",
        "max_steps": 50,
        "seed": 7,
        "sensors": {"rgb": Sensor(dtype="uint8", shape=SHAPE)},
        "actions": ("STOP", "FORWARD", "LEFT", "RIGHT"),
        "camera": CameraFacts(fov_deg=60.0, pitch_deg=0.0, height_m=1.25),
        "chat": VLN,
    }
    return EpisodeInfo(**{**known, **changes})


def view(seed=0, **more):
    """Return an observation whose picture depends on the seed."""
    rng = np.random.default_rng(seed)
    return {
        "rgb": rng.integers(0, 255, SHAPE, dtype=np.uint8),
        "depth": np.zeros(SHAPE[:2], np.uint16),
        **more,
    }


@contextmanager
def asking(server, monkeypatch, begin=True, **options):
    """Yield a policy that asks a server, with an episode begun."""
    monkeypatch.setenv("PROCTOR_CHAT_KEY", KEY)
    fast = {"timeout_s": 20, "retry_for_s": 20, "model": server.model}
    policy = ChatPolicy(server.address, **{**fast, **options})
    try:
        if begin:
            policy.reset(info())
        yield policy
    finally:
        policy.close()
