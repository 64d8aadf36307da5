"""The services of simulation_interfaces, by which others control the embedded world."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import Point, Pose, Quaternion, Twist
from geometry_msgs.msg import Vector3 as Vector3Message
from rclpy.exceptions import NameValidationException
from simulation_interfaces.msg import (
    EntityCategory,
    EntityState,
    Resource,
    Result,
    SimulationState,
    SimulatorFeatures,
    Spawnable,
    WorldResource,
)
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

from proctor.core.errors import InvalidFile, ProctorError, UserError
from proctor.core.types import Vector3
from proctor.scenes.scene import Scene
from proctor.worlds.ros2.host.sim_host import SimHost, State
from proctor.worlds.ros2.host.simulation_checks import (
    MAX_NAME,
    Refusal,
    SimulationRules,
    check_frame,
    check_name,
    check_namespace,
    name_filter,
    overlap,
    shown,
    standing_pose,
)
from proctor.worlds.ros2.node.convert import resource_of, stamp

MAX_ROBOTS = 16
MAX_STEPS = 3600  # a minute of simulated time, in which nothing else is answered
SINGLE_SCOPES = (
    ResetSimulation.Request.SCOPE_TIME,
    ResetSimulation.Request.SCOPE_STATE,
    ResetSimulation.Request.SCOPE_SPAWNED,
)
SCOPES = sum(SINGLE_SCOPES)
FEATURES = (
    SimulatorFeatures.SPAWNING,
    SimulatorFeatures.DELETING,
    SimulatorFeatures.ENTITY_BOUNDS_BOX,
    SimulatorFeatures.ENTITY_CATEGORIES,
    SimulatorFeatures.ENTITY_STATE_GETTING,
    SimulatorFeatures.ENTITY_STATE_SETTING,
    SimulatorFeatures.SPAWNABLES,
    SimulatorFeatures.SIMULATION_RESET,
    SimulatorFeatures.SIMULATION_RESET_TIME,
    SimulatorFeatures.SIMULATION_RESET_STATE,
    SimulatorFeatures.SIMULATION_RESET_SPAWNED,
    SimulatorFeatures.SIMULATION_STATE_GETTING,
    SimulatorFeatures.SIMULATION_STATE_SETTING,
    SimulatorFeatures.SIMULATION_STATE_PAUSE,
    SimulatorFeatures.STEP_SIMULATION_SINGLE,
    SimulatorFeatures.STEP_SIMULATION_MULTIPLE,
    SimulatorFeatures.WORLD_LOADING,
)
"""What is served, and nothing else."""


class SimulationServices:
    """Serves simulation_interfaces, version 1 or 2, with the rules and results of O3DE.

    The entities are the robots; what stands in the scene belongs to the world. Robots that were there when
    the services began are not among the spawned ones that a reset removes. Requests are answered in the
    host's loop. A prefix `sim` makes `/sim/spawn_entity`.
    """

    def __init__(self, host: SimHost, *, prefix: str = "", rules: SimulationRules | None = None) -> None:
        self._host, self._rules = host, rules or SimulationRules()
        self._spawnables = self._rules.spawnables
        self._spawned: set[str] = set()
        path = "/".join(["", *filter(None, prefix.split("/"))])
        handlers: dict[str, tuple[Any, Callable[[Any, Any], None]]] = {
            "spawn_entity": (SpawnEntity, self._spawn),
            "delete_entity": (DeleteEntity, self._delete),
            "get_entities": (GetEntities, self._get_entities),
            "get_entity_state": (GetEntityState, self._get_entity_state),
            "set_entity_state": (SetEntityState, self._set_entity_state),
            "get_spawnables": (GetSpawnables, self._get_spawnables),
            "reset_simulation": (ResetSimulation, self._reset),
            "step_simulation": (StepSimulation, self._step),
            "set_simulation_state": (SetSimulationState, self._set_state),
            "get_simulation_state": (GetSimulationState, self._get_state),
        }
        if self._rules.world_file is not None:
            handlers["load_world"] = (LoadWorld, self._load_world)
        try:
            for name, (kind, handle) in handlers.items():
                host.node.create_service(kind, f"{path}/{name}", answering(handle))
            host.node.create_service(
                GetSimulatorFeatures, f"{path}/get_simulator_features", self._get_features
            )
        except NameValidationException as error:
            raise UserError(f"'{prefix}' cannot stand before the name of a service: {error}") from None

    # Entities

    def _spawn(self, request: Any, response: Any) -> None:
        codes, host, scene = SpawnEntity.Response, self._host, self._scene()
        resource = resource_of(request, "entity_resource")
        if resource.uri not in self._spawnables:
            self._refuse_resource(resource)
        if request.name or not request.allow_renaming:
            check_name(request.name)
        check_namespace(request.entity_namespace)
        check_frame(request.initial_pose.header.frame_id)
        pose = standing_pose(request.initial_pose.pose, codes.INVALID_POSE)
        robots = host.entity_names()
        taken = {*robots, *(item.name for item in scene.objects)}
        if request.name in taken and not request.allow_renaming:
            raise Refusal(codes.NAME_NOT_UNIQUE, f"there is an entity {shown(request.name)} already")
        if len(robots) >= MAX_ROBOTS:
            raise Refusal(Result.RESULT_OPERATION_FAILED, f"there are {MAX_ROBOTS} robots, which is the most")
        name = request.name or "robot"
        if name in taken:
            renamed = (f"{name[: MAX_NAME - 4]}_{number}" for number in itertools.count(1))
            name = next(candidate for candidate in renamed if candidate not in taken)
        namespaces = [host.namespace_of(other) for other in robots]
        if request.entity_namespace.strip("/") in namespaces:
            raise Refusal(codes.NAMESPACE_INVALID, "another robot has this namespace already")
        host.use_floor(Vector3.of(request.initial_pose.pose.position))
        host.spawn(name, request.entity_namespace.strip("/"), pose)
        self._spawned.add(name)
        response.entity_name = name

    def _refuse_resource(self, resource: Any) -> None:
        if resource.resource_string and not resource.uri:
            raise Refusal(
                Result.RESULT_FEATURE_UNSUPPORTED, "resource_string is not supported, expected a uri"
            )
        raise Refusal(
            SpawnEntity.Response.NO_RESOURCE,
            f"uri: expected one of {', '.join(self._spawnables)}, found {shown(resource.uri)}",
        )

    def _delete(self, request: Any, _response: Any) -> None:
        self._check_entity(request.entity)
        self._host.delete(request.entity)
        self._spawned.discard(request.entity)

    def _get_entities(self, request: Any, response: Any) -> None:
        filters, host = request.filters, self._host
        if filters.tags.tags:
            raise Refusal(Result.RESULT_FEATURE_UNSUPPORTED, "tags are not supported: no entity has any")
        matches = name_filter(filters.filter)
        overlaps = overlap(filters.bounds, host.robot.radius_m, host.robot.height_m)
        wanted = {category.category for category in filters.categories}
        if not wanted or EntityCategory.CATEGORY_ROBOT in wanted:
            response.entities = [
                name for name in host.entity_names() if matches(name) and overlaps(host.state_of(name)[0])
            ]

    def _get_entity_state(self, request: Any, response: Any) -> None:
        self._check_entity(request.entity)
        position, (x, y, z, w), linear, angular = self._host.state_of(request.entity)
        state = EntityState()
        state.header.frame_id, state.header.stamp = "world", stamp(self._host.time_s)
        state.pose = Pose(
            position=Point(x=position.x, y=position.y, z=position.z),
            orientation=Quaternion(x=x, y=y, z=z, w=w),
        )
        state.twist = Twist(
            linear=Vector3Message(x=linear.x, y=linear.y, z=linear.z),
            angular=Vector3Message(x=angular.x, y=angular.y, z=angular.z),
        )
        response.state = state

    def _set_entity_state(self, request: Any, _response: Any) -> None:
        self._check_entity(request.entity)
        check_frame(request.state.header.frame_id)
        pose, twist = request.state.pose, request.state.twist
        standing_pose(pose, SetEntityState.Response.INVALID_POSE)
        if twist != Twist():
            raise Refusal(
                Result.RESULT_FEATURE_UNSUPPORTED, "twist: robots are put down at rest, expected zeros"
            )
        q, position = pose.orientation, Vector3.of(pose.position)
        self._host.use_floor(position)  # refuses another one than the robot is on
        self._host.place(request.entity, position, (q.x, q.y, q.z, q.w))

    def _get_spawnables(self, request: Any, response: Any) -> None:
        for uri, description in self._spawnables.items():
            spawnable = Spawnable(description=description)
            resource_of(spawnable, "entity_resource").uri = uri
            response.spawnables.append(spawnable)
        if request.sources:
            named = ", ".join(shown(source) for source in request.sources[:3])
            response.result.error_message = f"sources are not searched: {named}"

    # The world and its time

    def _load_world(self, request: Any, response: Any) -> None:
        codes, resource = LoadWorld.Response, resource_of(request, "world_resource")
        if not resource.uri:
            if resource.resource_string:
                raise Refusal(Result.RESULT_FEATURE_UNSUPPORTED, "resource_string is not supported")
            raise Refusal(codes.NO_RESOURCE, "uri: expected a scene file, found nothing")
        if self._rules.world_file is None:
            raise Refusal(Result.RESULT_FEATURE_UNSUPPORTED, "worlds cannot be loaded here")
        path = self._rules.world_file(resource.uri)
        try:
            scene = Scene.load(path)
            self._host.load_world(path)
        except InvalidFile as error:
            is_asset = error.place.endswith("asset_path")
            raise Refusal(
                codes.MISSING_ASSETS if is_asset else codes.RESOURCE_PARSE_ERROR, str(error)
            ) from None
        self._spawned.clear()
        self._host.set_state(State.STOPPED)
        name = scene.config.scene_name
        response.world = WorldResource(name=name, world_resource=Resource(uri=resource.uri))

    def _reset(self, request: Any, _response: Any) -> None:
        scopes = ResetSimulation.Request
        is_all = request.scope in (scopes.SCOPE_DEFAULT, scopes.SCOPE_ALL)
        if is_all and not self._rules.can_stop:
            raise Refusal(Result.RESULT_FEATURE_UNSUPPORTED, "scope: here only 1, 2 and 4 can be reset")
        scope = SCOPES if is_all else request.scope
        if scope & ~SCOPES or (not is_all and not self._rules.adds_scopes and scope not in SINGLE_SCOPES):
            expected = "a sum of 1, 2 and 4, or 0 or 255" if self._rules.adds_scopes else "1, 2 or 4"
            raise Refusal(Result.RESULT_NOT_FOUND, f"scope: expected {expected}, found {scope}")
        self._scene()
        if scope & scopes.SCOPE_SPAWNED:
            self._delete_spawned()
        if scope & scopes.SCOPE_STATE:
            self._host.reset_state()
        if scope & scopes.SCOPE_TIME:
            self._host.reset_time()

    def _step(self, request: Any, _response: Any) -> None:
        if self._host.state != State.PAUSED:
            raise Refusal(
                Result.RESULT_OPERATION_FAILED, f"the simulation is {self._host.state.name}, expected PAUSED"
            )
        if request.steps > MAX_STEPS:
            raise Refusal(
                Result.RESULT_OPERATION_FAILED,
                f"steps: expected up to {MAX_STEPS} at once, found {request.steps}",
            )
        if self._host.step(request.steps) < request.steps:
            raise Refusal(Result.RESULT_OPERATION_FAILED, "the simulator was ended meanwhile")

    def _set_state(self, request: Any, _response: Any) -> None:
        codes, now, wanted = SetSimulationState.Response, self._state(), request.state.state
        if wanted == now:
            raise Refusal(codes.ALREADY_IN_TARGET_STATE, "the simulation is in this state already")
        if now == SimulationState.STATE_NO_WORLD:
            raise Refusal(codes.INCORRECT_TRANSITION, "there is no world: load one first")
        if wanted not in tuple(State):
            raise Refusal(
                codes.INCORRECT_TRANSITION,
                f"expected STOPPED (0), PLAYING (1) or PAUSED (2), found {wanted}; who started the simulator "
                "ends it",
            )
        if (now, wanted) == (State.STOPPED, State.PAUSED):
            raise Refusal(codes.INCORRECT_TRANSITION, "the simulation is STOPPED: it has to play first")
        if wanted == State.STOPPED and not self._rules.can_stop:
            raise Refusal(codes.INCORRECT_TRANSITION, f"{self._rules.name} cannot be stopped from here")
        if wanted == State.STOPPED:  # which is to pause, and to begin anew
            self._delete_spawned()
        self._host.set_state(State(wanted))

    def _get_state(self, _request: Any, response: Any) -> None:
        response.state.state = self._state()

    def _get_features(self, _request: Any, response: Any) -> Any:
        loads = self._rules.world_file is not None
        offered = [feature for feature in FEATURES if loads or feature != SimulatorFeatures.WORLD_LOADING]
        response.features.features = offered
        response.features.custom_info = f"{self._rules.name}. Robots are the only entities."
        return response

    def _delete_spawned(self) -> None:
        for name in self._spawned & set(self._host.entity_names()):
            self._host.delete(name)
        self._spawned.clear()

    def _state(self) -> int:
        no_world: int = SimulationState.STATE_NO_WORLD
        return no_world if self._host.scene is None else int(self._host.state)

    def _scene(self) -> Scene:
        if self._host.scene is None:
            raise Refusal(Result.RESULT_INCORRECT_STATE, "there is no world: load one first")
        return self._host.scene

    def _check_entity(self, name: str) -> None:
        if name in self._host.entity_names():
            return
        scene = self._host.scene
        if scene is not None and any(item.name == name for item in scene.objects):
            raise Refusal(
                Result.RESULT_OPERATION_FAILED,
                f"{shown(name)} is part of the scene: only robots can be changed",
            )
        raise Refusal(Result.RESULT_NOT_FOUND, f"there is no entity {shown(name)}")


def answering(handle: Callable[[Any, Any], None]) -> Callable[[Any, Any], Any]:
    """Return a service's callback, which says of a request that it is OK or why it is refused."""

    def answer(request: Any, response: Any) -> Any:
        try:
            response.result.result = Result.RESULT_OK
            handle(request, response)
        except Refusal as refusal:
            response.result.result, response.result.error_message = refusal.code, str(refusal)
        except ProctorError as error:  # the world's own words
            response.result.result = Result.RESULT_OPERATION_FAILED
            response.result.error_message = str(error)
        return response

    return answer
