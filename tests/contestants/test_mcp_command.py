"""`proctor mcp` as a process of its own: whole exams, clients that leave, interrupts, going on."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from itertools import chain

import msgspec
import pytest
from mcp import Client, StdioServerParameters
from mcp_exams import LEGACY, LONG_S, NEW, TOKEN, Scripted, connected, report_of, save_episodes, take_episodes
from running import run

from proctor.runs.folder import RunFolder
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig

SIMPLE = ["FORWARD", "LEFT", "STOP"]
SMALL = ["--env-option", "width=64", "--env-option", "height=48"]


ONE_STEP = """
import asyncio, json, sys
from mcp import Client, StdioServerParameters

async def main():
    async with Client(StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])) as client:
        told = json.loads((await client.call_tool("begin_episode", {})).content[0].text)
        request = {"episode": told["episode"], "actions": ["FORWARD"], "expect_step": 0}
        await client.call_tool("act", request)
        print("acted", flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


def command(*words):
    return [sys.executable, "-m", "proctor.cli", "mcp", *map(str, words)]


@contextmanager
def process(*words, token=TOKEN):
    """Start `proctor mcp`; yield it, and what it says until it serves."""
    started = subprocess.Popen(
        command("--port", 0, *words),
        env={**os.environ, "PROCTOR_MCP_TOKEN": token},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = ""
        while "Take the exam" not in said and (line := started.stderr.readline()):
            said += line
        yield started, said
    finally:
        started.kill()
        started.communicate()


def url_in(said):
    return re.search(r"Serving at (\S+),", said)[1]


def over_stdio(dataset, out):
    words = command("--stdio", "--dataset", dataset, "--env", "mock", "--out", out)
    return StdioServerParameters(command=words[0], args=words[1:])


def brief(folder):
    return [
        (e.episode_id, e.error and (e.error.side, e.error.kind), e.actions)
        for e in RunFolder.open(folder).episodes
    ]


@pytest.mark.parametrize("mode", [LEGACY, NEW])
def test_over_stdio_a_client_takes_an_exam_and_the_results_say_so(tmp_path, mode):
    dataset = save_episodes(tmp_path / "episodes.json")

    async def take():
        async with Client(over_stdio(dataset, tmp_path / "run"), mode=mode) as client:
            results = await take_episodes(client, SIMPLE)
            return results, await client.call_tool("begin_episode", {})

    results, late = asyncio.run(take())
    assert results[-1].content[0].text == late.content[0].text == "the exam is over: all 2 episodes are done"
    assert brief(tmp_path / "run") == [("first", None, [1, 2, 0]), ("second", None, [1, 2, 0])]
    assert (tmp_path / "run/results.json").exists()
    folder = RunFolder.open(tmp_path / "run")
    assert "taken over stdio: the agent ran as the same user and could read the exam's files" in folder.notes
    assert folder.manifest["identity"]["policy_options"]["transport"] == "stdio"


def test_over_http_the_server_ends_with_the_exam_and_the_same_command_has_nothing_to_do(tmp_path):
    words = [
        "--dataset",
        save_episodes(tmp_path / "episodes.json"),
        "--env",
        "mock",
        "--out",
        tmp_path / "run",
    ]

    async def take(url):
        async with connected(url) as client:
            return await take_episodes(client, SIMPLE)

    with process(*words, "--name", "my agent") as (server, said):
        assert TOKEN not in said
        results = asyncio.run(take(url_in(said)))
        stdout, stderr = server.communicate(timeout=LONG_S)
    assert results[-1].is_error
    assert server.returncode == 0
    assert stdout == ""
    assert "my agent: 2 of 2 episodes" in stderr
    assert f"Results: {tmp_path / 'run'}" in stderr.replace("\n", " ")
    again = subprocess.run(
        command(*words, "--name", "my agent", "--port", 0), capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    assert "my agent: 2 of 2 episodes" in again.stderr
    assert "taken over stdio" not in again.stderr


def test_a_client_that_is_gone_in_mid_episode_has_failed_it_and_the_same_command_goes_on(tmp_path):
    dataset = save_episodes(tmp_path / "episodes.json")
    server = over_stdio(dataset, tmp_path / "run")

    async def leave(*, after_a_step):
        async with Client(server) as client:
            handle = (await report_of(client, "begin_episode"))["episode"]
            if after_a_step:
                await report_of(client, "act", episode=handle, actions=["FORWARD"], expect_step=0)

    async def take():
        async with Client(server) as client:
            return await take_episodes(client, SIMPLE)

    asyncio.run(leave(after_a_step=False))  # not scored
    asyncio.run(leave(after_a_step=True))
    results = asyncio.run(take())
    assert json.loads(results[0].content[0].text)["episodes_after_this"] == 0
    assert brief(tmp_path / "run") == [
        ("first", ("agent", "contestant_left"), [1]),
        ("second", None, [1, 2, 0]),
    ]


def test_a_server_ends_after_its_client_was_killed(tmp_path):
    dataset = save_episodes(tmp_path / "episodes.json")
    words = over_stdio(dataset, tmp_path / "run")
    client = subprocess.Popen(
        [sys.executable, "-c", ONE_STEP, words.command, *words.args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert client.stdout.readline() == "acted\n"
    client.kill()
    _, stderr = client.communicate(timeout=LONG_S)  # the server has it, too: until that has ended
    assert "the client has closed the connection; the same command goes on" in stderr
    assert brief(tmp_path / "run") == [("first", ("agent", "contestant_left"), [1])]


def test_an_interrupted_server_goes_on_with_the_episode_that_it_left(tmp_path):
    words = [
        "--dataset",
        save_episodes(tmp_path / "episodes.json"),
        "--env",
        "mock",
        "--out",
        tmp_path / "run",
    ]

    async def begin(url):
        async with connected(url) as client:
            handle = (await report_of(client, "begin_episode"))["episode"]
            await report_of(client, "act", episode=handle, actions=SIMPLE, expect_step=0)
            handle = (await report_of(client, "begin_episode"))["episode"]
            await report_of(client, "act", episode=handle, actions=["LEFT"], expect_step=0)

    async def take(url):
        async with connected(url) as client:
            return await take_episodes(client, SIMPLE)

    with process(*words) as (server, said):
        asyncio.run(begin(url_in(said)))
        server.send_signal(signal.SIGINT)
        _, stderr = server.communicate(timeout=LONG_S)
    assert server.returncode == 130
    assert "the same command goes on" in stderr
    with process(*words) as (server, said):
        results = asyncio.run(take(url_in(said)))
        server.communicate(timeout=LONG_S)
    assert server.returncode == 0
    assert len(results) == 3  # begin_episode, act, and the refusal
    assert brief(tmp_path / "run") == [("first", None, [1, 2, 0]), ("second", None, [1, 2, 0])]


def test_in_a_real_world_the_results_are_those_of_the_same_actions_here(tmp_path):
    chunks = [["LEFT", "FORWARD", "FORWARD"], ["RIGHT"], ["FORWARD", "STOP"]]

    async def take(url):
        async with connected(url) as client:
            return await take_episodes(client, *chunks)

    with process("--suite", "houses-v1", "--episodes", 1, *SMALL, "--out", tmp_path / "run") as (
        server,
        said,
    ):
        results = asyncio.run(take(url_in(said)))
        server.communicate(timeout=LONG_S)
    job = RunJob(policy="random", env_options={"width": 64, "height": 48})
    config = RunConfig(job=job, suite="houses-v1", episodes=1)
    local = run(config, tmp_path / "local", policy=Scripted([*chain(*chunks)])).results.episodes
    found = RunFolder.open(tmp_path / "run").episodes
    assert [msgspec.json.encode((e.metrics, e.trajectory)) for e in found] == [
        msgspec.json.encode((e.metrics, e.trajectory)) for e in local
    ]
    told = "".join(part.text for result in results for part in result.content if part.type == "text")
    assert local[0].scene_id not in told
    assert local[0].episode_id not in told


def test_an_exam_with_several_cameras_shows_all_of_them(tmp_path):
    words = command(
        "--stdio", "--suite", "tabletop-v1", "--episodes", 1, "--depth", "--out", tmp_path / "run"
    )

    async def look():
        async with Client(StdioServerParameters(command=words[0], args=words[1:])) as client:
            begun = await client.call_tool("begin_episode", {})
            while begun.is_error:  # a busy machine needs long for the first scene
                assert "is being prepared" in begun.content[0].text
                begun = await client.call_tool("begin_episode", {})
            return begun

    begun = asyncio.run(look())
    labels = json.loads(begun.content[0].text)["pictures"]
    assert [label.partition(" (")[0] for label in labels] == ["head camera", "wrist camera", "depth_head"]
    assert [part.type for part in begun.content] == ["text", "image", "image", "image"]


@pytest.mark.parametrize(
    ("token", "words", "problem"),
    [
        ("short", [], "PROCTOR_MCP_TOKEN: expected at least 16 printable ASCII characters, found 5"),
        (TOKEN, ["--episode-timeout", "0"], "episode_timeout_s: expected seconds above 0"),
        (TOKEN, ["--name", "../.."], "--name: expected 1 to 60 printable characters"),
        (TOKEN, ["--env", "moc"], "unknown env 'moc'; did you mean 'mock'?"),
        (TOKEN, ["--port", "99999"], "--port: expected a number from 0 to 65535, found 99999"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_served(
    tmp_path, proctor, monkeypatch, token, words, problem
):
    monkeypatch.setenv("PROCTOR_MCP_TOKEN", token)
    dataset = save_episodes(tmp_path / "episodes.json")
    code, _, stderr = proctor("mcp", "--dataset", dataset, "--env", "mock", "--out", tmp_path / "run", *words)
    assert code == 2
    assert problem in " ".join(stderr.split())
    assert not (tmp_path / "run").exists()


def test_without_the_package_the_command_says_what_to_install(tmp_path, proctor, monkeypatch):
    for name in ("anyio", "mcp", "uvicorn"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "proctor.contestants.mcp_server", raising=False)
    dataset = save_episodes(tmp_path / "episodes.json")
    code, _, stderr = proctor("mcp", "--dataset", dataset, "--env", "mock")
    assert code == 2
    assert "pip install 'proctor-eval[mcp]'" in " ".join(stderr.split())
