"""An agent that takes an exam over MCP, with the client of the `mcp` package and a rule instead of a model.

    python examples/mcp_agent.py             starts `proctor mcp --stdio` for two small episodes
    proctor mcp --suite houses-v1 --episodes 5
    PROCTOR_MCP_TOKEN=... python examples/mcp_agent.py http://127.0.0.1:8077/mcp

The rule goes where the floor is free: it compares the colours in the lower part of the picture, left, ahead
and right, with those at its lower edge. After some calls it stops. It does not read the instruction.
"""

import argparse
import asyncio
import base64
import io
import json
import os
import sys

import httpx2
import numpy as np
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult
from PIL import Image

BLOCKED = 30.0  # how much colours may differ from the floor's, of 255
CALLS = 15  # before it stops
SMALL = ("--env-option", "width=160", "--env-option", "height=120")
LOCAL = ("mcp", "--stdio", "--suite", "houses-v1", "--episodes", "2", "--name", "mcp_agent", *SMALL)


def choose(picture: bytes) -> list[str]:
    """Return the next actions."""
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB").resize((90, 60)), float)[36:]
    floor = np.median(pixels[18:, 30:60], axis=(0, 1))
    differs = np.abs(pixels - floor).mean(axis=2)
    left, ahead, right = (float(np.median(differs[:, column : column + 30])) for column in (0, 30, 60))
    if ahead < BLOCKED:
        return ["FORWARD"] * 3
    return ["LEFT" if left <= right else "RIGHT"] * 2


def read(result: CallToolResult) -> tuple[str, bytes]:
    """Return the text of a result, and its first picture."""
    texts = [part.text for part in result.content if part.type == "text"]
    pictures = [base64.b64decode(part.data) for part in result.content if part.type == "image"]
    return texts[0], pictures[0] if pictures else b""


async def take_exam(client: Client) -> None:
    """Take episodes until there are none left."""
    while True:
        begun = await client.call_tool("begin_episode", {})
        text, picture = read(begun)
        if begun.is_error:
            print(text)
            return
        report = json.loads(text)
        print(f"{report['instruction']} ({report['steps_left']} steps)", flush=True)
        handle = report["episode"]
        for _ in range(CALLS):
            arguments = {"episode": handle, "actions": choose(picture), "expect_step": report["step"]}
            text, picture = read(await client.call_tool("act", arguments))
            report = json.loads(text)
            if report["done"]:
                break
        else:
            text, _ = read(await client.call_tool("stop", {"episode": handle}))
            report = json.loads(text)
        print(f"  after step {report['step']}: {report['next']}", flush=True)


async def main(address: str | None, token: str) -> None:
    """Connect over HTTP if there is an address, else start a server."""
    if address:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=120) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            await take_exam(client)
    else:
        server = StdioServerParameters(command=sys.executable, args=["-m", "proctor.cli", *LOCAL])
        async with Client(server) as client:
            await take_exam(client)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("address", nargs="?", help="as `proctor mcp` prints it (default: start a server)")
    arguments = parser.parse_args()
    token = os.environ.get("PROCTOR_MCP_TOKEN", "")
    if arguments.address and not token:
        parser.error("PROCTOR_MCP_TOKEN is not set: copy the `export` command that `proctor mcp` has printed")
    asyncio.run(main(arguments.address, token))
