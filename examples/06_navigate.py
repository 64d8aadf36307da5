"""Send a robot somewhere, tick by tick: it plans, drives in physics, and says how far it is.

Run it from the repository: .venv/bin/python examples/06_navigate.py [EPISODE_ID]
"""

import sys
from pathlib import Path

from proctor.core.registry import suite_path
from proctor.core.types import Pose2
from proctor.exams.datasets import load_dataset
from proctor.worlds.mujoco.wheeled.navigator import EmbeddedNavigator

TICKS_PER_SECOND = 60


def main() -> None:
    """Drive from the start of an episode to its goal, and look along +x there."""
    dataset = load_dataset(suite_path("houses-v1"))
    wanted = sys.argv[1] if len(sys.argv) > 1 else dataset.episodes[0].episode_id
    (episode,) = dataset.select(episode_id=wanted)
    start = Pose2(episode.start_position.x, episode.start_position.y, episode.start_yaw)

    with EmbeddedNavigator(Path(episode.scene_config_path), start) as robot:
        skill_manager, ticks = robot.skills, 0
        while True:
            result = skill_manager.execute_skill(
                "navigate_to",
                goal_pos=[episode.goal.x, episode.goal.y, 0.0],
                goal_quat=[0, 0, 0, 1],
                timeout=60.0,
            )
            if result["status"] != "processing":
                break
            if ticks % TICKS_PER_SECOND == 0:
                where = (
                    f"{result['progress']:3d} %, {result['distance_to_goal']:5.2f} m to go in a straight line"
                )
                print(f"{ticks // TICKS_PER_SECOND:3d} s  {result['state']:<22} {where}")
            robot.step()
            ticks += 1

    print(result["message"])
    print(f"{100 * result['final_distance']:.1f} cm from the goal after {result['total_time']:.1f} s")


if __name__ == "__main__":
    main()
