"""The embedded world against the bare libraries, on the same places of the same houses.

The bare render is what MuJoCo needs at least for a colour and a depth picture: update, render once, read
both buffers, convert nothing. Measurements alternate, so that a busy machine is busy for both sides.
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
from proctor.core.types import Action, Vector3
from proctor.envs.mock import MockEnv
from proctor.envs.vln import VLNEnv
from proctor.episodes.datasets import load_dataset
from proctor.episodes.vln import Episode
from proctor.registry import suite_path
from proctor.scenes.frames import frame_of, frame_of_part
from proctor.scenes.scene_config import load_scene
from proctor.sim.model import quaternion_of_matrix

HOUSES, PLACES_PER_HOUSE, PEER_PLACES = 3, 12, 3
MOCK_BUDGET_S = 20e-6


def bench() -> list[Row]:
    times = defaultdict(list)
    env = VLNEnv()
    episodes = load_dataset(suite_path("houses-v1")).episodes
    houses = list({episode.scene_config_path: episode for episode in episodes}.values())[:HOUSES]
    for house in houses:
        places = places_along(house)
        env.reset(places[0])
        bare, peer = BareRender(env._stage.world.model), Peer(house.scene_config_path)
        for index, place in enumerate(places):
            env.reset(place)
            world = env._stage.world
            for _ in range(3):
                measure(times["bare"], lambda: bare.render(world.data))  # noqa: B023  (called at once)
                measure(times["observation"], lambda: env._observe(env._stage))
            if index < PEER_PLACES:
                measure(times["peer"], lambda: peer.render(world.pose()))  # noqa: B023
            measure(times["forward"], lambda: env.step(Action.FORWARD))
        bare.close()
        peer.close()
    env.close()
    median = {name: float(np.median(values)) for name, values in times.items()}
    return [
        Row("RGB-D observation 640x480 (vs bare MuJoCo render)", median["observation"], median["bare"], 1.15),
        Row(
            "RGB-D observation 640x480 (vs PyBullet's renderer)", median["observation"], median["peer"], 1 / 6
        ),
        Row("FORWARD with observation (vs bare MuJoCo render)", median["forward"], median["bare"], 4.0),
        Row("MockEnv step (vs its budget)", mock_step_s(), MOCK_BUDGET_S, 1.0),
    ]


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
    start_s = time.perf_counter()
    call()
    times.append(time.perf_counter() - start_s)


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
        for item in load_scene(Path(scene_path)).objects:
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
