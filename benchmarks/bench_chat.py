"""Chat models: how many requests are in flight with eight workers, and what the client itself costs.

The server is `examples/chat_server.py` in a process of its own. Each of its episodes has the same number of
decisions, and it takes a second for each. Only the time after the workers are ready counts.
"""

import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from msgspec.structs import replace

from benchmarks.rows import Row
from proctor.agents.chat import policy as chat
from proctor.agents.chat.prompt import encode_picture
from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset
from proctor.exams.vln.exam import VlnExam
from proctor.runs.attempts import Attempts
from proctor.runs.job import RunJob
from proctor.runs.pool import WorkerPool
from proctor.worlds.mujoco.wheeled.env import VLNEnv

SERVER = Path(__file__).parents[1] / "examples" / "chat_server.py"
WORKERS, EPISODES_EACH = 8, 2
DECISIONS = 15  # for what the client costs; the server says STOP at 20
BUDGET_S = 0.005


def bench() -> list[Row]:
    return [throughput(), client_cost()]


def throughput() -> Row:
    episodes = load_dataset(suite_path("houses-v1")).episodes
    scenes = list(dict.fromkeys(episode.scene_id for episode in episodes))[:WORKERS]
    chosen = [[e for e in episodes if e.scene_id == scene][:EPISODES_EACH] for scene in scenes]
    with serving(latency_s=1.0) as address:
        one_s = run_s(chosen[0], 1, address)
        many_s = run_s([episode for some in chosen for episode in some], WORKERS, address)
    name = f"chat: {WORKERS} workers, {WORKERS} times the episodes (vs one)"
    return Row(name, many_s, one_s, 1 / 0.9)


def client_cost() -> Row:
    """Measure the CPU time of a decision with three pictures of 640x480, each action being a decision."""
    episode = load_dataset(suite_path("houses-v1")).episodes[0]
    env = VLNEnv()
    observation = env.reset(episode)
    told = VlnExam().brief(episode, observation)
    encoding_s = 0.0

    def timed(*arguments):
        nonlocal encoding_s
        begun_s = time.thread_time()
        picture = encode_picture(*arguments)
        encoding_s += time.thread_time() - begun_s
        return picture

    costs_s = []
    with serving(latency_s=0.0) as address, mock.patch.object(chat, "encode_picture", timed):
        agent = chat.ChatPolicy(address, model="demo")
        agent.reset(replace(told, episode_id="bench", camera=env.camera_facts()))
        for _ in range(DECISIONS):
            encoding_s, begun_s = 0.0, time.thread_time()
            agent.act(observation)
            costs_s.append(time.thread_time() - begun_s - encoding_s)
            while agent._queue:
                agent.act(observation)
        agent.close()
    env.close()
    own_s = statistics.median(costs_s)
    return Row("chat: client's CPU time per decision (vs its budget)", own_s, BUDGET_S, 1.0)


def run_s(episodes, workers, address) -> float:
    # Small pictures: to draw large ones takes a worker's own time, whatever the client does.
    job = RunJob(
        env="embedded",
        env_options={"width": 160, "height": 120, "sensors": ["rgb"]},
        policy=address,
        policy_options={"model": "demo"},
        task="vln",
    )
    pool = WorkerPool(job, workers)
    pool.start()
    start_s = time.perf_counter()
    results = list(pool.run(Attempts(episodes)))
    passed_s = time.perf_counter() - start_s
    pool.close()
    assert all(done.result.error is None for done in results), results[0].result.error
    return passed_s


@contextmanager
def serving(latency_s):
    """Yield the address of a server in another process."""
    command = [sys.executable, str(SERVER), "--port", "0", "--latency", str(latency_s)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield "chat+" + server.stdout.readline().split()[-1]
    finally:
        server.terminate()
        server.communicate(timeout=30)
