"""A client to copy: your own robot or simulator asks a served agent for actions, over protocol version 1.

    proctor serve-policy my_agent:Agent                  # in one terminal
    python examples/agent_client.py ws://localhost:8080  # in another

It needs `websockets`, `numpy` and `pillow`, but not Proctor. docs/protocol.md describes the messages.
"""

import argparse
import base64
import io
import json
import socket
import threading
import time
import uuid
from typing import Any

import numpy as np
from PIL import Image
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

HELLO_TIMEOUT_S = 1.0  # agents that are not served by Proctor may send no hello


class AgentError(Exception):
    """The agent failed, or broke the protocol."""


class AgentClient:
    """One session with an agent. After an error make a new one, so that a late reply is never used."""

    def __init__(
        self, url: str, *, token: str = "", connect_timeout_s: float = 30.0, action_timeout_s: float = 60.0
    ) -> None:
        self._timeout_s = action_timeout_s
        self._session_id, self._request_id, self._instruction = str(uuid.uuid4()), 0, {"text": ""}
        self._connection = connect(
            url,
            subprotocols=["proctor.v1.json"],  # type: ignore[list-item]
            additional_headers={"Authorization": f"Bearer {token}"} if token else {},
            open_timeout=connect_timeout_s,
            ping_interval=None,  # an agent may think for longer than a ping may take
        ).__enter__()
        try:
            hello = self._connection.recv(timeout=HELLO_TIMEOUT_S)
        except TimeoutError:
            return
        if _parsed(hello).get("version") != 1:
            self.close()
            raise AgentError(f"expected a hello of protocol version 1, found {hello!r:.200}")
        self._exchange({"type": "hello", "protocol": "proctor", "version": 1, "name": "agent_client"})

    def reset(self, instruction: str, observation: dict[str, Any], *, task: str = "vln", **more: Any) -> None:
        """Begin an episode.

        Args:
            instruction: What the robot shall do.
            observation: Any one: it tells the agent which arrays it will get.
            task: The exam's name.
            more: What else the agent is told: `max_steps`, `seed`, `task_goal`, ...
        """
        self._instruction = {"text": instruction, "language": "en"}
        episode = {"episode_id": uuid.uuid4().hex, "task_type": task, "instruction": self._instruction} | more
        formats = {
            name: {"dtype": value.dtype.name, "shape": value.shape, "encoding": _encoding(value)}
            for name, value in observation.items()
            if isinstance(value, np.ndarray)
        }
        self._exchange({"type": "reset_episode", "episode": episode, "observation_format": formats})

    def act(self, observation: dict[str, Any]) -> Any:
        """Send what the robot sees, such as `{"rgb": uint8 (H, W, 3)}`, and return the agent's action."""
        self._request_id += 1
        seen = {name: _written(value) for name, value in observation.items()}
        message = {"type": "get_action", "request_id": self._request_id, "observation": seen}
        seen["instruction"] = self._instruction
        reply = self._exchange(message, needs_reply=True)
        if reply.get("type") != "action" or reply.get("request_id") not in (None, self._request_id):
            self.close()
            raise AgentError(f"expected action {self._request_id}, found {reply!s:.200}")
        return reply.get("action")

    def end(self, status: str, num_steps: int, metrics: dict[str, float] | None = None) -> None:
        """End the episode with "success", "failure" or "error"."""
        numbers = {"metrics": metrics or {}, "num_steps": num_steps}
        self._exchange({"type": "episode_end", "status": status, **numbers})

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _exchange(self, message: dict[str, Any], *, needs_reply: bool = False) -> dict[str, Any]:
        frame = json.dumps({"session_id": self._session_id, **message})
        deadline_s = time.monotonic() + self._timeout_s
        # `send` takes no timeout: an agent that does not read would stop the robot's loop for ever.
        watchdog = threading.Timer(self._timeout_s, self._connection.socket.shutdown, [socket.SHUT_RDWR])
        watchdog.start()
        try:
            self._connection.send(frame)
            return _parsed(self._connection.recv()) if needs_reply else {}
        except ConnectionClosed as closed:
            if time.monotonic() >= deadline_s:
                raise TimeoutError(f"the agent took more than {self._timeout_s:g} s") from None
            raise AgentError(f"the agent closed the connection: {closed}") from None
        finally:
            watchdog.cancel()


def _parsed(frame: str | bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(frame))
    except (TypeError, ValueError, RecursionError):
        raise AgentError(f"expected a JSON object, found {frame!r:.200}") from None


def _encoding(array: Any) -> str:
    is_colour = array.dtype == np.uint8 and array.ndim == 3 and array.shape[2] == 3
    return "png" if is_colour or (array.dtype == np.uint16 and array.ndim == 2) else "list"


def _written(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or _encoding(value) == "list":
        return value.tolist() if isinstance(value, np.ndarray) else value
    file = io.BytesIO()
    Image.fromarray(value).save(file, "PNG", compress_level=1)
    return base64.b64encode(file.getvalue()).decode()


def main() -> None:
    """Ask an agent about a few pictures. Put the camera and the motors of your robot here."""
    parser = argparse.ArgumentParser(description="Ask a served agent about a few pictures.")
    parser.add_argument("url", nargs="?", help="such as ws://localhost:8080")
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.url is None:
        parser.print_help()
        return
    client = AgentClient(arguments.url)
    pictures = np.random.default_rng(0).integers(0, 256, (arguments.steps, 48, 64, 3), np.uint8)
    client.reset("Walk to the sofa and stop.", {"rgb": pictures[0]}, max_steps=arguments.steps)
    for step, picture in enumerate(pictures, start=1):
        print(f"step {step}: {client.act({'rgb': picture})}")
    client.end("failure", arguments.steps)
    client.close()


if __name__ == "__main__":
    main()
