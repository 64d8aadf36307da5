import math

import numpy as np
import pytest
import trimesh

from proctor.core.errors import InvalidFile, SimulationError
from proctor.core.types import Pose2
from proctor.robots.spec import standard_robot
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, save_scene
from proctor.worlds.mujoco.wheeled.model import TIMESTEP_S
from proctor.worlds.mujoco.wheeled.world import World

STILL = (0.0, 0.0, 0.0)


def crate(name="crate", at=(1.0, 0.0, 0.25), size=(0.5, 0.5, 0.5), **options):
    return SceneObject(name=name, translate=at, parts=[Part(shape="box", size=size)], **options)


def world_of(*objects, scene_path=None, **options):
    return World(
        Scene(SceneConfig(scene_name="test", objects=list(objects), **options), scene_path), standard_robot()
    )


def drive(world, velocity, seconds):
    for _ in range(round(seconds / TIMESTEP_S)):
        world.step(velocity)


def test_a_robot_that_is_not_driven_stays_where_it_was_put():
    world = world_of()
    world.reset(Pose2(1.0, -2.0, 0.5))
    drive(world, STILL, 1.0)
    assert world.pose() == Pose2(1.0, -2.0, 0.5)
    assert world.time_s == pytest.approx(1.0)


def test_a_wall_stops_the_robot_by_contact():
    world = world_of(crate())
    world.reset(Pose2(0.0, 0.0, 0.0))
    assert world.touched() is None
    drive(world, (0.2, 0.0, 0.0), 5.0)
    assert world.touched() == "crate"
    assert world.pose().x == pytest.approx(0.75 - 0.17, abs=0.005)


def test_the_robot_pushes_a_light_loose_thing_but_not_a_heavy_one():
    moved = []
    for mass in (2.0, 500.0):
        world = world_of(crate(rigid_body_type="dynamic", mass=mass))
        world.reset(Pose2(0.0, 0.0, 0.0))
        drive(world, (0.2, 0.0, 0.0), 5.0)
        moved.append(world.data.body("crate").xpos[0] - 1.0)
    assert moved[0] > 0.1
    assert moved[1] < 0.01


def test_what_is_only_seen_changes_nothing_of_what_moves():
    corner = [crate("left", (1.0, 0.35, 0.25)), crate("right", (1.1, -0.45, 0.25), rotate=(0, 0, 20))]
    loose = crate("loose", (0.6, 0.0, 0.3), (0.2, 0.2, 0.2), rigid_body_type="dynamic", mass=2.0)
    scene = SceneConfig(scene_name="test", objects=[*corner, loose])
    ends = []
    for drawn in (True, False):
        world = World(Scene(scene), standard_robot(), drawn=drawn)
        assert (world.model.nmesh > 0) == drawn
        world.reset(Pose2(0.0, 0.0, 0.0))
        drive(world, (0.3, 0.05, 0.2), 6.0)
        assert world.touched() is not None
        ends.append(world.data.qpos.tobytes())
    assert ends[0] == ends[1]


def test_a_loose_thing_falls_to_the_floor_and_reset_lifts_it_again():
    world = world_of(crate(at=(2.0, 0.0, 1.0), rigid_body_type="dynamic"))
    world.reset(Pose2(0.0, 0.0, 0.0))
    drive(world, STILL, 1.5)
    assert world.data.body("crate").xpos[2] == pytest.approx(0.25, abs=0.01)
    assert world.model.body("crate").mass[0] == pytest.approx(300 * 0.125)
    world.reset(Pose2(0.0, 0.0, 0.0))
    assert world.data.body("crate").xpos[2] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "thing",
    [
        crate(rigid_body_type="none"),
        SceneObject(
            name="rug", translate=(1, 0, 0.25), parts=[Part(shape="box", size=(1, 1, 1), collision=False)]
        ),
        crate(at=(1.0, 0.0, 0.01), size=(0.5, 0.5, 0.02)),
        crate(at=(1.0, 0.0, 2.0), size=(0.5, 0.5, 1.0)),
    ],
    ids=["none", "no collision", "a doorstep", "overhead"],
)
def test_the_robot_drives_through_what_is_not_in_its_way(thing):
    world = world_of(thing)
    world.reset(Pose2(0.0, 0.0, 0.0))
    drive(world, (0.5, 0.0, 0.0), 4.0)
    assert world.touched() is None
    assert world.pose().x == pytest.approx(2.0, abs=0.05)


def test_parts_are_placed_by_their_objects_translation_rotation_and_scale():
    part = Part(shape="box", size=(0.2, 1.0, 0.5), translate=(1.0, 0.0, 0.25))
    item = SceneObject(name="bar", translate=(0.0, 1.0, 0.0), rotate=(0, 0, 90), scale=2.0, parts=[part])
    world = world_of(item)
    box = world.model.geom("bar#0")
    assert box.pos == pytest.approx([0.0, 3.0, 0.5], abs=1e-9)
    world.reset(Pose2(-0.9, 3.0, 0.0))
    assert world.touched() == "bar"
    world.reset(Pose2(0.0, 3.5, 0.0))
    assert world.touched() is None


def test_a_world_that_blows_up_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log there
    world = world_of(crate())
    world.reset(Pose2(0.0, 0.0, 0.0))
    world.data.qvel[0] = math.nan
    drive(world, STILL, 0.05)
    with pytest.raises(SimulationError, match="unstable"):
        world.pose()


