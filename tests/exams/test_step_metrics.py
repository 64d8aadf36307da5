"""Metrics that other packages add to an exam."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from proctor.core.errors import UserError
from proctor.core.interfaces import StepMetric
from proctor.core.types import Action, Vector3
from proctor.exams import step_metrics
from proctor.exams.driving import DrivingState
from proctor.exams.exam import Metric
from proctor.exams.step_metrics import metrics_of
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.exams.vln.metrics import METRICS
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig, plan_run
from proctor.runs.run import run


class States(StepMetric):
    """What it was shown.

    More about it.
    """

    is_rate = True

    def reset(self, episode, task):
        self.goal_m = task.distance_m(episode.start_position, episode.goal)
        self.asked = (task.success_threshold_m(episode), task.shortest_path_m(episode))
        self.seen = []

    def update(self, state):
        self.seen.append(state)

    def get_metric(self):
        States.last = self
        return self.goal_m


class Plain:
    def reset(self, episode, task):
        self.count = 0

    def update(self, state):
        self.count += 1

    def get_metric(self):
        return self.count


class Unfinished(StepMetric):
    def reset(self, episode, task):
        pass


TUPLE = Metric("tuple", lambda episode, trace, distance: 7.0, "T", "Seven.")


@pytest.fixture
def added(monkeypatch):
    """Install metrics: names, and what they stand for in this file."""
    points = []

    def add(name, target, module=__name__):
        points.append(EntryPoint(name=name, group="proctor.metrics", value=f"{module}:{target}"))

    def entry_points(group):
        return [point for point in points if point.group == group]

    monkeypatch.setattr(step_metrics, "entry_points", entry_points)
    metrics_of.cache_clear()
    yield add
    metrics_of.cache_clear()


def measured(name):
    episode = Episode(start_position=(0, 0, 0), goal_position=(3, 4, 0), success_threshold=2.0)
    exam = VlnExam()
    trace = exam.first_trace(episode)
    trace.add(Action.LEFT, DrivingState(position=Vector3(0, 0, 0), yaw=0.5, more={"battery": 0.9}))
    trace.add(Action.FORWARD, DrivingState(position=Vector3(3, 0, 0), collision=True))
    metric = next(metric for metric in metrics_of(VlnExam) if metric.name == name)
    return metric.score(episode, trace, exam.distance(episode))


def test_without_other_packages_an_exam_has_its_own_metrics(added):
    assert metrics_of(VlnExam) == METRICS


def test_added_metrics_follow_by_name_as_tuples_or_as_classes(added):
    added("zeta", "Plain")
    added("tuple", "TUPLE")
    added("tuple", "TUPLE")  # two groups may hold one and the same
    added("states", "States")
    more = metrics_of(VlnExam)[len(METRICS) :]
    assert [(metric.name, metric.is_rate) for metric in more] == [
        ("states", True),
        ("tuple", False),
        ("zeta", False),
    ]
    assert (more[0].label, more[0].definition) == ("states", "What it was shown.")
    assert more[1] is TUPLE
    assert (measured("tuple"), measured("zeta")) == (7.0, 2.0)


def test_a_class_sees_the_states_after_each_step_as_an_env_reports_them(added):
    added("states", "States")
    assert measured("states") == 5.0
    metric = States.last
    assert metric.asked == (2.0, 5.0)
    first, second = metric.seen
    origin = Vector3(0, 0, 0)
    assert first == {
        "position": origin,
        "yaw": 0.5,
        "collision": False,
        "battery": 0.9,
        "distance_to_goal": 5.0,
        "collision_count": 0,
        "step": 1,
        "trajectory": [origin, origin],
        "action": Action.LEFT,
    }
    assert (second["distance_to_goal"], second["collision_count"], second["step"]) == (4.0, 1, 2)
    assert (second["collision"], second["action"]) == (True, Action.FORWARD)
    assert "yaw" not in second


def test_the_metric_of_the_docs_can_be_added(added, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    code = page.partition("```python\n# my_metrics.py\n")[2].partition("```")[0]
    (tmp_path / "my_metrics.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    name, _, target = page.partition('entry-points."proctor.metrics"]\n')[2].splitlines()[0].partition(" = ")
    added(name, target.strip('"').partition(":")[2], module="my_metrics")
    assert measured(name) == 1.0


@pytest.mark.parametrize(
    ("name", "target", "complaint"),
    [
        ("lost", "Missing", r"metric 'lost' \(.*:Missing\) cannot be imported: AttributeError"),
        (
            "number",
            "METRICS",
            "metric 'number' .*expected a .*Metric or a class with reset, update, get_metric",
        ),
        ("env", "VlnExam", "metric 'env' .*found ABCMeta"),
        ("short", "Unfinished", r"metric 'short' .* lacks get_metric, update"),
        ("other", "TUPLE", "metric 'other' .* calls itself 'tuple'"),
        ("spl", "Plain", "metric 'spl' .*the exam vln has a metric of this name"),
    ],
)
def test_what_is_not_a_metric_is_refused_by_its_name(added, name, target, complaint):
    added(name, target)
    with pytest.raises(UserError, match=complaint):
        metrics_of(VlnExam)


def test_a_broken_metric_is_refused_before_a_run_begins(added, tmp_path):
    added("gone", "X", module="no_such_module")
    config = RunConfig(job=RunJob(policy="forward", env="mock"), suite="houses-v1", episodes=1)
    with pytest.raises(UserError, match="metric 'gone'"):
        plan_run(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_added_metric_is_in_the_results_of_a_run(added, tmp_path):
    added("zeta", "Plain")
    config = RunConfig(job=RunJob(policy="forward", env="mock"), suite="houses-v1", episodes=2)
    report = run(plan_run(config, tmp_path / "run"), lambda _: None)
    values = [episode.metrics["zeta"] for episode in report.results.episodes]
    assert values == [float(episode.steps) for episode in report.results.episodes]
    assert report.results.summary.metrics["zeta"].n == 2


def test_a_module_that_fails_and_two_metrics_of_one_name_are_refused(added):
    added("gone", "X", module="no_such_module")
    with pytest.raises(UserError, match=r"metric 'gone' .* cannot be imported: ModuleNotFoundError"):
        metrics_of(VlnExam)
    added("gone", "Plain")
    with pytest.raises(UserError, match="has the same name; uninstall one"):
        metrics_of(VlnExam)
