"""Draw an episode: what the oracle sees on its way, and its way through the house from above.

Run it from the repository: .venv/bin/python examples/03_draw_an_episode.py [EPISODE_ID]
"""

import sys
from pathlib import Path

from PIL import Image

from proctor.core.registry import suite_path
from proctor.core.types import Vector3
from proctor.exams.datasets import load_dataset
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.trajectory_plot import plot_trajectory
from proctor.worlds.mujoco.wheeled.env import VLNEnv

GAP_PX = 8


def drive(episode: Episode) -> tuple[list[Image.Image], list[Vector3]]:
    """Let the reference actions be driven; return three pictures and the way."""
    env = VLNEnv()
    actions = episode.reference_actions or []
    pictures = [env.reset(episode)["rgb"]]
    for index, action in enumerate(actions, 1):
        observation, _, _, info = env.step(action)
        if index in (len(actions) // 2, len(actions)):
            pictures.append(observation["rgb"])
    env.close()
    return [Image.fromarray(picture) for picture in pictures], info["trajectory"]


def main() -> None:
    """Draw the episode named on the command line, or the first one."""
    dataset = load_dataset(suite_path("houses-v1"))
    wanted = sys.argv[1] if len(sys.argv) > 1 else dataset.episodes[0].episode_id
    (episode,) = dataset.select(episode_id=wanted)
    pictures, way = drive(episode)
    plot = plot_trajectory(
        Path(episode.scene_config_path or ""),
        driven=way,
        reference=episode.reference_path,
        goal=episode.goal,
        success_threshold=episode.success_threshold,
        caption=f"\N{LEFT DOUBLE QUOTATION MARK}{episode.instruction}\N{RIGHT DOUBLE QUOTATION MARK}",
        width_px=1000,
    )
    height = (plot.height - 2 * GAP_PX) // 3
    width = height * 4 // 3
    canvas = Image.new("RGB", (width + plot.width, plot.height), "white")
    for index, picture in enumerate(pictures):
        canvas.paste(picture.resize((width, height)), (0, index * (height + GAP_PX)))
    canvas.paste(plot, (width, 0))
    canvas.save("episode.png")
    print(f"{episode.episode_id}: {episode.instruction}\nsaved episode.png")


if __name__ == "__main__":
    main()
