"""The embedded world against the bare libraries, on the same places of the same houses.

The bare render is what MuJoCo needs at least for a colour and a depth picture: update, render once, read
both buffers, convert nothing. Measurements alternate and count the CPU time of all threads, so that a busy
machine is busy for both sides.
"""

import math
import time
from collections import defaultdict
from pathlib import Path

import msgspec
import mujoco
import numpy as np
import pybullet

from benchmarks.rows import Row
from proctor.core.registry import suite_path
from proctor.core.types import Action, Vector3
from proctor.exams.datasets import load_dataset
from proctor.exams.vln.episode import Episode
from proctor.scenes.frames import frame_of, frame_of_part
from proctor.scenes.scene import Scene
from proctor.worlds.mock import MockEnv
from proctor.worlds.mujoco.render.gl import drawing
from proctor.worlds.mujoco.wheeled.env import VLNEnv
from proctor.worlds.mujoco.wheeled.model import quaternion_of_matrix

HOUSES, PLACES_PER_HOUSE, PEER_PLACES = 3, 12, 3
MOVES = {"FORWARD": Action.FORWARD, "LEFT": Action.LEFT}
MOCK_BUDGET_S = 20e-6


def bench() -> list[Row]:
    large, small, blind = look_and_move(640, 480), look_and_move(224, 224), move_blindly()
    bare_s, observation_s = large["bare"], large["observation"]
    return [
        Row("RGB-D observation 640x480 (vs bare MuJoCo render)", observation_s, bare_s, 1.0),
        Row("RGB-D observation 640x480 (vs PyBullet's renderer)", observation_s, large["peer"], 1 / 6),
        Row("RGB-D observation 224x224 (vs bare MuJoCo render)", small["observation"], small["bare"], 1.05),
        Row("FORWARD with RGB-D 640x480 (vs bare MuJoCo render)", large["FORWARD"], bare_s, 1.3),
        Row("LEFT with RGB-D 640x480 (vs bare MuJoCo render)", large["LEFT"], bare_s, 1.1),
        Row("FORWARD with RGB-D 224x224 (vs bare MuJoCo render)", small["FORWARD"], small["bare"], 1.4),
        Row("FORWARD without pictures (vs bare MuJoCo render)", blind["FORWARD"], bare_s, 0.06),
        Row("FORWARD by physics alone (vs bare MuJoCo render)", blind["FORWARD by physics"], bare_s, 1.0),
        Row("LEFT by physics alone (vs bare MuJoCo render)", blind["LEFT by physics"], bare_s, 0.2),
        Row("MockEnv step (vs its budget)", mock_step_s(), MOCK_BUDGET_S, 1.0),
    ]


@drawing()
def look_and_move(width, height):
    """Return the medians of what is measured with pictures of one size."""
    times = defaultdict(list)
    env = VLNEnv(width=width, height=height)
    for house in houses():
        places = places_along(house)
        env.reset(places[0])
        bare, peer = BareRender(env._stage.world.model), Peer(house.scene_config_path)
        for index, place in enumerate(places):
            for name, action in MOVES.items():
                env.reset(place)
                world = env._stage.world
                measure(times["bare"], lambda: bare.render(world.data))  # noqa: B023  (called at once)
                measure(times["observation"], lambda: env._observe(env._stage))
                measure(times[name], lambda: env.step(action))  # noqa: B023
            if index < PEER_PLACES:
                measure(times["peer"], lambda: peer.render(world.pose()))  # noqa: B023
        bare.close()
        peer.close()
    env.close()
    return {name: float(np.median(values)) for name, values in times.items()}


def move_blindly():
    """Return the medians of moves without pictures, as they are and by physics."""
    times = defaultdict(list)
    env, physics = VLNEnv(sensors=["odom"]), VLNEnv(sensors=["odom"])
    for house in houses():
        for place in places_along(house):
            for name, action in MOVES.items():
                env.reset(place)
                physics.reset(place)
                physics._stage.motion.free_base = None
                measure(times[name], lambda: env.step(action))  # noqa: B023
                measure(times[f"{name} by physics"], lambda: physics.step(action))  # noqa: B023
    return {name: float(np.median(values)) for name, values in times.items()}


