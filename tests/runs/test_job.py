"""Options that were given to the env, and what they mean for the exam."""

import pytest

from proctor.core.errors import UserError
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.exams.vln.exam import VlnExam
from proctor.runs.job import RunJob, fit_job


def test_a_success_threshold_of_the_env_is_the_exams_unless_the_exam_has_its_own():
    job = RunJob(policy="random", env="mock", env_options={"success_threshold": 1.5})
    assert fit_job(job, VlnExam).make_exam().options.success_threshold_m == 1.5
    assert fit_job(job, VlnExam).identity()["success_threshold_m"] == 1.5
    own = RunJob(
        policy="random", env="mock", env_options=job.env_options, exam_options={"success_threshold_m": 3.0}
    )
    assert fit_job(own, VlnExam).make_exam().options.success_threshold_m == 3.0


def test_a_goal_cannot_be_hidden_and_shown_whoever_was_told():
    hidden = {"hide_goal": True}
    for job in (
        RunJob(policy="random", env_options={"object_info": True}, exam_options=hidden),
        RunJob(policy="random", exam_options={**hidden, "object_info": True}),
    ):
        with pytest.raises(UserError, match="hide_goal withholds what object_info shows"):
            fit_job(job, PickPlaceExam)
