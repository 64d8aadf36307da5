"""A policy that counts what it uses and keeps a transcript, as one that asks a hosted model does."""

import base64
import gzip
import hashlib
import io
import json

import numpy as np
from PIL import Image

from proctor.core.errors import AgentUnavailable
from proctor.core.interfaces import Policy
from proctor.core.types import Usage

RIGHT = [1, 1, 1, 1, 0]
"""The actions that solve `served_agents.episode`."""


class TalkingPolicy(Policy):
    """Decides on two actions at once; each decision takes 1000 tokens in, 40 of them cached, and 50 out.

    `cost_usd` is what a decision costs. `reply` is what the model says. `fails` is what goes wrong:
    `usage` or `transcript` for what these methods return then, an exception among them; `at` for the step at
    which `act` raises after it has asked.
    """

    def __init__(self, *, cost_usd=0.25, reply="I see a <b>door</b>.", fails=None, at=None, wire=True):
        self._cost_usd, self._reply, self._fails, self._at, self._wire = (
            cost_usd,
            reply,
            fails or {},
            at,
            wire,
        )
        self._used, self._lines, self._step, self._pictures = Usage(), [], 0, set()

    def reset(self, episode_info):
        self._lines, self._step, self._pictures = [], 0, set()
        self._instruction = episode_info.instruction

    def act(self, observation):
        step, self._step = self._step, self._step + 1
        if step % 2 == 0:
            self._ask(step, observation)
        if step == self._at:
            raise AgentUnavailable("the model is overloaded")
        return RIGHT[step] if step < len(RIGHT) else 0

    def _ask(self, step, observation):
        sha256 = self._picture(observation)
        prompt = f"{self._instruction} What next at step {step}?"
        body = {"messages": [{"role": "user", "content": [prompt, f"$picture:{sha256}"]}]}
        usage = Usage(
            decisions=1,
            requests=1,
            input_tokens=1000,
            cached_tokens=40,
            output_tokens=50,
            cost_usd=self._cost_usd,
        )
        self._used += usage
        actions = RIGHT[step : step + 2]
        self._lines += [
            {"kind": "request", "step": step, "attempt": 0, "body": body},
            {
                "kind": "reply",
                "step": step,
                "attempt": 0,
                "status": 200,
                "seconds": 0.5,
                "body": {"text": "ok"},
            },
            {
                **{"kind": "decision", "step": step, "actions": actions, "note": f"note of step {step}"},
                **{"prompt": prompt, "reply": self._reply, "pictures": [sha256]},
            },
        ]

    def _picture(self, observation):
        stream = io.BytesIO()
        Image.fromarray(np.asarray(observation["rgb"])).save(stream, "JPEG")
        sha256 = hashlib.sha256(stream.getvalue()).hexdigest()
        if sha256 not in self._pictures:
            self._pictures.add(sha256)
            data = base64.b64encode(stream.getvalue()).decode()
            line = {"kind": "picture", "sha256": sha256, "media_type": "image/jpeg", "data": data}
            self._lines.append(line)
        return sha256

    def usage(self):
        if "usage" in self._fails:
            return _said(self._fails["usage"])
        used, self._used = self._used, Usage()
        return used

    def transcript(self):
        if "transcript" in self._fails:
            return _said(self._fails["transcript"])
        return packed(self._lines) if self._wire else b""


def packed(lines):
    """Return lines as a transcript."""
    return gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines), mtime=0)


def _said(value):
    if isinstance(value, BaseException):
        raise value
    return value
