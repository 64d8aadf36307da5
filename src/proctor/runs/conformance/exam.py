"""Whether an exam keeps its contract: `check_exam`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
from msgspec.structs import replace

from proctor.core.errors import AgentFault
from proctor.core.interfaces import Env
from proctor.core.registry import load, names
from proctor.core.types import EpisodeInfo
from proctor.exams.baselines import MockPolicy
from proctor.exams.datasets import Dataset
from proctor.exams.exam import ExamOptions, Metric
from proctor.exams.findings import EpisodesToCheck, Finding
from proctor.exams.names import AnyExam
from proctor.exams.results import EpisodeResult, Fault, Side, Verdict
from proctor.exams.step_metrics import metrics_of
from proctor.exams.trace import AnyTrace
from proctor.runs.conformance.checks import (
    TRIED_STEPS,
    Check,
    Checks,
    attempt,
    difference,
    expect,
    shortened,
)
from proctor.runs.grade import encode_result, grade
from proctor.runs.rollout import rollout
from proctor.runs.traces import decode_trace, encode_trace

REQUIRED = ("name", "episode", "state_type", "envs", "metrics")
REQUIRED_OF_EPISODE = ("episode_id", "scene_id", "step_limit", "language", "split")
NONSENSE: tuple[Any, ...] = (None, "fly", math.nan, [], {"action": "fly"})
"""Answers that are not an action of any exam."""


def check_exam(
    exam_class: type[AnyExam], dataset: Dataset | None = None, env: Env | None = None
) -> list[Check]:
    """Try out whether an exam keeps its contract. The env is closed afterwards.

    Without a dataset, only the class itself is looked at. Without an env, no episode is run.
    """
    checks = Checks()
    with checks.rule("the class has all attributes and methods", "see proctor.exams.exam.Exam"):
        missing = [name for name in REQUIRED if not hasattr(exam_class, name)]
        missing += sorted(getattr(exam_class, "__abstractmethods__", ()))
        expect(holds=not missing, found=f"{exam_class.__name__} lacks {', '.join(missing)}")
    if not checks.is_last_ok:
        return checks.items
    _check_types(checks, exam_class)
    _check_metric_list(checks, exam_class)
    _check_names(checks, exam_class)
    with checks.rule("the exam can be made with the defaults of its options", "give every option a default"):
        exam = exam_class(exam_class.options_type())
    if dataset is None or not checks.is_last_ok:
        return checks.items
    _check_runs(checks, exam)
    _check_files(checks, exam, dataset)
    _check_answers(checks, exam)
    _check_scores(
        checks, exam, dataset.episodes[0], exam.first_trace(dataset.episodes[0]), "nothing happened"
    )
    if env is not None:
        try:
            _check_episode(checks, exam, dataset.episodes[0], env)
        finally:
            env.close()
    return checks.items


def _check_types(checks: Checks, exam: type[AnyExam]) -> None:
    with checks.rule("episode and state_type are msgspec structs", "inherit msgspec.Struct"):
        for name in ("episode", "state_type"):
            found = getattr(exam, name)
            is_struct = isinstance(found, type) and issubclass(found, msgspec.Struct)
            expect(holds=is_struct, found=f"{name} is {found!r:.60}")
    with checks.rule("options_type inherits ExamOptions, and result EpisodeResult"):
        for name, base in (("options_type", ExamOptions), ("result", EpisodeResult)):
            found = getattr(exam, name)
            is_right = isinstance(found, type) and issubclass(found, base)
            expect(holds=is_right, found=f"{name} is {found!r:.60}")


def _check_metric_list(checks: Checks, exam: type[AnyExam]) -> None:
    with checks.rule("metrics are Metric objects with names of their own", "give each metric another name"):
        wrong = next((metric for metric in exam.metrics if not isinstance(metric, Metric)), None)
        expect(holds=wrong is None, found=f"found {wrong!r:.60}")
        twice = [name for name, n in Counter(metric.name for metric in exam.metrics).items() if n > 1]
        expect(holds=not twice, found=f"several metrics are called {', '.join(twice)}")
    with checks.rule(
        "one metric is called success, and is a rate", "it decides whether an episode succeeded"
    ):
        found = {m.name: m for m in exam.metrics if isinstance(m, Metric)}
        expect(holds="success" in found, found=f"the metrics are {', '.join(found) or 'none'}")
        expect(holds=found["success"].is_rate, found="success has is_rate=False")
    with checks.rule(
        "metrics have a label and a definition", "people read them in tables", severity="warning"
    ):
        bare = [m.name for m in exam.metrics if isinstance(m, Metric) and not (m.label and m.definition)]
        expect(holds=not bare, found=f"without: {', '.join(bare)}")


def _check_names(checks: Checks, exam: type[AnyExam]) -> None:
    with checks.rule("its envs are known", "register them in the group proctor.envs"):
        unknown = [name for name in exam.envs if name not in names("env")]
        expect(
            holds=bool(exam.envs) and not unknown, found=f"unknown: {', '.join(unknown) or 'it names none'}"
        )
    with checks.rule("its baselines load", "write module:Class"):
        for name in exam.baselines:
            load("policy", name, exam.baselines)


def _check_runs(checks: Checks, exam: AnyExam) -> None:
    with checks.rule("env_options, identity and notes are JSON", "return plain dicts and lists of text"):
        options = exam.env_options(exam.options, 0)
        _expect_json(options, "env_options()")
        _expect_json(exam.identity(exam.options), "identity()")
        _expect_json(exam.notes(exam.options, options), "notes()")


def _check_files(checks: Checks, exam: AnyExam, dataset: Dataset) -> None:
    episodes: Sequence[Any] = dataset.episodes
    with checks.rule("episodes are of the exam's type, with all that is read of them", "add the field"):
        for episode in episodes:
            expect(holds=isinstance(episode, exam.episode), found=f"found {type(episode).__name__}")
            missing = [name for name in REQUIRED_OF_EPISODE if not hasattr(episode, name)]
            expect(holds=not missing, found=f"'{episode.episode_id}' lacks {', '.join(missing)}")
    with checks.rule("episodes survive JSON, as workers get them", "use types that msgspec encodes"):
        for episode in episodes:
            read = msgspec.json.decode(msgspec.json.encode(episode), type=exam.episode)
            expect(holds=read == episode, found=f"'{episode.episode_id}' is read as another one")
    with checks.rule("check() yields findings, none of them an error", "correct the dataset"):
        given = EpisodesToCheck(
            dict(enumerate(episodes)), dataset.path, dataset.format, dataset.scenes, is_run=True
        )
        for finding in exam.check(given):
            expect(holds=isinstance(finding, Finding), found=f"yielded {type(finding).__name__}")
            expect(holds=finding.severity != "error", found=f"{finding.kind}: {finding.text}")
    with checks.rule("scene_files() yields files that exist", "yield absolute paths"):
        for file in exam.scene_files(episodes):
            expect(holds=isinstance(file, Path) and file.is_file(), found=f"found {file!r:.120}")
    with checks.rule("agents are told an instruction and details that JSON can hold", "see Exam.brief"):
        for episode in episodes:
            told = exam.brief(episode, {})
            expect(holds=isinstance(told, EpisodeInfo), found=f"brief() returned {type(told).__name__}")
            text = exam.instruction(episode)
            expect(holds=isinstance(text, str), found=f"instruction() returned {type(text).__name__}")
            _expect_json(told.details, "the details of brief()")


def _check_answers(checks: Checks, exam: AnyExam) -> None:
    with checks.rule("parse_action() refuses nonsense with an AgentFault", "raise AgentFault(kind, message)"):
        for answer in NONSENSE:
            try:
                found = exam.parse_action(answer)
            except AgentFault:
                continue
            expect(holds=False, found=f"{answer!r} is taken for {found!r:.60}")
    remedy = "write sample_action, so that the policy random can take the exam"
    with checks.rule("actions by chance are actions, and can be written and read", remedy):
        rng = np.random.default_rng(0)
        for step in range(TRIED_STEPS):
            encoded = exam.encode_action(exam.parse_action(exam.sample_action(rng, step)))
            _expect_json(encoded, "encode_action()")
            read = exam.encode_action(exam.parse_action(encoded))
            expect(
                holds=not difference(encoded, read, "action"),
                found=f"{encoded!r:.60} is read as {read!r:.60}",
            )


def _check_episode(checks: Checks, exam: AnyExam, episode: Any, env: Env) -> None:
    """Let the policy `random` take a short episode, and score what it did."""
    short = shortened(episode, TRIED_STEPS) or episode
    with checks.rule("the policy random can take an episode", "see what check-env says of the env"):
        trace = rollout(env, MockPolicy(), short, exam, seed=0, agent_id="0")
        kinds = {type(state) for state in trace.states}
        expect(holds=kinds <= {exam.state_type}, found=f"states are {', '.join(k.__name__ for k in kinds)}")
    if not checks.is_last_ok:
        return
    with checks.rule("a trace can be written and read", "use types in the state that msgspec reads back"):
        read = decode_trace(exam, encode_trace(exam, "0", trace), Path("trace"))
        for name in ("states", "actions"):
            before, after = (msgspec.to_builtins(getattr(each, name)) for each in (trace, read))
            changed = difference(before, after, name)
            expect(holds=not changed, found=changed)
    _check_scores(checks, exam, short, trace, "an episode by chance")
    with checks.rule(
        "a trace that was read again gets the same scores", "let scores depend on the trace alone"
    ):
        before, after = (grade(exam, short, each).metrics for each in (trace, read))
        changed = difference(before, after, "metrics")
        expect(holds=not changed, found=changed)


def _check_scores(checks: Checks, exam: AnyExam, episode: Any, trace: AnyTrace, what: str) -> None:
    before = deepcopy((trace.states, trace.actions))
    with checks.rule(f"{what}: every metric is a number or NaN, the same each time", "return a float"):
        distance = exam.distance(episode)
        for metric in metrics_of(type(exam)):
            _check_metric(metric, episode, trace, distance)
    with checks.rule(f"{what}: scoring does not change the trace", "scores are pure functions"):
        expect(holds=not difference(before, (trace.states, trace.actions), "trace"), found="it was changed")
    sides: list[Side | None] = list(get_args(Side))
    for side in [None, *sides] if trace.states else sides:  # what never began has ended by a fault
        ended = "ends" if side is None else f"breaks off ({side})"
        with checks.rule(
            f"{what}: it has a record and a verdict if it {ended}", "see Exam.record and verdict"
        ):
            fault = None if side is None else Fault(side=side, kind="tried", message="tried")
            result = grade(exam, episode, trace, fault=fault)
            _check_verdict(exam, episode, result)
            encode_result(exam, result)
            if fault is None:
                _check_verdict(
                    exam, episode, replace(result, status="success", success=True, failure_reason=None)
                )
                reason: Any = exam.failure_reason(episode, replace(result, status="failure", success=False))
                expect(
                    holds=isinstance(reason, str) and bool(reason), found=f"failure_reason is {reason!r:.60}"
                )


def _check_metric(metric: Metric, episode: Any, trace: AnyTrace, distance: Any) -> None:
    value, error = attempt(metric.score, episode, trace, distance)
    expect(holds=not error, found=f"the metric '{metric.name}' {error}")
    again, _ = attempt(metric.score, episode, trace, distance)
    found = f"the metric '{metric.name}' returned {value!r:.60}"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    expect(holds=is_number, found=f"{found} ({type(value).__name__})")
    is_within = math.isnan(value) or not (metric.is_rate or metric.is_score) or 0 <= value <= 1
    expect(holds=is_within, found=f"{found}, and is a score from 0 to 1")
    expect(holds=not difference(value, again, "it"), found=f"{found}, then {again!r:.60}")


def _check_verdict(exam: AnyExam, episode: Any, result: EpisodeResult) -> None:
    for known in (episode, None):  # a report may not find the dataset
        verdict: Any = exam.verdict(known, result)
        expect(holds=isinstance(verdict, Verdict), found=f"verdict() returned {type(verdict).__name__}")
        expect(holds=bool(verdict.kind and verdict.sentence), found=f"an empty verdict: {verdict!r:.80}")


def _expect_json(value: Any, what: str) -> None:
    try:
        read = msgspec.json.decode(msgspec.json.encode(value))
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        expect(holds=False, found=f"{what} cannot be written: {error}")
    else:
        plain = msgspec.to_builtins(value)
        expect(holds=not difference(plain, read, what), found=f"{what} is read as another value")
