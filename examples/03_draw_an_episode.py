"""Draw an episode: what the oracle sees on its way, and its way through the house from above.

Run it from the repository: .venv/bin/python examples/03_draw_an_episode.py [EPISODE_ID]
"""

import math
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from proctor.core.geometry import quaternion_of_euler_deg, rotation_matrix
from proctor.core.types import Vector3
from proctor.envs.vln import VLNEnv
from proctor.episodes.datasets import load_dataset
from proctor.episodes.vln import Episode
from proctor.registry import suite_folder
from proctor.scenes.scene_config import SceneConfig, load_scene

HEIGHT_PX, MARGIN_PX, GAP_PX = 960, 16, 8
CEILING_M = 2.2  # what hangs higher is left out of the view from above


def photographs(episode: Episode) -> tuple[list[Image.Image], list[Vector3]]:
    """Let the reference actions be driven; return three pictures and the way."""
    env = VLNEnv()
    actions = episode.reference_actions or []
    moments = {0, len(actions) // 2, len(actions) - 1}
    pictures = [env.reset(episode)["rgb"]]
    for index, action in enumerate(actions):
        observation, _, _, info = env.step(action)
        if index in moments - {0}:
            pictures.append(observation["rgb"])
    env.close()
    return [Image.fromarray(picture) for picture in pictures], info["trajectory"]


def plan(scene: SceneConfig, way: list[Vector3], goal: Vector3) -> Image.Image:
    """Draw the house from above: every part as its outline on the floor, higher ones last."""
    shapes = sorted(outlines(scene), key=lambda shape: shape[0])
    corners = np.concatenate([outline for _, outline, _ in shapes])
    low, high = corners.min(axis=0), corners.max(axis=0)
    scale = (HEIGHT_PX - 2 * MARGIN_PX) / (high[1] - low[1])
    width_px = round((high[0] - low[0]) * scale) + 2 * MARGIN_PX
    image = Image.new("RGB", (width_px, HEIGHT_PX), "white")
    draw = ImageDraw.Draw(image)

    def pixels(points: np.ndarray) -> list[tuple[float, float]]:
        x, y = ((points - low) * scale + MARGIN_PX).T
        return list(zip(x, HEIGHT_PX - y, strict=True))

    for _, outline, color in shapes:
        draw.polygon(pixels(outline), fill=color)
    route = pixels(np.array([(point.x, point.y) for point in way]))
    draw.line(route, fill=(20, 90, 220), width=6, joint="curve")
    (gx, gy), radius = pixels(np.array([(goal.x, goal.y)]))[0], 14
    draw.ellipse((gx - radius, gy - radius, gx + radius, gy + radius), outline=(220, 40, 40), width=6)
    sx, sy = route[0]
    draw.ellipse((sx - radius, sy - radius, sx + radius, sy + radius), fill=(20, 90, 220))
    return image


def outlines(scene: SceneConfig) -> list[tuple[float, np.ndarray, tuple[int, ...]]]:
    """Return for every part the height of its top, its outline on the floor and its colour."""
    found = []
    for item in scene.objects:
        frame = rotation_matrix(quaternion_of_euler_deg(item.rotate))
        for part in item.parts:
            size, at = part.size, part.translate
            centre = frame @ (at.array() * item.scale.array()) + item.translate.array()
            if centre[2] - size.z / 2 > CEILING_M or (len(part.color) == 4 and part.color[3] < 1):
                continue
            turn = frame @ rotation_matrix(quaternion_of_euler_deg(part.rotate))
            sides = 4 if part.shape == "box" else 24
            angles = np.arange(sides) * math.tau / sides + math.pi / 4
            reach = math.sqrt(0.5) if part.shape == "box" else 0.5
            ring = np.stack([np.cos(angles) * size.x, np.sin(angles) * size.y, 0 * angles], axis=1) * reach
            color = tuple(round(255 * channel) for channel in part.color[:3])
            found.append((centre[2] + size.z / 2, (ring @ turn.T + centre)[:, :2], color))
    return found


def main() -> None:
    """Draw the episode named on the command line, or the first one."""
    dataset = load_dataset(suite_folder("houses-v1"))
    wanted = sys.argv[1] if len(sys.argv) > 1 else dataset.episodes[0].episode_id
    (episode,) = dataset.select(episode_id=wanted)
    pictures, way = photographs(episode)
    house = plan(load_scene(Path(episode.scene_config_path or "")), way, episode.goal)
    photo_height = (HEIGHT_PX - 2 * GAP_PX) // 3
    photo_width = photo_height * 4 // 3
    caption_px = 56
    total = (photo_width + GAP_PX + house.width, HEIGHT_PX + caption_px)
    canvas = Image.new("RGB", total, "white")
    for index, picture in enumerate(pictures):
        canvas.paste(picture.resize((photo_width, photo_height)), (0, index * (photo_height + GAP_PX)))
    canvas.paste(house, (photo_width + GAP_PX, 0))
    caption = f"\N{LEFT DOUBLE QUOTATION MARK}{episode.instruction}\N{RIGHT DOUBLE QUOTATION MARK}"
    ImageDraw.Draw(canvas).text((8, HEIGHT_PX + 12), caption, fill="black", font=ImageFont.load_default(28))
    canvas.save("episode.png")
    print(f"{episode.episode_id}: {episode.instruction}\nsaved episode.png")


if __name__ == "__main__":
    main()
