"""Exams are found by their names, and nothing but an exam's own folder names it."""

import re
from pathlib import Path

import pytest

from proctor.core.errors import UserError
from proctor.core.interfaces import Env, Policy
from proctor.exams.names import all_exams, check_fit, exam_named, exam_names, exam_of_record, fitting_names
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.exams.vln.exam import VlnExam
from proctor.worlds.mock import MockEnv

SOURCES = Path(__file__).parents[2] / "src"
NAMES = re.compile(r"""["'](vln|pick_and_place|pick_place)["']""")


def test_nothing_outside_of_an_exams_folder_names_it():
    found = [
        f"{file.relative_to(SOURCES)}:{number}: {line.strip()}"
        for file in SOURCES.rglob("*.py")
        if file.relative_to(SOURCES).parts[:2] != ("proctor", "exams")
        or len(file.relative_to(SOURCES).parts) == 3
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if NAMES.search(line)
    ]
    assert not found, "\n".join(found)


def test_the_search_for_names_would_find_one():
    assert NAMES.search('if task == "vln":')
    assert NAMES.search("EXAMS = {'pick_and_place': 1}")


def test_every_exam_is_registered_under_its_own_name():
    assert {exam.name for exam in all_exams()} == set(exam_names())
    assert exam_named("") is VlnExam


@pytest.mark.parametrize(
    ("record", "exam"),
    [
        ({"episode_id": "a", "start_position": {}}, VlnExam),
        ({"episode_id": "a", "task_goal": {}, "scene_objects": []}, PickPlaceExam),
        ({"episode_id": "a", "task_type": "pick_and_place"}, PickPlaceExam),
        ({"episode_id": "a", "task_type": "vln", "task_goal": {}}, VlnExam),
        ({"episode_id": "a"}, VlnExam),
    ],
)
def test_a_record_tells_its_exam(record, exam):
    assert exam_of_record(record) is exam


def test_a_record_of_an_exam_that_is_not_there_is_refused():
    with pytest.raises(UserError, match="unknown exam 'cooking'; available: "):
        exam_of_record({"episode_id": "a", "task_type": "cooking"})


def test_what_comes_with_an_exam_is_for_that_exam_alone():
    from proctor.exams.vln.oracle import OraclePolicy  # noqa: PLC0415

    check_fit(VlnExam, "env", "mock", MockEnv)
    with pytest.raises(
        UserError,
        match=r"env 'mock' is for vln, and these episodes are of pick_and_place; what fits: tabletop",
    ):
        check_fit(PickPlaceExam, "env", "mock", MockEnv)
    with pytest.raises(
        UserError, match=r"policy 'oracle' is for vln.*what fits: expert, hold, human, mcp, random, replay"
    ):
        check_fit(PickPlaceExam, "policy", "oracle", OraclePolicy)
    assert "tabletop" not in fitting_names(VlnExam, "env")


def test_a_class_of_ones_own_fits_all_exams_unless_it_names_some():
    class Anything(Policy):
        def act(self, observation):
            return 0

    class Picker(Anything):
        tasks = ("pick_and_place",)

    class World(Env):
        tasks = ("vln",)

    for exam in (VlnExam, PickPlaceExam):
        check_fit(exam, "policy", "Anything", Anything)
    check_fit(PickPlaceExam, "policy", "Picker", Picker)
    check_fit(VlnExam, "env", "World", World)
    with pytest.raises(UserError, match="policy 'Picker' is for pick_and_place"):
        check_fit(VlnExam, "policy", "Picker", Picker)
