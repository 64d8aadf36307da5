import math
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import trimesh
from PIL import Image

from proctor.core.types import Pose2
from proctor.robots.spec import Camera, standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Light, Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.world import World

RED, GREEN = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def box(name, at, size, color=(0.8, 0.8, 0.8), **options):
    return SceneObject(name=name, translate=at, parts=[Part(shape="box", size=size, color=color, **options)])


def pictures(*objects, pose=(0.0, 0.0, 0.0), width=160, height=120, **options):
    robot = standard_robot(camera=Camera(width=width, height=height))
    world = World(Scene(SceneConfig(scene_name="test", objects=list(objects), **options)), robot)
    camera = RgbdCamera(world)
    world.reset(Pose2(*pose))
    rgb, depth = camera.render()
    camera.close()
    return rgb, depth


def test_pictures_have_the_promised_types_and_layout():
    rgb, depth = pictures(width=64, height=48)
    assert (rgb.shape, rgb.dtype) == ((48, 64, 3), np.uint8)
    assert (depth.shape, depth.dtype) == ((48, 64), np.uint16)
    assert rgb.flags.c_contiguous
    assert rgb.flags.owndata
    assert depth.flags.c_contiguous


def test_every_thread_may_draw_and_all_draw_the_same():
    wall = box("wall", (3.05, 0.0, 1.25), (0.1, 10.0, 10.0), RED)
    here, _ = pictures(wall)
    with ThreadPoolExecutor(3) as threads:
        others = list(threads.map(lambda _: pictures(wall)[0], range(6)))
    assert all((other == here).all() for other in others)
    assert (pictures(wall)[0] == here).all()


def test_the_sky_is_above_and_bright_and_the_ground_below():
    rgb, depth = pictures()
    assert (depth[:55] == 0).all()
    assert (depth[-30:] > 0).all()
    assert rgb[:30].mean() > 150
    assert rgb[:30, :, 2].mean() > rgb[:30, :, 0].mean()


def test_depth_is_the_distance_along_the_view_in_millimetres():
    wall = box("wall", (3.05, 0.0, 1.25), (0.1, 10.0, 10.0))
    _, depth = pictures(wall)
    assert np.abs(depth[:60].astype(int) - 3000).max() <= 1


def test_depth_of_the_floor_follows_from_the_camera_height():
    _, depth = pictures()
    row = 110
    below = math.tan(math.radians(30)) * (row + 0.5 - 60) / 60
    assert depth[row, 80] == pytest.approx(1250 / below, rel=0.005)


@pytest.mark.parametrize(("distance_m", "seen_mm"), [(0.2, 200), (19.9, 19900), (20.2, 0), (45.0, 0)])
def test_depth_is_zero_beyond_the_far_limit(distance_m, seen_mm):
    wall = box("wall", (distance_m + 0.05, 0.0, 1.25), (0.1, 60.0, 60.0))
    _, depth = pictures(wall)
    assert int(depth[60, 80]) == pytest.approx(seen_mm, abs=5)


def test_left_is_left_and_up_is_up():
    left = box("left", (3.0, 1.0, 1.25), (0.1, 0.3, 0.3), RED)
    up = box("up", (3.0, 0.0, 2.0), (0.1, 0.3, 0.3), GREEN)
    rgb, _ = pictures(left, up)
    color = rgb.astype(int)
    red = np.argwhere((color[:, :, 0] > 150) & (color[:, :, 1] < 60))
    green = np.argwhere((color[:, :, 1] > 150) & (color[:, :, 0] < 60))
    assert red.mean(axis=0) == pytest.approx([60, 45], abs=3)
    assert green.mean(axis=0) == pytest.approx([34, 80], abs=3)


def test_turning_left_moves_things_to_the_right():
    post = box("post", (3.0, 0.0, 1.25), (0.1, 0.2, 2.5), RED)
    rgb, _ = pictures(post, pose=(0.0, 0.0, math.radians(15)))
    columns = np.argwhere((rgb[:, :, 0] > 150) & (rgb[:, :, 1] < 60))[:, 1]
    assert columns.mean() > 100


def test_a_texture_repeats_by_the_metre_whatever_the_size_of_the_part():
    def joints(width_m):
        wall = box("wall", (2.0, 0.0, 1.25), (0.1, width_m, 2.5), texture="tiles")
        rgb, _ = pictures(wall, width=640, height=480)
        row = rgb[236, 80:560, 0].astype(int)  # 2.3 m of the wall, seen by every size
        return (row < row.mean() - 10).sum()

    assert joints(2.7) == joints(5.3) > 20


def test_a_textured_part_is_tinted_by_its_colour():
    wall = box("wall", (2.0, 0.0, 1.25), (0.1, 10.0, 10.0), (0.8, 0.4, 0.2), texture="brick")
    rgb, _ = pictures(wall)
    red, green, blue = rgb.reshape(-1, 3).mean(axis=0)
    assert red / green == pytest.approx(2.0, rel=0.1)
    assert red / blue == pytest.approx(4.0, rel=0.1)


