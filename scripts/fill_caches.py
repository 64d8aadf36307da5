"""Prepares what is kept on disk for all processes: navigation's machine code, the Stretch's small meshes.

Nothing needs it done before, but tests that run side by side would each compile the same.
"""

from pathlib import Path

from proctor.core.registry import suite_path
from proctor.core.types import Pose2
from proctor.exams.datasets import load_dataset
from proctor.navigation.process.client import PlanningClient
from proctor.worlds.mujoco.tabletop.stretch_model import prepared_urdf
from proctor.worlds.mujoco.wheeled.navigator import EmbeddedNavigator


def main() -> None:
    """Drive once with all sensors; the planner's process compiles its part meanwhile."""
    episode = load_dataset(suite_path("houses-v1")).episodes[0]
    start = Pose2(episode.start_position.x, episode.start_position.y, episode.start_yaw)
    with PlanningClient() as client:
        client.start()
        prepared_urdf()
        with EmbeddedNavigator(Path(episode.scene_config_path), start, client=client, depth=True) as robot:
            robot.wait_until_ready()
            robot.navigate([episode.goal.x, episode.goal.y, 0.0], timeout=5.0)


if __name__ == "__main__":
    main()
