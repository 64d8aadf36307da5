"""A person's key press on the page of `proctor play`, until the new picture is displayed in Chromium.

In houses-v1 at 640x480, on loopback, against the time that the env itself takes for the same steps.
"""

import importlib.util
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

from benchmarks.rows import NotMeasured, Row
from proctor.contestants.play import PlayServer
from proctor.contestants.play_session import PlaySession
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig, plan_run
from proctor.runs.run import run
from proctor.worlds.mujoco.wheeled.env import VLNEnv

KEYS = ["ArrowLeft", "ArrowUp", "ArrowRight", "ArrowUp"] * 25
WARM_UP = 10
BUDGET_S, OVERHEAD_BUDGET_S = 0.150, 0.075
PRESS = """(code) => new Promise((resolve) => {
  const image = document.querySelector("#view0");
  const pressed = performance.now();
  const shown = () => requestAnimationFrame(() => resolve(performance.now() - pressed));
  image.addEventListener("load", shown, { once: true });
  document.dispatchEvent(new KeyboardEvent("keydown", { code, bubbles: true }));
})"""
"""Presses a key; the result is the time until the frame that shows the new picture, in milliseconds."""


class TimedEnv(VLNEnv):
    """The embedded world, which notes how long its steps take."""

    steps_s: ClassVar[list[float]] = []

    def step(self, action):
        began = time.perf_counter()
        result = super().step(action)
        self.steps_s.append(time.perf_counter() - began)
        return result


def bench() -> list[Row | NotMeasured]:
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if binary is None or importlib.util.find_spec("playwright") is None:
        return [NotMeasured("play: key to picture", "Chromium or playwright is missing", is_failure=False)]
    keys_s, steps_s = played(binary)
    key_s, step_s = np.median(keys_s), np.median(steps_s)
    slow_s = np.percentile(keys_s, 95)
    return [
        Row("play: key to displayed picture, p95 (vs its budget)", slow_s, BUDGET_S, 1.0),
        Row(
            "play: key to picture minus the env's step (vs its budget)",
            key_s - step_s,
            OVERHEAD_BUDGET_S,
            1.0,
        ),
    ]


def played(binary: str) -> tuple[list[float], list[float]]:
    """Play one episode; return the times of the keys, and of the env's steps."""
    times_s: list[float] = []
    TimedEnv.steps_s.clear()
    with tempfile.TemporaryDirectory() as folder:
        job = RunJob(policy="human", env="benchmarks.bench_play:TimedEnv")
        plan = plan_run(RunConfig(job=job, suite="houses-v1", episodes=1), Path(folder) / "run")
        session = PlaySession(plan.dataset.exam)
        with PlayServer(session, title="houses-v1", port=0) as server:
            browser = threading.Thread(target=press_keys, args=(binary, server.url, times_s), daemon=True)
            browser.start()
            run(plan, session.on_progress, policy=session.begin("bench", plan))  # it renders in this thread
            browser.join()
    return times_s[WARM_UP:], TimedEnv.steps_s[WARM_UP : len(KEYS)]


def press_keys(binary: str, url: str, times_s: list[float]) -> None:
    """Press all keys, then STOP."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (only this benchmark needs it)

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1366, "height": 768})
        page.goto(url)
        page.wait_for_selector(".rules", timeout=120_000)
        page.keyboard.press("Enter")
        page.wait_for_selector("#view0")
        times_s.extend(page.evaluate(PRESS, key) / 1000 for key in KEYS)
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        page.wait_for_selector(".score", timeout=120_000)
        chromium.close()
