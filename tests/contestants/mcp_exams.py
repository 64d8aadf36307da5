"""Small exams for agents over MCP, clients of the real package, and the same actions by a local policy."""

import json
import threading
from contextlib import asynccontextmanager, contextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from served_agents import episode

from proctor.contestants.mcp_server import HttpTransport, mcp_server
from proctor.contestants.mcp_tools import ExamTools
from proctor.contestants.seat import McpSeat
from proctor.core.interfaces import Policy
from proctor.exams.datasets import save_dataset
from proctor.runs import run as runs
from proctor.runs.attempts import Patience
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig, plan_run
from proctor.worlds.mock import MockEnv

LONG_S = 60.0
TOKEN = "a-token-for-tests"
LEGACY, NEW = "legacy", "2026-07-28"
VERSIONS = {LEGACY: "2025-11-25", NEW: "2026-07-28"}


def save_episodes(path, names=("first", "second")):
    save_dataset([episode(name) for name in names], path)
    return path


def exam_config(dataset, env="mock", **options):
    job = RunJob(env=env, policy="mcp", policy_options={"transport": "http", **options})
    return RunConfig(job=job, dataset=dataset, patience=Patience(pause_s=0.0))


def exam(tmp_path, names=("first", "second"), env="mock", exam_class=None, **options):
    """Run a small exam in another thread, and yield its tools."""
    config = exam_config(save_episodes(tmp_path / "episodes.json", names), env, **options)
    return exam_of(config, tmp_path / "run", exam_class)


@contextmanager
def exam_of(config, out, exam_class=None):
    """Run an exam in another thread, and yield its tools; `seat`, `report` and `finish` are on them, too."""
    plan = plan_run(config, out)
    seat = McpSeat(**config.job.policy_options)
    tools = ExamTools(seat, (exam_class or plan.dataset.exam)())

    def take_exam():
        def note(state):
            tools.note_progress(state.total, len(state.finished))

        tools.report = runs.run(plan, note, policy=seat)

    thread = threading.Thread(target=take_exam)
    thread.start()
    tools.seat = seat
    tools.finish = lambda: thread.join(LONG_S)
    try:
        yield tools
    finally:
        seat.close()
        thread.join(LONG_S)


@contextmanager
def served(tools, host="127.0.0.1", *, is_structured=False, **options):
    """Serve tools over HTTP."""
    server = mcp_server(tools, is_structured=is_structured)
    transport = HttpTransport(server, tools, token=TOKEN, address=(host, 0), **options)
    transport.start()
    try:
        yield transport.url
    finally:
        transport.close()


@asynccontextmanager
async def connected(url, mode=NEW, token=TOKEN):
    """Connect a client over HTTP."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=LONG_S) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


async def report_of(client, name, **arguments):
    """Call a tool that must succeed, and return what its text says."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)


async def take_episodes(client, *chunks):
    """Take all episodes by the same chunks of actions; return all results, the last one is a refusal."""
    results = []
    while True:
        results.append(await client.call_tool("begin_episode", {}))
        if results[-1].is_error:
            return results
        told = json.loads(results[-1].content[0].text)
        for chunk in chunks:
            arguments = {"episode": told["episode"], "actions": chunk, "expect_step": told["step"]}
            results.append(await client.call_tool("act", arguments))
            told = json.loads(results[-1].content[0].text)


class Scripted(Policy):
    """Does the same actions in every episode."""

    def __init__(self, actions):
        self._actions = actions
        self._step = 0

    def reset(self, episode_info):
        self._step = 0

    def act(self, observation):
        self._step += 1
        return self._actions[self._step - 1]


class GatedEnv(MockEnv):
    """A world whose steps take until a test opens the gate."""

    gate, is_asked = threading.Event(), threading.Event()

    def step(self, action):
        self.is_asked.set()
        assert self.gate.wait(LONG_S)
        return super().step(action)
