"""The embedded world answers simulation_interfaces by the rules, whoever asks."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import Twist, Vector3
from nav_msgs.msg import Odometry
from served_world import save_yard, served_world
from simulation_interfaces.msg import Bounds, EntityCategory, SimulatorFeatures
from simulation_interfaces.srv import (
    DeleteEntity,
    GetEntities,
    GetEntityState,
    GetSimulationState,
    GetSimulatorFeatures,
    GetSpawnables,
    LoadWorld,
    ResetSimulation,
    SetEntityState,
    SetSimulationState,
    SpawnEntity,
    StepSimulation,
)

from proctor.core.errors import UserError
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import SceneConfig
from proctor.worlds.ros2.host.hosted_robot import SimHostOptions
from proctor.worlds.ros2.host.sim_host import SimHost
from proctor.worlds.ros2.host.simulation_checks import ROBOT_URI, Refusal
from proctor.worlds.ros2.host.simulation_services import FEATURES, MAX_ROBOTS, MAX_STEPS, SimulationServices
from proctor.worlds.ros2.node.convert import quaternion
from proctor.worlds.ros2.node.node import SENSORS, RosNode

UNSUPPORTED, OK, NOT_FOUND, INCORRECT_STATE, FAILED = range(5)
STOPPED, PLAYING, PAUSED, QUITTING, NO_WORLD = range(5)
NAN = float("nan")


class Caller:
    """Sends plain requests."""

    def __init__(self, node, prefix=""):
        self.node, self.prefix, self._clients = node, prefix, {}

    def __call__(self, kind, **fields):
        """Returns the answer and its result. `pose__position__x=1.0` sets a field of a field."""
        request = kind.Request()
        for path, value in fields.items():
            *parts, last = path.split("__")
            owner = request
            for part in parts:
                owner = getattr(owner, part)
            setattr(owner, last, value)
        name = f"{self.prefix}/{re.sub('(?<!^)(?=[A-Z])', '_', kind.__name__).lower()}"
        client = self._clients.setdefault(name, None) or self.node.create_client(kind, name)
        self._clients[name] = client
        assert self.node.wait_until(client.service_is_ready, 10.0), name
        future = client.call_async(request)
        assert self.node.wait_until(future.done, 20.0), name
        return future.result()

    def code(self, kind, **fields):
        answer = self(kind, **fields)
        assert answer.result.result == OK or answer.result.error_message
        return answer.result.result

    def spawn(self, name, x=0.0, y=0.0, yaw=0.0, **fields):
        place = {"initial_pose__pose__position__x": x, "initial_pose__pose__position__y": y}
        place["initial_pose__pose__orientation"] = quaternion(yaw)
        fields = {"uri": ROBOT_URI, "entity_namespace": name, **place, **fields}
        return self(SpawnEntity, name=name, **fields)

    def spawn_code(self, name, **fields):
        return self.spawn(name, **fields).result.result

    def state(self):
        answer = self(GetSimulationState)
        assert answer.result.result == OK
        return answer.state.state

    def go(self, state):
        return self.code(SetSimulationState, state__state=state)

    def names(self, **filters):
        answer = self(GetEntities, **{f"filters__{key}": value for key, value in filters.items()})
        assert answer.result.result == OK, answer.result.error_message
        return sorted(answer.entities)


@pytest.fixture(scope="module")
def served(tmp_path_factory, ros_domain):
    scene = save_yard(tmp_path_factory.mktemp("scene") / "yard.json")
    with served_world(scene) as host, RosNode("caller") as node:
        yield host, Caller(node), scene


@pytest.fixture
def call(served):
    """A caller of a world that has nobody in it and plays."""
    host, call, scene = served
    if host.scene.config.scene_name != "yard":
        assert call.code(LoadWorld, uri=str(scene)) == OK
    call.go(PLAYING)
    for name in call.names():
        assert call.code(DeleteEntity, entity=name) == OK
    return call


def test_a_robot_is_spawned_found_moved_and_deleted(call):
    answer = call.spawn("rover", 1.0, -2.0, 0.5)
    assert (answer.result.result, answer.entity_name) == (OK, "rover")
    assert call.names() == ["rover"]
    state = call(GetEntityState, entity="rover").state
    assert (state.header.frame_id, state.pose.position.x, state.pose.position.y) == ("world", 1.0, -2.0)
    assert 2 * math.atan2(state.pose.orientation.z, state.pose.orientation.w) == pytest.approx(0.5)
    assert call.code(
        SetEntityState,
        entity="rover",
        state__pose__position__x=-1.5,
        state__pose__orientation=quaternion(-1.0),
    ) == (OK)
    moved = call(GetEntityState, entity="rover").state
    assert moved.pose.position.x == pytest.approx(-1.5, abs=1e-6)
    assert 2 * math.atan2(moved.pose.orientation.z, moved.pose.orientation.w) == pytest.approx(-1.0)
    assert call.code(DeleteEntity, entity="rover") == OK
    assert call.names() == []
    for kind in (DeleteEntity, GetEntityState, SetEntityState):
        assert call.code(kind, entity="rover") == NOT_FOUND


def test_a_spawned_robot_drives_and_its_odometry_begins_where_it_is(call):
    call.spawn("rover", 1.0, 1.0, math.pi / 2)
    heard = []
    node = call.node
    subscription = node.create_subscription(Odometry, "/rover/odom", heard.append, SENSORS)
    publisher = node.create_publisher(Twist, "/rover/cmd_vel", 10)
    assert node.wait_until(lambda: publisher.get_subscription_count() == 1, 10.0)

    def has_driven():
        publisher.publish(Twist(linear=Vector3(x=0.5)))  # again and again, until the robot knows of us
        return bool(heard) and heard[-1].pose.pose.position.x > 0.2

    assert node.wait_until(has_driven, 10.0)
    assert abs(heard[-1].pose.pose.position.y) < 0.01
    state = call(GetEntityState, entity="rover").state
    assert state.pose.position.y > 1.2
    assert state.twist.linear.y == pytest.approx(0.5, abs=0.05)  # in the world's frame, not the robot's
    assert abs(state.twist.linear.x) < 0.02
    node.destroy_subscription(subscription)
    node.destroy_publisher(publisher)


@pytest.mark.parametrize(
    ("name", "fields", "code"),
    [
        ("", {}, 102),
        ("a b", {}, 102),
        ("café", {}, 102),
        ("rover\n", {}, 102),
        ("a/b", {}, 102),
        ("n" * 1_000_000, {}, 102),
        ("rover", {"entity_namespace": "0day"}, 105),
        ("rover", {"entity_namespace": "a//b"}, 105),
        ("rover", {"entity_namespace": "a" * 300}, 105),
        ("rover", {"uri": "", "resource_string": ""}, 104),
        ("rover", {"uri": "product_asset:///robot.spawnable"}, 104),
        ("rover", {"uri": "", "resource_string": "<robot/>"}, UNSUPPORTED),
        ("rover", {"initial_pose__header__frame_id": "odom"}, FAILED),
        ("rover", {"x": NAN}, 109),
        ("rover", {"y": math.inf}, 109),
        ("rover", {"x": 1e300}, 109),
        ("rover", {"initial_pose__pose__orientation__w": 0.5}, 109),
        ("rover", {"initial_pose__pose__orientation__x": NAN}, 109),
        ("rover", {"yaw": NAN}, 109),
        ("post", {}, 101),  # the scene has one
    ],
)
def test_what_cannot_be_spawned_is_refused_with_its_code(call, name, fields, code):
    fields = {"entity_namespace": "here", **fields}
    answer = call.spawn(name, **fields)
    assert answer.result.result == code
    assert 0 < len(answer.result.error_message) < 500
    assert call.names() == []


def test_a_tilted_robot_is_refused_and_so_is_one_with_no_orientation(call):
    assert call.spawn_code("rover", initial_pose__pose__orientation__x=0.1) == 109
    orientation = quaternion(0.0)
    orientation.w = 0.0
    assert call.spawn_code("rover", initial_pose__pose__orientation=orientation) == 109
    call.spawn("rover")
    assert call.code(SetEntityState, entity="rover", state__pose__orientation=orientation) == 101
    assert call.code(SetEntityState, entity="rover", state__pose__position__z=NAN) == 101
    assert call.code(SetEntityState, entity="rover", state__header__frame_id="base_link") == FAILED
    assert call.code(SetEntityState, entity="rover", state__twist__linear__x=1.0) == UNSUPPORTED


@pytest.mark.parametrize("frame", ["", "world", "map"])
def test_poses_may_be_in_the_world_or_the_map(call, frame):
    assert call.spawn_code("rover", initial_pose__header__frame_id=frame) == OK
    assert call.code(SetEntityState, entity="rover", state__header__frame_id=frame) == OK


def test_a_name_that_is_taken_is_refused_or_changed(call):
    assert call.spawn_code("rover") == OK
    assert call.spawn_code("rover", entity_namespace="other") == 101
    answer = call.spawn("rover", y=1.0, entity_namespace="other", allow_renaming=True)
    assert (answer.result.result, answer.entity_name) == (OK, "rover_1")
    nameless = call.spawn("", y=2.0, entity_namespace="third", allow_renaming=True)
    assert (nameless.result.result, nameless.entity_name) == (OK, "robot")
    assert call.spawn_code("fourth", y=3.0, entity_namespace="/third/") == 105
    assert call.names() == ["robot", "rover", "rover_1"]


def test_there_are_only_so_many_robots(call, monkeypatch):
    monkeypatch.setattr("proctor.worlds.ros2.host.simulation_services.MAX_ROBOTS", 2)
    assert MAX_ROBOTS > 2
    assert [call.spawn_code(f"r{number}", y=float(number)) for number in range(3)] == [OK, OK, FAILED]


def test_entities_are_filtered_by_name_category_and_place(call):
    for number, name in enumerate(("rover_1", "rover_2", "other")):
        call.spawn(name, x=2.0 * number, y=5.0)
    assert call.names(filter="^rover_[0-9]+$") == ["rover_1", "rover_2"]
    assert call.names(filter="ver_1|^oth") == ["other", "rover_1"]
    assert call.names(filter="rover", categories=[EntityCategory(category=5)]) == []
    assert call.names(categories=[EntityCategory(category=1), EntityCategory(category=5)]) == [
        "other",
        "rover_1",
        "rover_2",
    ]
    box = Bounds(type=Bounds.TYPE_BOX, points=[Vector3(x=3.0, y=9.0, z=2.0), Vector3(x=-1.0, z=-1.0)])
    assert call.names(bounds=box) == ["rover_1", "rover_2"]
    high = Bounds(type=Bounds.TYPE_BOX, points=[Vector3(x=9.0, y=9.0, z=3.0), Vector3(x=-9.0, z=2.0)])
    assert call.names(bounds=high) == []
    for radius_m, found in ((0.85, ["other"]), (0.8, [])):  # the robot's own radius is 0.17 m
        ball = Bounds(type=Bounds.TYPE_SPHERE, points=[Vector3(x=5.0, y=5.0, z=0.5), Vector3(x=radius_m)])
        assert call.names(bounds=ball) == found


@pytest.mark.parametrize(
    ("filters", "code"),
    [
        ({"filter": "(a+)+$"}, UNSUPPORTED),
        ({"filter": "(a|a)(a|a)"}, UNSUPPORTED),
        ({"filter": ".*.*.*x"}, UNSUPPORTED),
        ({"filter": "a{9}{9}"}, UNSUPPORTED),
        ({"filter": "[[:alpha:]]"}, UNSUPPORTED),
        ({"filter": "a" * 1_000_000}, UNSUPPORTED),
        ({"filter": "["}, FAILED),
        ({"filter": "*"}, FAILED),
        ({"tags__tags": ["heavy"]}, UNSUPPORTED),
        ({"bounds": Bounds(type=Bounds.TYPE_CONVEX_HULL, points=[Vector3()] * 4)}, UNSUPPORTED),
        ({"bounds": Bounds(type=200)}, UNSUPPORTED),
        ({"bounds": Bounds(type=Bounds.TYPE_BOX, points=[Vector3()])}, FAILED),
        ({"bounds": Bounds(type=Bounds.TYPE_SPHERE, points=[Vector3(x=NAN), Vector3()])}, FAILED),
    ],
)
def test_filters_that_are_not_understood_are_refused(call, filters, code):
    assert call.code(GetEntities, **{f"filters__{key}": value for key, value in filters.items()}) == code


def test_what_belongs_to_the_scene_stays(call):
    for kind in (DeleteEntity, SetEntityState):
        answer = call(kind, entity="post")
        assert answer.result.result == FAILED
        assert "part of the scene" in answer.result.error_message


def test_states_follow_each_other_by_the_rules(call):
    assert call.state() == PLAYING
    assert call.go(PLAYING) == 101
    assert call.go(PAUSED) == OK
    assert call.go(PAUSED) == 101
    assert call.go(STOPPED) == OK
    assert call.go(PAUSED) == 103
    assert call.state() == STOPPED
    assert call.go(PLAYING) == OK
    for state in (QUITTING, NO_WORLD, 5, 6, 255):
        assert call.go(state) == 103
    assert call.state() == PLAYING


def test_steps_need_a_pause_and_are_counted(served, call):
    host = served[0]
    assert call.code(StepSimulation, steps=1) == FAILED
    call.go(STOPPED)
    assert call.code(StepSimulation, steps=1) == FAILED
    call.go(PLAYING)
    call.go(PAUSED)
    before_s = host.time_s
    assert call.code(StepSimulation, steps=90) == OK
    assert host.time_s - before_s == pytest.approx(1.5)
    for steps in (MAX_STEPS + 1, 2**63, 2**64 - 1):
        assert call.code(StepSimulation, steps=steps) == FAILED
    assert call.code(StepSimulation, steps=0) == OK
    assert host.time_s - before_s == pytest.approx(1.5)
    assert call.state() == PAUSED


def test_a_reset_resets_what_its_scope_says(served, call):
    host = served[0]
    call.go(PAUSED)
    call.spawn("rover")
    start = call(GetEntityState, entity="rover").state.pose.position

    def away():
        call(SetEntityState, entity="rover", state__pose__position__x=2.0)
        call.code(StepSimulation, steps=10)

    def reset(scope):
        assert call.code(ResetSimulation, scope=scope) == OK
        return host.time_s == 0, call(GetEntityState, entity="rover").state.pose.position == start

    away()
    assert reset(ResetSimulation.Request.SCOPE_TIME) == (True, False)
    away()
    assert reset(ResetSimulation.Request.SCOPE_STATE) == (False, True)
    away()
    assert reset(3) == (True, True)
    away()
    assert call.code(ResetSimulation, scope=4) == OK
    assert call.names() == []
    assert host.time_s > 0
    for scope in (0, 7, 255):
        call.spawn("rover")
        call.code(StepSimulation, steps=1)
        assert call.code(ResetSimulation, scope=scope) == OK
        assert (call.names(), host.time_s) == ([], 0)
    for scope in (8, 9, 128, 254):
        assert call.code(ResetSimulation, scope=scope) == NOT_FOUND


def test_stopping_begins_anew(served, call):
    call.spawn("rover")
    assert call.go(STOPPED) == OK
    assert served[0].time_s == 0
    assert call.names() == []


def test_features_are_those_that_are_served(call):
    features = call(GetSimulatorFeatures).features
    assert sorted(features.features) == sorted(FEATURES)
    assert SimulatorFeatures.SPAWNING_RESOURCE_STRING not in features.features
    served = dict(call.node.get_service_names_and_types_by_node("sim_host", "/"))
    for kind, feature in {
        SpawnEntity: SimulatorFeatures.SPAWNING,
        DeleteEntity: SimulatorFeatures.DELETING,
        GetEntityState: SimulatorFeatures.ENTITY_STATE_GETTING,
        SetEntityState: SimulatorFeatures.ENTITY_STATE_SETTING,
        GetSpawnables: SimulatorFeatures.SPAWNABLES,
        ResetSimulation: SimulatorFeatures.SIMULATION_RESET,
        StepSimulation: SimulatorFeatures.STEP_SIMULATION_MULTIPLE,
        GetSimulationState: SimulatorFeatures.SIMULATION_STATE_GETTING,
        SetSimulationState: SimulatorFeatures.SIMULATION_STATE_SETTING,
        LoadWorld: SimulatorFeatures.WORLD_LOADING,
    }.items():
        types = [f"simulation_interfaces/srv/{kind.__name__}"]
        assert (feature in features.features) == (types in served.values())
    for absent in ("get_entity_info", "unload_world", "get_available_worlds", "get_named_poses"):
        assert f"/{absent}" not in served


def test_spawnables_are_told_and_strange_sources_named(call):
    answer = call(GetSpawnables)
    assert [item.uri for item in answer.spawnables] == [ROBOT_URI]
    answer = call(GetSpawnables, sources=["https://robots.example\n"] * 1000)
    assert answer.result.result == OK
    assert "https://robots.example\\u000a" not in answer.result.error_message
    assert "https://robots.example" in answer.result.error_message
    assert len(answer.result.error_message) < 500


def test_worlds_are_loaded_from_paths_and_file_addresses(served, call, tmp_path):
    call.spawn("rover")
    (tmp_path / "a yard").mkdir()
    path = save_yard(tmp_path / "a yard" / "second.json", "second")
    for uri in (str(path), path.as_uri(), path.as_uri().replace("file://", "file://localhost")):
        answer = call(LoadWorld, uri=uri)
        assert (answer.result.result, answer.world.name) == (OK, "second"), answer.result.error_message
        assert answer.world.world_resource.uri == uri
        assert call.names() == []
        assert call.state() == STOPPED
    assert call.spawn_code("rover") == OK


@pytest.mark.parametrize(
    ("uri", "content", "code"),
    [
        ("", None, 102),
        ("missing.json", None, 102),
        ("%00.json", None, 102),
        ("n" * 300 + ".json", None, 102),
        ("n" * 1_000_000 + ".json", None, 102),
        ("broken.json", "{", 103),
        ("no_scene.json", '{"a": 1}', 103),
        ("not_utf8.json", b"\xff\xfe\xff", 103),
        ("no_mesh.stl", "solid", 103),
        (
            "asset.json",
            '{"scene_name": "a", "objects": [{"name": "b", "asset_path": "c.glb"}]}',
            104,
        ),
        ("text.txt", "hello", 101),
    ],
)
def test_worlds_that_are_none_are_refused_and_the_old_one_stays(call, tmp_path, uri, content, code):
    call.spawn("rover")
    if content is not None:
        (tmp_path / uri).write_bytes(content if isinstance(content, bytes) else content.encode())
    answer = call(LoadWorld, uri=f"{tmp_path}/{uri}" if uri else "")
    assert answer.result.result == code, answer.result.error_message
    assert 0 < len(answer.result.error_message) < 1000
    assert call.names() == ["rover"]
    assert call.state() == PLAYING


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("https://example.org/a.json", 101),
        ("file://elsewhere/a.json", 101),
        ("file://[", 102),
        ("file:///nowhere/%00.json", 102),
        ("/dev/zero", 101),
        ("/", 101),
    ],
)
def test_addresses_that_are_no_files_are_refused(call, uri, code):
    assert call.code(LoadWorld, uri=uri) == code


def test_a_world_in_a_string_is_not_supported(call):
    assert call.code(LoadWorld, resource_string="{}") == UNSUPPORTED


def test_without_a_world_there_is_nothing_to_play(ros_domain, tmp_path):
    with served_world(None, prefix="/empty/") as host, RosNode("caller") as node:
        call = Caller(node, "/empty")
        assert host.scene is None
        assert call.state() == NO_WORLD
        assert call.go(PLAYING) == 103
        assert call.spawn_code("rover") == INCORRECT_STATE
        assert call.code(ResetSimulation) == INCORRECT_STATE
        assert call.names() == []
        assert call.code(LoadWorld, uri=str(save_yard(tmp_path / "yard.json"))) == OK
        assert call.state() == STOPPED
        assert call.spawn_code("rover") == OK
        with pytest.raises(UserError, match="cannot stand before"):
            SimulationServices(host, prefix="a b")


TEXTS = ["", "rover", "post", "\0", "\u202e", "..", "/", "a" * 70_000, "file:///etc/passwd", "[", "world"]
VALUES = {
    "string": TEXTS,
    "double": [0.0, 1.0, -1.0, NAN, math.inf, -math.inf, 1e308, 5e-324],
    "uint64": [0, 1, 2, 2**63],
    "uint8": [0, 1, 2, 3, 4, 7, 255],
    "boolean": [False, True],
    "sequence<string>": [[], TEXTS],
}


def fill_at_random(message, rng):
    for field, kind in message.get_fields_and_field_types().items():
        if kind in VALUES:
            setattr(message, field, VALUES[kind][rng.integers(len(VALUES[kind]))])
        elif hasattr(getattr(message, field), "get_fields_and_field_types"):
            fill_at_random(getattr(message, field), rng)


def test_no_request_of_random_numbers_and_texts_harms_the_world(call):
    rng = np.random.default_rng(7)
    kinds = [SpawnEntity, DeleteEntity, GetEntities, GetEntityState, SetEntityState, LoadWorld]
    kinds += [ResetSimulation, StepSimulation, SetSimulationState, GetSpawnables]
    for _ in range(300):
        kind = kinds[rng.integers(len(kinds))]
        request = kind.Request()
        fill_at_random(request, rng)
        fields = {field: getattr(request, field) for field in request.get_fields_and_field_types()}
        assert len(call(kind, **fields).result.error_message) < 1000
    call.go(PLAYING)
    assert call.state() == PLAYING


def test_requests_may_be_of_version_2():
    resource = SimpleNamespace(uri="nowhere.json", resource_string="")
    with SimHost(None, SimHostOptions(camera_hz=0)) as host:
        services = SimulationServices(host)
        with pytest.raises(Refusal, match=r"there is no file 'nowhere\.json'"):
            services._load_world(SimpleNamespace(world_resource=resource), LoadWorld.Response())
        host.scene = Scene(SceneConfig(scene_name="empty"))
        with pytest.raises(Refusal, match=r"uri: expected one of .*, found 'nowhere\.json'"):
            services._spawn(SimpleNamespace(entity_resource=resource), SpawnEntity.Response())
