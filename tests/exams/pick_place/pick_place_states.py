"""States of pick-and-place attempts, as envs report them and as metrics get them."""

from proctor.exams.pick_place.actions import JointPosition
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.metrics import METRICS
from proctor.exams.pick_place.state import read_state
from proctor.exams.trace import Trace

START = [0.5, 0.0, 0.8]
TARGET = [0.7, 0.2, 0.8]
SCORES = {metric.name: metric.score for metric in METRICS}


class NoTask:
    """These metrics ask nothing of the task."""

    def distance_m(self, a, b):
        raise AssertionError

    def shortest_path_m(self, episode):
        raise AssertionError

    def success_threshold_m(self, episode):
        raise AssertionError


def episode(*, target=TARGET, reference=None, **criteria):
    goal = {
        "target_object": {"name": "cup_red", "initial_position": START},
        "success_criteria": {"type": "grasp_and_lift", **criteria},
    }
    if target is not None:
        goal["target_location"] = {"type": "position", "position": target}
    return PickAndPlaceEpisode("e", task_goal=goal, reference_trajectory=reference)


def bare(position=START, *, grasped=False, gripper=0.04, ee=(0.5, 0.0, 0.9), **more):
    """A state with the keys that the design documents list, and no others."""
    return {
        "gripper_state": gripper,
        "object_grasped": grasped,
        "object_position": list(position),
        "ee_position": list(ee),
        **more,
    }


def trace_of(states):
    """A trace of such states, with what an env has to tell beside them."""
    trace = Trace()
    for state in states:
        told = {"position": [0.0, 0.0, 0.0], "yaw": 0.0, "collision": False, "phase": "reach"}
        told |= {"target_distance": None, "target_position": None}
        told |= {"phase": "lift"} if state["object_grasped"] else {}
        trace.add(JointPosition((0.0,) * 10), read_state(told | state))
    return trace


def score(name, states, an_episode=None):
    """The value of one of the exam's metrics."""
    return SCORES[name](an_episode or episode(), trace_of(states), None)


def started(metric_class, an_episode=None):
    metric = metric_class()
    metric.reset(an_episode or episode(), NoTask())
    return metric


def measure(metric_class, states, an_episode=None):
    """The value of one of the documents' metrics."""
    metric = started(metric_class, an_episode)
    for state in states:
        metric.update(state)
    return metric.get_metric()


HELD = {"grasped": True, "gripper": 0.005}
ATTEMPT = [
    bare(),
    bare(**HELD),
    bare((0.5, 0.0, 0.92), **HELD),
    bare((0.7, 0.2, 0.95), **HELD),
    bare((0.7, 0.21, 0.8)),
]