@pytest.mark.parametrize("name", ["world", "#robot"])
def test_a_name_that_mujoco_has_given_away_is_refused_with_its_place(name):
    with pytest.raises(InvalidFile, match=r"objects\[0\]: MuJoCo cannot build it: .*repeated name"):
        world_of(crate(name, rigid_body_type="dynamic"))


def test_an_object_may_be_called_robot():
    world = world_of(crate("robot", rigid_body_type="dynamic"))
    world.reset(Pose2(1.0, 0.0, 0.0))
    assert world.touched() == "robot"


@pytest.mark.parametrize("suffix", [".glb", ".obj", ".stl", ".ply", ".dae"])
def test_a_mesh_of_each_format_stands_where_the_scene_has_it(tmp_path, suffix):
    mesh = trimesh.creation.box((0.2, 0.4, 1.0))
    if suffix in (".glb", ".dae"):  # these are Y up, so the long side becomes Y
        mesh.apply_transform(trimesh.transformations.rotation_matrix(-math.pi / 2, [1, 0, 0]))
    mesh.export(tmp_path / f"post{suffix}")
    post = SceneObject(name="post", asset_path=f"post{suffix}", translate=(1, 0, 0.5))
    path = tmp_path / "scene.json"
    save_scene(SceneConfig(scene_name="s", objects=[post]), path)
    world = World(Scene.load(path), standard_robot())
    world.reset(Pose2(1.0 - 0.1 - 0.16, 0.0, 0.0))
    assert world.touched() == "post"
    world.reset(Pose2(1.0, 0.2 + 0.16, 0.0))
    assert world.touched() == "post"
    world.reset(Pose2(1.0, 0.2 + 0.18, 0.0))
    assert world.touched() is None


def test_one_can_drive_between_the_separate_pieces_of_a_mesh(tmp_path):
    posts = [trimesh.creation.box((0.2, 0.2, 1.0)) for _ in range(2)]
    for post, y in zip(posts, (-0.5, 0.5), strict=True):
        post.apply_translation((0, y, 0.5))
    trimesh.util.concatenate(posts).export(tmp_path / "gate.stl")
    path = tmp_path / "scene.json"
    gate = SceneObject(name="gate", asset_path="gate.stl", translate=(1, 0, 0))
    save_scene(SceneConfig(scene_name="s", objects=[gate]), path)
    world = World(Scene.load(path), standard_robot())
    world.reset(Pose2(0.0, 0.0, 0.0))
    drive(world, (0.5, 0.0, 0.0), 4.0)
    assert world.pose().x == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("suffix", [".glb", ".gltf", ".obj", ".stl", ".ply", ".dae"])
@pytest.mark.parametrize("content", [b"", b"this is not a mesh\n", b"\x00\xff" * 300, b"{}", b"<a/>"])
def test_a_file_that_is_not_a_mesh_is_refused_with_the_scene_and_the_place(tmp_path, suffix, content):
    (tmp_path / f"broken{suffix}").write_bytes(content)
    path = tmp_path / "scene.json"
    objects = [crate(), SceneObject(name="thing", asset_path=f"broken{suffix}")]
    save_scene(SceneConfig(scene_name="s", objects=objects), path)
    with pytest.raises(InvalidFile, match=rf"scene\.json: objects\[1\]\.asset_path: 'broken\{suffix}'"):
        World(Scene.load(path), standard_robot())


def test_a_loose_mesh_has_the_mass_it_is_given(tmp_path):
    trimesh.creation.icosphere(radius=0.3).export(tmp_path / "ball.obj")
    path = tmp_path / "scene.json"
    ball = SceneObject(
        name="ball", asset_path="ball.obj", rigid_body_type="dynamic", mass=2.5, translate=(1, 0, 1)
    )
    save_scene(SceneConfig(scene_name="s", objects=[ball]), path)
    world = World(Scene.load(path), standard_robot())
    assert world.model.body("ball").mass[0] == pytest.approx(2.5, rel=1e-3)
    world.reset(Pose2(0.0, 0.0, 0.0))
    drive(world, STILL, 2.0)
    assert world.data.body("ball").xpos[2] == pytest.approx(0.3, abs=0.02)


def test_a_flat_mesh_can_be_bumped_into(tmp_path):
    sheet = trimesh.Trimesh([[0, -1, 0], [0, 1, 0], [0, 1, 1], [0, -1, 1]], [[0, 1, 2], [0, 2, 3]])
    sheet.export(tmp_path / "sheet.obj")
    path = tmp_path / "scene.json"
    save_scene(
        SceneConfig(
            scene_name="s", objects=[SceneObject(name="sheet", asset_path="sheet.obj", translate=(1, 0, 0))]
        ),
        path,
    )
    world = World(Scene.load(path), standard_robot())
    world.reset(Pose2(0.0, 0.0, 0.0))
    drive(world, (0.5, 0.0, 0.0), 4.0)
    assert world.touched() == "sheet"


def test_the_same_commands_give_the_same_world_to_the_last_bit():
    states = []
    for _ in range(2):
        world = world_of(crate(rigid_body_type="dynamic", mass=3.0), crate("wall", at=(2.0, 0.0, 0.25)))
        for _ in range(2):
            world.reset(Pose2(0.0, 0.1, 0.0))
            drive(world, (0.3, 0.02, 0.1), 6.0)
            states.append(np.concatenate([world.data.qpos, world.data.qvel]))
    assert all((state == states[0]).all() for state in states)
