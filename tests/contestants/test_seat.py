"""The seat: a run that waits for actions from outside, and contestants who answer late, twice or never."""

import json
import threading

import pytest
from running import run
from served_agents import episode

from proctor.cli import main
from proctor.contestants.seat import HumanSeat, Seat, StaleTurn
from proctor.exams.datasets import save_dataset
from proctor.runs.attempts import Patience
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig

ACTIONS = ["FORWARD", "LEFT", "STOP"]
LONG_S = 30.0


@pytest.fixture
def dataset(tmp_path):
    save_dataset([episode(name) for name in ("a", "b")], tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


def config(dataset):
    job = RunJob(env="mock", policy="human")
    return RunConfig(job=job, dataset=dataset, patience=Patience(max_unavailable=2, pause_s=0.0))


def contest(seat, dataset, out, contestant):
    """Run the exam while a contestant, in another thread, answers."""

    def take_part():
        try:
            contestant(seat)
        finally:
            seat.close()

    thread = threading.Thread(target=take_part)
    thread.start()
    try:
        return run(config(dataset), out, policy=seat).results
    finally:
        seat.close()
        thread.join(LONG_S)


def careful(seat, episodes=2, number=0):
    """Take some episodes turn by turn, after the turn of this number."""
    ended = 0
    while ended < episodes and (turn := seat.wait(number, LONG_S)) is not None:
        number = turn.number
        if turn.outcome is not None:
            ended += 1
        else:
            seat.begin()
            seat.answer(number, ACTIONS[turn.step])


def test_a_contestant_who_answers_turn_by_turn_takes_the_whole_exam(dataset, tmp_path):
    results = contest(HumanSeat(), dataset, tmp_path / "run", careful)
    assert [result.actions for result in results.episodes] == [[1, 2, 0]] * 2
    assert [result.status for result in results.episodes] != ["error"] * 2


def test_an_answer_counts_once_and_only_for_its_own_turn(dataset, tmp_path):
    refused = []

    def hasty(seat):
        with pytest.raises(StaleTurn):
            seat.answer(0, "FORWARD")
        first = seat.wait(0, LONG_S)
        seat.answer(first.number, "FORWARD")
        second = seat.wait(first.number, LONG_S)
        with pytest.raises(StaleTurn):
            seat.answer(first.number, "LEFT")
        with pytest.raises(StaleTurn):
            seat.answer(second.number + 1, "LEFT")
        seat.answer(second.number, "STOP")
        over = seat.wait(second.number, LONG_S)
        if over.outcome is not None:  # else the next episode has begun by now
            with pytest.raises(StaleTurn):
                seat.answer(over.number, "FORWARD")
        refused.append(over)
        careful(seat, episodes=1, number=over.number if over.outcome else over.number - 1)

    results = contest(HumanSeat(), dataset, tmp_path / "run", hasty)
    assert refused
    assert results.episodes[0].actions == [1, 0]


def test_the_time_of_an_episode_counts_from_its_beginning_and_is_then_the_contestants_fault(
    dataset, tmp_path
):
    def sleepy(seat):
        turn = seat.wait(0, LONG_S)
        assert seat.seconds_left() is None
        seat.begin()
        assert 0 <= seat.seconds_left() <= 0.2
        over = seat.wait(turn.number, LONG_S)  # without an answer
        turn = over if over.outcome is None else seat.wait(over.number, LONG_S)
        seat.answer(turn.number, "STOP")  # never begun: no limit

    results = contest(Seat(episode_timeout_s=0.2), dataset, tmp_path / "run", sleepy)
    first, second = results.episodes
    assert (first.error.side, first.error.kind) == ("agent", "episode_timeout")
    assert second.error is None


def test_to_give_up_is_a_failure_and_to_leave_before_the_first_step_is_none(dataset, tmp_path):
    def fickle(seat):
        turn = seat.wait(0, LONG_S)
        seat.leave(turn.number, "called away")
        turn = seat.wait(turn.number, LONG_S)
        turn = seat.wait(turn.number, LONG_S) if turn.outcome else turn
        seat.give_up(turn.number, "too hard")
        careful(seat, episodes=99, number=turn.number)

    results = contest(Seat(), dataset, tmp_path / "run", fickle)
    assert sorted(result.error.kind for result in results.episodes if result.error) == ["gave_up"]
    lines = (tmp_path / "run/episodes.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["failure_reason"] for line in lines]
    assert kinds[0] == "contestant_left"
    assert len(results.episodes) == 2


def test_a_seat_cannot_be_run_where_nobody_could_answer(dataset, tmp_path, capsys):
    code = main(
        ["run", "--dataset", str(dataset), "--env", "mock", "--policy", "human", "--out", str(tmp_path / "r")]
    )
    assert code == 2
    assert "takes the exam with `proctor play`" in " ".join(capsys.readouterr().err.split())


def test_whoever_waits_is_told_of_the_end_of_the_run(dataset, tmp_path):
    seen = []

    def patient(seat):
        careful(seat)
        last = seat.turn.number
        seen.append(seat.wait(last, LONG_S))  # until `run` closes it

    contest(HumanSeat(), dataset, tmp_path / "run", patient)
    assert seen == [None]
