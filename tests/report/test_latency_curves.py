"""Success against thinking time: in the terminal, in the page's data, and drawn in a real browser."""

import pytest
from house_runs import FIRST_EPISODES
from test_report import data_of

from proctor import cli
from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.vln.episode import Episode
from proctor.report.key_frames import collect
from proctor.report.latency_curves import latency_curves
from proctor.report.page_data import judge, page_of
from proctor.report.run_record import read_runs
from proctor.runs.folder import find_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The oracle at three latencies, at which it fails more and more often."""
    folder = tmp_path_factory.mktemp("latency")
    episodes = [
        Episode(episode_id=f"ep_{k}", scene_id="flat", goal_position=Vector3(2.0, 0.3 * k, 0.0), max_steps=60)
        for k in range(6)
    ]
    save_dataset(episodes, folder / "episodes.json")
    for seconds in ("0", "0.5", "2"):
        words = ["run", "--dataset", folder / "episodes.json", "--policy", "oracle", "--env", "mock"]
        words += ["--charge-latency", seconds, "--while-thinking", "hold", "--out", folder / "runs" / seconds]
        assert cli.main([str(word) for word in words]) == 0
    return folder / "runs"


def test_runs_that_differ_only_in_latency_make_a_curve(runs, proctor):
    (curve,) = latency_curves(read_runs(find_runs([runs]))[0])
    assert (curve.name, curve.while_thinking) == ("oracle", "hold")
    assert [point.seconds for point in curve.points] == [0.0, 0.5, 2.0]
    rates = [point.success.mean for point in curve.points]
    assert rates[0] == 1.0
    assert rates[2] < 1.0
    code, said, _ = proctor("report", runs, "--frames", "none")
    assert code == 0
    assert "Success against thinking time" in said
    assert f"oracle, hold 6 2 {100 * rates[2]:.0f} " in " ".join(said.split())
    (shown,) = data_of(runs / "report.html")["latencyCurves"]
    assert [point["seconds"] for point in shown["points"]] == [0.0, 0.5, 2.0]
    assert [point["success"][0] for point in shown["points"]] == [round(rate, 4) for rate in rates]


def test_runs_of_other_agents_make_no_curve(runs, tmp_path, proctor):
    words = ["run", "--dataset", runs.parent / "episodes.json", "--policy", "forward", "--env", "mock"]
    assert proctor(*words, "--charge-latency", "1", "--out", tmp_path / "forward")[0] == 0
    assert latency_curves(read_runs(find_runs([tmp_path, runs / "0"]))[0]) == []


def test_the_page_draws_the_curve(runs, browser, proctor):
    assert proctor("report", runs, "--frames", "none")[0] == 0
    context = browser.new_context(offline=True)
    page, problems = context.new_page(), []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((runs / "report.html").resolve().as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    card = page.locator(".latency-curve")
    assert "the robot keeps its last command" in card.inner_text()
    titles = card.locator("g.point title").all_text_contents()
    assert [title.split(" at ")[1].partition(" s")[0] for title in titles] == ["0", "0.5", "2"]
    heights = [float(dot.get_attribute("cy")) for dot in card.locator("g.point circle").all()]
    assert heights[0] < heights[2]
    context.close()
    assert problems == []


def test_a_charged_episode_is_driven_again_with_its_thinking_time(tmp_path, proctor):
    words = ["run", "--suite", "houses-v1", "--policy", "oracle", "--episode", FIRST_EPISODES[0].episode_id]
    words += ["--env-option", "width=32", "--env-option", "height=24"]
    assert proctor(*words, "--charge-latency", "0.3", "--while-thinking", "hold", "--out", tmp_path)[0] == 0
    records, _ = read_runs(find_runs([tmp_path]))
    judged = judge(records)
    (frames,) = collect(records, judged, page_of(records, judged)).values()
    assert (frames.source, frames.note) == ("replayed", "")
    assert frames.pictures