def test_a_room_is_bright_but_not_washed_out_and_its_walls_differ():
    walls = [
        box("ahead", (3.0, 0.0, 1.3), (0.1, 4.0, 2.6)),
        box("left", (1.5, 2.0, 1.3), (3.0, 0.1, 2.6)),
        box("right", (1.5, -2.0, 1.3), (3.0, 0.1, 2.6)),
    ]
    rgb, _ = pictures(*walls)
    ahead, left, right = rgb[60, 80].mean(), rgb[60, 5].mean(), rgb[60, 154].mean()
    assert all(110 < value < 245 for value in (ahead, left, right))
    assert len({round(ahead / 5), round(left / 5), round(right / 5)}) > 1


def test_lamps_light_the_scene_and_more_lamps_than_opengl_has_do_no_harm():
    wall = box("wall", (2.0, 0.0, 1.25), (0.1, 3.0, 2.5), (0.5, 0.5, 0.5))
    dark, _ = pictures(wall, lights=[Light(intensity=0.0)])
    lamps = [Light(name=f"lamp{i}", translate=(0.0, 0.1 * i, 2.0), intensity=0.05) for i in range(20)]
    light, _ = pictures(wall, lights=lamps)
    assert light[60, 80].mean() > dark[60, 80].mean() + 10
    bright, _ = pictures(wall, lights=[Light(name=f"lamp{i}", translate=(0, 0, 2)) for i in range(9)])
    assert bright.max() < 255


def test_a_mesh_wears_its_own_picture_the_right_way_up(tmp_path):
    image = Image.fromarray(np.array([[[255, 0, 0]], [[0, 255, 0]]], np.uint8).repeat(64, 0).repeat(128, 1))
    material = trimesh.visual.material.PBRMaterial(baseColorTexture=image)
    sheet = trimesh.Trimesh(
        [[0, 1, 0], [0, -1, 0], [0, -1, 2], [0, 1, 2]],
        [[0, 1, 2], [0, 2, 3]],
        visual=trimesh.visual.TextureVisuals(uv=[[0, 0], [1, 0], [1, 1], [0, 1]], material=material),
        process=False,
    )
    # glTF is Y up: lay it down, so that loading stands it up again.
    sheet.apply_transform(trimesh.transformations.rotation_matrix(-math.pi / 2, [1, 0, 0]))
    sheet.export(tmp_path / "sign.glb")
    path = tmp_path / "scene.json"
    sign = SceneObject(name="sign", asset_path="sign.glb", translate=(2.0, 0.0, 0.25))
    save_scene(SceneConfig(scene_name="s", objects=[sign]), path)
    world = World(Scene.load(path), standard_robot(camera=Camera(width=160, height=120)))
    world.reset(Pose2(0.0, 0.0, 0.0))
    camera = RgbdCamera(world)
    rgb, _ = camera.render()
    camera.close()
    assert rgb[40, 80, :2].tolist() == pytest.approx([200, 0], abs=55)
    assert rgb[80, 80, :2].tolist() == pytest.approx([0, 200], abs=55)


def test_pictures_stay_what_they_were_when_the_next_ones_are_taken():
    robot = standard_robot(camera=Camera(width=64, height=48))
    world = World(
        Scene(SceneConfig(scene_name="s", objects=[box("post", (2, 0, 1), (0.2, 0.2, 2), RED)])), robot
    )
    camera = RgbdCamera(world)
    world.reset(Pose2(0.0, 0.0, 0.0))
    rgb, depth = camera.render()
    kept = rgb.copy(), depth.copy()
    world.reset(Pose2(0.0, 0.0, 2.0))
    camera.render()
    assert (rgb == kept[0]).all()
    assert (depth == kept[1]).all()
    world.reset(Pose2(0.0, 0.0, 0.0))
    again = camera.render()
    assert (again[0] == rgb).all()
    assert (again[1] == depth).all()
    camera.close()
    camera.close()


def test_two_cameras_of_different_size_do_not_disturb_each_other():
    scene = SceneConfig(scene_name="s", objects=[box("post", (2, 0, 1), (0.2, 0.2, 2), RED)])
    worlds = [
        World(Scene(scene), standard_robot(camera=Camera(width=w, height=h)))
        for w, h in ((64, 48), (200, 150))
    ]
    cameras = [RgbdCamera(world) for world in worlds]
    for world in worlds:
        world.reset(Pose2(0.0, 0.0, 0.0))
    first = [camera.render()[0] for camera in cameras]
    cameras[0].close()
    assert (cameras[1].render()[0] == first[1]).all()
    cameras[1].close()


