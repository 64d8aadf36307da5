"""The tabletop world against real time, bare physics and bare renders, while the expert works.

Bare physics is `mj_step` alone for as long as one action lasts, from the same state. Bare renders are what
MuJoCo needs at least for the head's colour and depth and the wrist's colour: update, render, read, convert
nothing. Measurements alternate, so that a busy machine is busy for both sides; those with pictures count the
CPU time of all threads.
"""

import time
from collections import defaultdict

import mujoco
import numpy as np

from benchmarks.rows import Row
from proctor.core.interfaces import TRUTH
from proctor.core.registry import suite_path
from proctor.core.types import EpisodeInfo
from proctor.exams.datasets import load_dataset
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.exams.pick_place.expert.expert import ExpertPolicy
from proctor.worlds.mujoco.render.gl import drawing

EPISODES, LOOK_EVERY = 4, 6
REAL_TIME = 25
CONVEX = ("cup", "can", "bottle", "block", "box", "cylinder", "ball")


def bench() -> list[Row]:
    times = defaultdict(list)
    for episode in convex_episodes():
        work(episode, times)
        look(episode, times)
    median = {name: float(np.median(values)) for name, values in times.items()}
    budget_s = episode.sim_params.control_period / REAL_TIME
    return [
        Row(
            f"pick-and-place step, no pictures (vs 1/{REAL_TIME} of real time)", median["step"], budget_s, 1.0
        ),
        Row("pick-and-place step, no pictures (vs bare mj_step)", median["step"], median["bare_step"], 2.0),
        Row("head RGB-D and wrist RGB (vs bare MuJoCo renders)", median["seen"], median["bare_seen"], 1.0),
        Row(
            "expert's step with pictures (vs bare MuJoCo renders)",
            median["worked"],
            median["bare_seen"],
            1.45,
        ),
    ]


def convex_episodes():
    """Return episodes in which all that moves is one thing, which is convex but for a handle."""
    found = []
    for episode in load_dataset(suite_path("tabletop-v1")).episodes:
        movable = [item for item in episode.scene_objects if not item.static]
        if len(movable) == 1 and movable[0].shape.kind in CONVEX:
            found.append(episode)
    return found[:EPISODES]


def steps(env, episode):
    """Let the expert work, and give back control before each step."""
    policy = ExpertPolicy()
    observation = env.reset(episode)
    policy.reset(
        EpisodeInfo(episode_id="", instruction="", max_steps=500, seed=0, task=episode.task, episode=episode)
    )
    done = False
    while not done:
        action = policy.act({**observation, TRUTH: env.info()})
        result = yield action
        observation, _, done, _ = result


def work(episode, times) -> None:
    env = PickPlaceEnv(sensors=[])
    doing = steps(env, episode)
    action = next(doing)
    world = env._world
    copy = mujoco.MjData(world.model)
    substeps = episode.sim_params.set_points_per_action * episode.sim_params.physics_steps_per_set_point
    while True:
        mujoco.mj_copyData(copy, world.model, world.data)
        start_s = time.perf_counter()
        mujoco.mj_step(world.model, copy, nstep=substeps)
        between_s = time.perf_counter()
        result = env.step(action)
        times["step"].append(time.perf_counter() - between_s)
        times["bare_step"].append(between_s - start_s)
        try:
            action = doing.send(result)
        except StopIteration:
            break
    env.close()


@drawing()
def look(episode, times) -> None:
    env = PickPlaceEnv()
    doing = steps(env, episode)
    action, bare, count = next(doing), BareRenders(env._world.model), 0
    while True:
        start_s = time.process_time()
        result = env.step(action)
        stepped_s = time.process_time() - start_s
        count += 1
        if count % LOOK_EVERY == 0:
            start_s = time.process_time()
            bare.render(env._world.data)
            between_s = time.process_time()
            env._observe(episode, env._truth)
            times["seen"].append(time.process_time() - between_s)
            times["bare_seen"].append(between_s - start_s)
        try:
            start_s = time.process_time()
            action = doing.send(result)
            times["worked"].append(stepped_s + time.process_time() - start_s)
        except StopIteration:
            break
    bare.close()
    env.close()


class BareRenders:
    """One pass for each camera, as MuJoCo's own functions do it, into buffers that are used again."""

    def __init__(self, model) -> None:
        self.model = model
        self.context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        self.scene = mujoco.MjvScene(model, 2000)
        self.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self.option = mujoco.MjvOption()
        self.views = [self.view("head", 640, 480, depth=True), self.view("wrist", 320, 240, depth=False)]

    def view(self, name, width, height, *, depth):
        camera = mujoco.MjvCamera()
        camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, self.model.camera(name).id
        rgb = np.empty((height, width, 3), np.uint8)
        return (
            camera,
            mujoco.MjrRect(0, 0, width, height),
            rgb,
            np.empty((height, width), np.float32) if depth else None,
        )

    def render(self, data) -> None:
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.context)
        category = mujoco.mjtCatBit.mjCAT_ALL
        for camera, rect, rgb, depth in self.views:
            mujoco.mjv_updateScene(self.model, data, self.option, None, camera, category, self.scene)
            mujoco.mjr_render(rect, self.scene, self.context)
            mujoco.mjr_readPixels(rgb, depth, rect, self.context)

    def close(self) -> None:
        self.context.free()
