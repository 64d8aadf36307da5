"""Draw the pictures of the documentation anew: houses from inside and above, and the report's page.

Run it from the repository, after `make run`: .venv/bin/python scripts/draw_docs.py
"""

from __future__ import annotations

import math
import shutil
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from proctor.core.registry import suite_path
from proctor.core.types import Pose2
from proctor.plots.plan import draw_plan
from proctor.robots.spec import standard_robot
from proctor.runs.folder import RunFolder
from proctor.scenes.scene import Scene
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.world import World

IMAGES = Path("docs/images")
ROOMS = (
    ("living room", "kitchen", "bedroom"),
    ("dining room", "bathroom", "study"),
    ("nursery", "gym", "hall"),
)
WIDTH_PX, HEIGHT_PX, GAP_PX = 400, 300, 8


def draw_houses() -> None:
    """Draw a sheet of rooms, each in another house if possible, beside the plans of two houses."""
    scenes = sorted((suite_path("houses-v1") / "scenes").glob("*.json"))
    sheet = Image.new("RGB", (5 * WIDTH_PX + 4 * GAP_PX, 3 * HEIGHT_PX + 2 * GAP_PX), "white")
    found = {room: view for scene in scenes[:18] for room, view in views(scene).items()}
    for row, rooms in enumerate(ROOMS):
        for column, room in enumerate(rooms):
            at = (column * (WIDTH_PX + GAP_PX), row * (HEIGHT_PX + GAP_PX))
            sheet.paste(found[room].resize((WIDTH_PX, HEIGHT_PX)), at)
    plans = [draw_plan(Scene.load(scene), width_px=1000).image.copy() for scene in scenes]
    wide = [plan for plan in plans if 1.5 < plan.width / plan.height < 1.9]
    for index, plan in enumerate(wide[:2]):
        plan.thumbnail((2 * WIDTH_PX + GAP_PX, (sheet.height - GAP_PX) // 2))
        sheet.paste(plan, (3 * (WIDTH_PX + GAP_PX), index * (sheet.height + GAP_PX) // 2))
    sheet.save(IMAGES / "houses.jpg", quality=85)


def views(scene_path: Path) -> dict[str, Image.Image]:
    """Return for each room the view from a corner that shows the most colours."""
    scene = Scene.load(scene_path)
    world = World(scene, standard_robot())
    camera = RgbdCamera(world)
    best: dict[str, tuple[float, Image.Image]] = {}
    for floor in (item for item in scene.objects if item.category == "floor"):
        part = floor.parts[0]
        centre_x, centre_y = part.translate.x, part.translate.y
        for right, up in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            x, y = centre_x + right * (part.size.x / 2 - 0.4), centre_y + up * (part.size.y / 2 - 0.4)
            world.reset(Pose2(x, y, math.atan2(centre_y - y, centre_x - x)))
            if world.touched() is None:
                rgb, depth = camera.render()
                colors = len(np.unique(rgb[::4, ::4].reshape(-1, 3) // 32, axis=0))
                score = colors * min(float(np.median(depth)), 3000.0)
                best[floor.room] = max(
                    best.get(floor.room, (0.0, None)), (score, Image.fromarray(rgb)), key=lambda view: view[0]
                )
    camera.close()
    return {room: view for room, (_, view) in best.items()}


def draw_report() -> None:
    """Photograph the report of `make run`: its beginning, and an episode that went wrong."""
    report = Path("runs/first/report.html").resolve().as_uri()
    episode = RunFolder.open(Path("runs/first/blind")).episodes[0].episode_id
    pictures = []
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for address in (report, f"{report}#ep={episode}&run=blind"):
            page = browser.new_page(viewport={"width": 1100, "height": 900})
            page.goto(address)
            pictures.append(Image.open(BytesIO(page.screenshot())))
        browser.close()
    sheet = Image.new("RGB", (sum(picture.width for picture in pictures), pictures[0].height))
    sheet.paste(pictures[0], (0, 0))
    sheet.paste(pictures[1], (pictures[0].width, 0))
    sheet.save(IMAGES / "report.png")


if __name__ == "__main__":
    draw_houses()
    draw_report()
