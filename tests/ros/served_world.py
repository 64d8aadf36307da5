"""A world that serves simulation_interfaces, in a thread of its own."""

import threading
from contextlib import contextmanager

from proctor.core.types import Vector3
from proctor.exams.vln.episode import Episode
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.ros2.host.hosted_robot import SimHostOptions
from proctor.worlds.ros2.host.sim_host import SimHost
from proctor.worlds.ros2.host.simulation_services import SimulationServices


def save_yard(path, name="yard"):
    """Write a scene with one post in it."""
    part = Part(shape="box", size=Vector3(0.2, 0.2, 1.0))
    post = SceneObject(name="post", translate=Vector3(3.0, 0.0, 0.5), parts=[part])
    save_scene(SceneConfig(scene_name=name, objects=[post]), path)
    return path


def yard_episode(scene, x=0.0, y=0.0, yaw_deg=0.0, **fields):
    """Return an episode in the yard, with its goal beside the post."""
    return Episode(
        scene_config_path=str(scene),
        start_position=Vector3(x, y, 0.0),
        start_rotation=Vector3(0.0, 0.0, yaw_deg),
        goal_position=Vector3(2.0, 0.0, 0.0),
        **fields,
    )


@contextmanager
def served_world(scene_path, **options):
    """Yields the host, which runs. Its methods may only be called while it is not playing."""
    host = SimHost(scene_path, SimHostOptions(camera_hz=0))
    SimulationServices(host, **options)
    failures = []

    def run():
        try:
            host.run()
        except BaseException as error:  # noqa: BLE001  (of any kind: the test is to see it)
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield host
    finally:
        host.stop()
        thread.join(10.0)
        host.close()
    assert not failures
    assert not thread.is_alive()