@pytest.mark.parametrize(("setting", "expected"), [("", "egl"), ("glfw", "glfw")])
def test_the_backend_is_chosen_unless_the_user_has_chosen(setting, expected):
    code = "import os, proctor.worlds.mujoco; print(os.environ['MUJOCO_GL'])"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"MUJOCO_GL": setting},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == expected


WITHOUT_LIBRARIES = """
import ctypes, os, sys
setting, absent, code = sys.argv[1], sys.argv[2].split(), sys.argv[3]
load = ctypes.CDLL.__init__
def load_others(self, name, *args, **kwargs):
    if name and any(word in os.path.basename(name) for word in absent):
        raise OSError(f"{name}: cannot open shared object file: No such file or directory")
    load(self, name, *args, **kwargs)
ctypes.CDLL.__init__ = load_others
os.environ.pop("MUJOCO_GL", None)
if setting:
    os.environ["MUJOCO_GL"] = setting
sys.argv = ["proctor", "doctor"]
exec(code)
"""
"""Lets the loader not find some libraries, as on a machine without their packages."""
GL_LIBRARIES = "libOpenGL libGL. libGLES libOSMesa"
RUN = "from proctor.cli import main; sys.exit(main('run --suite houses-v1 --policy random'.split()))"
DOCTOR = "from proctor.cli import main; sys.exit(main(['doctor']))"
CONTEXT = """
from proctor.core.errors import MissingDependency
try:
    from proctor.worlds.mujoco.render.gl import check_drawing
    check_drawing()
except MissingDependency as error:
    print(error)
"""
PACKAGES = "from proctor.worlds.mujoco.render.gl import missing_packages; print(*missing_packages())"


def without_libraries(setting, absent, code, *, cwd):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_LIBRARIES, setting, absent, code],
        cwd=cwd,
        env=os.environ | {"COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_the_libraries_of_gl_a_run_ends_with_one_sentence(tmp_path):
    bare = without_libraries("egl", GL_LIBRARIES, "import mujoco", cwd=tmp_path)
    assert "ctypes.ArgumentError" in bare.stderr  # what MuJoCo does on a minimal Debian with libegl1
    done = without_libraries("", GL_LIBRARIES, RUN, cwd=tmp_path)
    (line,) = done.stderr.splitlines()
    assert "apt-get install -y libegl1 libgl1 libgl1-mesa-dri (or libosmesa6)" in line
    assert done.returncode == 2


@pytest.mark.parametrize("setting", ["", "egl"])
@pytest.mark.parametrize(
    ("absent", "named"),
    [
        (GL_LIBRARIES, "libOpenGL.so.0 or libGL.so.1"),
        ("libEGL libOSMesa", "libEGL.so.1"),
        ("libEGL " + GL_LIBRARIES, "libEGL.so.1, libOpenGL.so.0 or libGL.so.1"),
    ],
)
def test_a_missing_library_is_named_with_all_packages(setting, absent, named, tmp_path):
    done = without_libraries(setting, absent, CONTEXT, cwd=tmp_path)
    (line,) = done.stdout.splitlines()
    assert re.search(rf"[ (]{named} (cannot be loaded|nor OSMesa)", line)
    assert "apt-get install -y libegl1 libgl1 libgl1-mesa-dri" in line
    packages = without_libraries("", absent, PACKAGES, cwd=tmp_path)
    assert packages.stdout.split() == ["libegl1", "libgl1", "libgl1-mesa-dri"]


@pytest.mark.parametrize("setting", ["", "egl"])
def test_the_doctor_says_what_gl_needs(setting, tmp_path):
    done = without_libraries(setting, GL_LIBRARIES, DOCTOR, cwd=tmp_path)
    assert done.stderr == ""
    assert "apt-get install -y libegl1 libgl1 libgl1-mesa-dri" in done.stdout


def test_a_machine_that_renders_lacks_no_package(tmp_path):
    assert without_libraries("", "libOSMesa", PACKAGES, cwd=tmp_path).stdout.split() == []


def test_a_machine_that_cannot_render_is_told_what_to_install():
    code = """
import os
os.environ["MUJOCO_GL"] = "osmesa"
os.environ["PYOPENGL_PLATFORM"] = "egl"  # makes MuJoCo's OSMesa refuse, installed or not
from proctor.core.errors import MissingDependency
try:
    from proctor.worlds.mujoco.render.gl import check_drawing
    check_drawing()
except MissingDependency as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "libegl1 libgl1 libgl1-mesa-dri" in result.stdout
    assert "libosmesa6" in result.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere windows need no X server")
def test_a_window_system_without_a_screen_is_told_before_anything_is_drawn():
    code = """
from proctor.core.errors import MissingDependency
from proctor.worlds.mujoco.render.gl import check_drawing
try:
    check_drawing()
except MissingDependency as error:
    print(error)
"""
    blind = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=blind | {"MUJOCO_GL": "glfw"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "MUJOCO_GL=glfw" in result.stdout
