"""The states of navigate_to: every transition of the table happens, and no other can."""

import pytest
from floor_robots import Floor, room

from proctor.core.errors import UnknownName, UserError
from proctor.navigation.skill import navigate_to as module
from proctor.navigation.skill.states import TRANSITIONS, Event, SkillState

GOAL, OTHER, WALL = [3.0, 2.0, 0.0], [2.0, 3.0, 0.0], [0.01, 0.01, 0.0]


class _Recorded(dict):
    def __init__(self):
        super().__init__(TRANSITIONS)
        self.taken = set()

    def __getitem__(self, key):
        self.taken.add(key)
        return super().__getitem__(key)


def test_every_transition_of_the_table_is_taken(client, monkeypatch):
    table = _Recorded()
    monkeypatch.setattr(module, "TRANSITIONS", table)
    moving = (
        SkillState.INITIALIZING,
        SkillState.PATH_PLANNING,
        SkillState.TRAJECTORY_GENERATION,
        SkillState.EXECUTING,
    )
    for state in moving:  # another goal, and cancelled, in each state
        floor = Floor(client, room())
        floor.until(state, goal_pos=GOAL)
        floor.tick(goal_pos=OTHER)
        floor.until(state, goal_pos=OTHER)
        floor.skills.cancel("navigate_to")
        assert floor.skill.state is SkillState.FAILED
        assert floor.tick()["reason"] == "cancelled"
        assert floor.skill.state is SkillState.IDLE
    for state in moving[1:]:  # a new plan in each state: resuming asks for one
        floor = Floor(client, room())
        floor.until(state, goal_pos=GOAL)
        floor.skills.pause("navigate_to")
        floor.skills.resume("navigate_to")
        assert floor.skill.state is SkillState.PATH_PLANNING
        assert floor.finish(goal_pos=GOAL)["status"] == "succeeded"
    assert table.taken == set(TRANSITIONS)


def test_the_documented_diagram_is_in_the_table():
    diagram = {
        ("IDLE", "INITIALIZING"),
        ("INITIALIZING", "PATH_PLANNING"),
        ("INITIALIZING", "FAILED"),
        ("PATH_PLANNING", "TRAJECTORY_GENERATION"),
        ("PATH_PLANNING", "FAILED"),
        ("TRAJECTORY_GENERATION", "EXECUTING"),
        ("TRAJECTORY_GENERATION", "FAILED"),
        ("EXECUTING", "SUCCEEDED"),
        ("EXECUTING", "FAILED"),
        ("EXECUTING", "PATH_PLANNING"),
    }
    assert diagram <= {(begin.value, end.value) for (begin, _), end in TRANSITIONS.items()}


def test_a_drive_goes_through_the_states_in_order(client):
    floor = Floor(client, room())
    states = [floor.skills.get_skill_state("navigate_to")]
    for _ in range(6000):
        result = floor.tick(goal_pos=GOAL)
        state = floor.skills.get_skill_state("navigate_to")
        states += [state] * (state != states[-1])
        if result["status"] != "processing":
            break
    assert states == [
        "IDLE",
        "INITIALIZING",
        "PATH_PLANNING",
        "TRAJECTORY_GENERATION",
        "EXECUTING",
        "SUCCEEDED",
        "IDLE",
    ]


def test_callers_set_only_the_states_that_mean_something_to_do(client):
    floor = Floor(client, room())
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    with pytest.raises(UserError, match="unknown state 'INITIALISED'"):
        floor.skills.set_skill_state("navigate_to", "INITIALISED")
    for _ in range(60):
        floor.tick(goal_pos=GOAL)
    for name in ("INITIALIZING", "TRAJECTORY_GENERATION", "SUCCEEDED"):
        with pytest.raises(UserError, match=f"cannot be put from EXECUTING into {name}; IDLE"):
            floor.skills.set_skill_state("navigate_to", name)
    floor.skills.set_skill_state("navigate_to", "FAILED")
    assert floor.stands
    assert floor.tick(goal_pos=GOAL)["reason"] == "cancelled"
    with pytest.raises(UserError, match="cannot be put from IDLE into FAILED"):
        floor.skills.set_skill_state("navigate_to", "FAILED")
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    floor.skills.set_skill_state("navigate_to", "IDLE")
    assert floor.stands
    assert floor.skills.get_skill_state("navigate_to") == "IDLE"
    assert floor.skills.get_skill_data("navigate_to", "path") is None


def test_unknown_skill_and_parameter(client):
    floor = Floor(client, room())
    with pytest.raises(UnknownName, match="did you mean 'navigate_to'"):
        floor.skills.execute_skill("navigate_too", goal_pos=GOAL)
    with pytest.raises(UserError, match=r"no parameter 'goal_position'.*did you mean 'goal_pos'"):
        floor.skills.execute_skill("navigate_to", goal_position=GOAL)


def test_skill_data_has_the_documented_keys(client):
    floor = Floor(client, room())
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    data = {key: floor.skills.get_skill_data("navigate_to", key) for key in floor.skill.data}
    assert set(data) >= {
        "start_pos",
        "target_pos",
        "raw_path",
        "smoothed_path",
        "path",
        "trajectory",
        "start_time",
    }
    assert data["start_pos"] == pytest.approx([1, 1, 0])
    assert data["target_pos"] == pytest.approx(GOAL)
    assert data["smoothed_path"][0] == pytest.approx([1, 1, 0])
    assert data["smoothed_path"][-1] == pytest.approx(GOAL)
    assert data["path"] == data["smoothed_path"]
    t, pos, vel = data["trajectory"][0]
    assert (t, vel) == (0.0, [0.0, 0.0, 0.0])
    assert pos[:2] == pytest.approx([1, 1])
    floor.skills.set_skill_data("navigate_to", "note", 1)
    assert floor.skills.get_skill_data("navigate_to", "note") == 1
    floor.finish(goal_pos=GOAL)
    assert floor.skills.get_skill_data("navigate_to", "note") is None


def test_events_have_one_meaning_each():
    assert {event for _, event in TRANSITIONS} == set(Event)


def test_the_way_can_be_planned_anew_from_outside(client):
    floor = Floor(client, room())
    with pytest.raises(UserError, match="cannot be put from IDLE into PATH_PLANNING"):
        floor.skills.set_skill_state("navigate_to", "PATH_PLANNING")
    floor.until(SkillState.EXECUTING, goal_pos=GOAL)
    floor.skills.set_skill_state("navigate_to", "PATH_PLANNING")
    assert floor.skill.state is SkillState.PATH_PLANNING
    result = floor.finish(goal_pos=GOAL)
    assert (result["status"], result["replans"]) == ("succeeded", 1)


def test_messages_tell_each_stage(client):
    floor = Floor(client, room())
    messages = []
    while floor.tick(goal_pos=GOAL)["status"] == "processing":
        messages += [floor.skill._message] * (floor.skill._message not in messages)
    assert messages == [
        "Initializing navigation",
        "Planning path",
        "Planning in progress",
        "Path planning succeeded",
        "Generating trajectory",
        "Trajectory generated",
        "Navigating to goal",
        "Reached goal",
    ]
