r"""A model to try chat policies with: an OpenAI-compatible server that answers by a rule from the picture.

It goes where the floor is free. Where a wall is near, the picture has the same colours at its lower edge as
at half of its height; where there is floor, they differ. It goes FORWARD if they differ ahead, and else turns
to where they differ most; also if the last two pictures are the same. After some decisions it says STOP. It
does not read the instruction.

    python examples/chat_server.py --port 8000
    proctor run --suite houses-v1 --episodes 5 \
      --policy chat+http://127.0.0.1:8000/v1 --policy-option model=demo

`--latency 1` makes it as slow as a hosted model, for measuring.
"""

import argparse
import base64
import io
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from PIL import Image

MODEL = "demo"
FREE = 25.0  # how much colours must differ, of 255
SAME = 2.0  # how much pictures may differ that are the same
DECISIONS = 20  # the last one is STOP


def pictures_of(request: dict[str, Any]) -> list[str]:
    """Return the data URLs of all pictures."""
    parts = [part for message in request["messages"] for part in message["content"] if isinstance(part, dict)]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


def pixels_of(url: str) -> Any:
    """Return a picture, made small: 60 x 90 pixels."""
    image = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
    return np.asarray(image.convert("RGB").resize((90, 60)), float)


def decide(request: dict[str, Any]) -> tuple[list[str], str]:
    """Return actions and a note."""
    text = json.dumps(request["messages"][-1]["content"])
    if f"decision {DECISIONS} of" in text:
        return ["STOP"], "I have gone far enough."
    pictures = pictures_of(request)
    if not pictures:
        return ["FORWARD"], "I see nothing."
    pixels = pixels_of(pictures[-1])
    is_stuck = len(pictures) > 1 and np.abs(pixels - pixels_of(pictures[-2])).mean() < SAME
    differs = np.abs(pixels[48:].mean(axis=0) - pixels[27:33].mean(axis=0)).mean(axis=1)
    left, ahead, right = (float(differs[column : column + 30].min()) for column in (0, 30, 60))
    note = f"Free floor: left {left:.0f}, ahead {ahead:.0f}, right {right:.0f}."
    if ahead > FREE and not is_stuck:
        return ["FORWARD"] * 2, note
    turned = text.rfind("LEFT LEFT"), text.rfind("RIGHT RIGHT")  # not to and fro
    turns_left = turned[0] > turned[1] if max(turned) > text.rfind("FORWARD FORWARD") else left > right
    return ["LEFT" if turns_left else "RIGHT"] * 2, note


def completion(request: dict[str, Any]) -> dict[str, Any]:
    """Return a reply as /chat/completions has it; of pick-and-place, it only waits."""
    tools = {tool["function"]["name"] for tool in request.get("tools", [])}
    arguments: dict[str, Any] = {"steps": 20, "note": "I do not know how to move a hand."}
    name = "wait" if "wait" in tools else "act"
    if name == "act":
        actions, note = decide(request)
        arguments = {"actions": actions, "note": note}
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": [call]}
    words = len(json.dumps(request)) // 400  # about: most of it is pictures
    return {
        "id": "chatcmpl-demo",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": words, "completion_tokens": 20, "total_tokens": words + 20},
    }


class Handler(BaseHTTPRequestHandler):
    """Answers /v1/models and /v1/chat/completions."""

    protocol_version = "HTTP/1.1"  # keeps connections
    latency_s = 0.0

    def do_GET(self) -> None:
        """List the only model."""
        if self.path == "/v1/models":
            self.say(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        else:
            self.say(404, {"error": {"message": f"there is no {self.path}"}})

    def do_POST(self) -> None:
        """Answer a question."""
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path != "/v1/chat/completions":
            self.say(404, {"error": {"message": f"there is no {self.path}"}})
        elif request["model"] != MODEL:
            self.say(404, {"error": {"message": f"there is no model {request['model']}"}})
        else:
            time.sleep(self.latency_s)
            self.say(200, completion(request))

    def say(self, status: int, body: dict[str, Any]) -> None:
        """Send JSON."""
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description="an OpenAI-compatible server that answers by a rule")
    parser.add_argument("--port", type=int, help="where to serve; 0 takes a free one")
    parser.add_argument("--latency", type=float, default=0.0, metavar="S", help="seconds before each reply")
    arguments = parser.parse_args()
    if arguments.port is None:
        parser.print_help()
        return
    Handler.latency_s = arguments.latency
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler)
    print(f"serving model {MODEL} at http://127.0.0.1:{server.server_port}/v1", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