def houses() -> list[Episode]:
    """Return the first episodes of some houses."""
    episodes = load_dataset(suite_path("houses-v1")).episodes
    return list({episode.scene_config_path: episode for episode in episodes}.values())[:HOUSES]


def places_along(episode: Episode) -> list[Episode]:
    """Return episodes that start along the reference path, looking along it."""
    path = [Vector3.of(point) for point in episode.reference_path]
    chosen = np.linspace(0, len(path) - 2, PLACES_PER_HOUSE).astype(int)
    places = []
    for index in chosen:
        here, there = path[index], path[index + 1]
        yaw_deg = math.degrees(math.atan2(there.y - here.y, there.x - here.x))
        places.append(
            msgspec.structs.replace(episode, start_position=here, start_rotation=Vector3(0, 0, yaw_deg))
        )
    return places


def measure(times, call) -> None:
    start_s = time.process_time()
    call()
    times.append(time.process_time() - start_s)


def mock_step_s() -> float:
    env, times = MockEnv(), []
    for _ in range(50):
        env.reset(Episode(max_steps=200))
        start_s = time.perf_counter()
        for step in range(200):
            env.step(1 + step % 3)
        times.append((time.perf_counter() - start_s) / 200)
    return float(np.median(times))


class BareRender:
    """One pass, as MuJoCo's own functions do it, into buffers that are used again."""

    def __init__(self, model) -> None:
        width, height = model.vis.global_.offwidth, model.vis.global_.offheight
        self.model = model
        self.context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        self.scene = mujoco.MjvScene(model, 2000)
        self.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self.option, self.camera = mujoco.MjvOption(), mujoco.MjvCamera()
        self.camera.type, self.camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, 0
        self.view = mujoco.MjrRect(0, 0, width, height)
        self.rgb, self.depth = np.empty((height, width, 3), np.uint8), np.empty((height, width), np.float32)

    def render(self, data) -> None:
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.context)
        category = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self.model, data, self.option, None, self.camera, category, self.scene)
        mujoco.mjr_render(self.view, self.scene, self.context)
        mujoco.mjr_readPixels(self.rgb, self.depth, self.view, self.context)

    def close(self) -> None:
        self.context.free()


class Peer:
    """The same boxes, cylinders and spheres in PyBullet, without textures and shadows."""

    def __init__(self, scene_path: str) -> None:
        self.client = pybullet.connect(pybullet.DIRECT)
        for item in Scene.load(Path(scene_path)).objects:
            frame = frame_of(item)
            for part in item.parts:
                self.add(part, frame_of_part(part, frame))
        self.projection = pybullet.computeProjectionMatrixFOV(60, 640 / 480, 0.05, 20)

    def add(self, part, at) -> None:
        shape = {
            "box": {"shapeType": pybullet.GEOM_BOX, "halfExtents": at.size / 2},
            "cylinder": {"shapeType": pybullet.GEOM_CYLINDER, "radius": at.size[0] / 2, "length": at.size[2]},
            "sphere": {"shapeType": pybullet.GEOM_SPHERE, "radius": at.size[0] / 2},
        }[part.shape]
        visual = pybullet.createVisualShape(
            rgbaColor=[*part.color[:3], 1], physicsClientId=self.client, **shape
        )
        w, x, y, z = quaternion_of_matrix(at.rotation)
        pybullet.createMultiBody(
            baseVisualShapeIndex=visual,
            basePosition=at.translation,
            baseOrientation=[x, y, z, w],
            physicsClientId=self.client,
        )

    def render(self, pose) -> None:
        eye = [pose.x, pose.y, 1.25]
        target = [pose.x + math.cos(pose.yaw), pose.y + math.sin(pose.yaw), 1.25]
        pybullet.getCameraImage(
            640,
            480,
            pybullet.computeViewMatrix(eye, target, [0, 0, 1]),
            self.projection,
            shadow=0,
            renderer=pybullet.ER_TINY_RENDERER,
            physicsClientId=self.client,
        )

    def close(self) -> None:
        pybullet.disconnect(self.client)
