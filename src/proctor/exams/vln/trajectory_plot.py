"""An episode as a picture: the path that was driven, on the plan of its scene."""

from __future__ import annotations

from pathlib import Path

from proctor.exams.results import EpisodeResult
from proctor.exams.vln.episode import DEFAULT_SUCCESS_THRESHOLD_M, Episode
from proctor.exams.vln.verdict import goal_distance
from proctor.plots.figure import save_png
from proctor.plots.trajectory import plot_trajectory

__all__ = ["plot_trajectory", "save_trajectory_png"]


def save_trajectory_png(
    result: EpisodeResult,
    episode: Episode | None,
    path: Path,
    *,
    success_threshold: float = DEFAULT_SUCCESS_THRESHOLD_M,
    width_px: int = 900,
) -> None:
    """Write the picture of a finished episode; without the episode, the driven path alone.

    `success_threshold` is in metres around the goal, for episodes that do not say.
    """
    own_m = episode.success_threshold if episode is not None else None
    scene = episode.scene_config_path if episode is not None else None
    outcome = "success" if result.success else f"failed: {result.failure_reason}"
    picture = plot_trajectory(
        Path(scene) if scene else None,
        driven=result.trajectory,
        reference=episode.reference_path if episode is not None else None,
        goal=episode.goal_position if episode is not None else None,
        success_threshold=success_threshold if own_m is None else own_m,
        collisions=result.collision_steps,
        title=f"{result.episode_id} · {outcome}, {goal_distance(result)}",
        caption=result.instruction,
        width_px=width_px,
    )
    save_png(picture, path)
