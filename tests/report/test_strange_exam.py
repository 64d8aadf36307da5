"""Reports on an exam of somebody else that says nothing about reports: tables, page and pictures."""

import json
from pathlib import Path

import pytest
from PIL import Image

from proctor import cli
from proctor.core.registry import BUILT_IN
from proctor.exams.exam import Metric
from proctor.exams.page import Page
from proctor.exams.step_metrics import metric_named
from proctor.exams.vln.exam import VlnExam

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_exam"


@pytest.fixture(scope="module")
def known():
    """The exam `point_goal` of the examples, as if it were installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLE)
        patch.setitem(BUILT_IN["exam"], "point_goal", "pointgoal.exam:PointGoalExam")
        yield


@pytest.fixture(scope="module")
def runs(known, tmp_path_factory):
    out = tmp_path_factory.mktemp("point_goal")
    dataset = EXAMPLE / "pointgoal" / "suite" / "episodes.json"
    words = ["run", "--dataset", dataset, "--episodes", 2, "--policy", "greedy", "oracle", "--out", out]
    assert cli.main([str(word) for word in words]) == 0
    assert cli.main(["report", str(out)]) == 0
    return out


def data_of(page):
    text = page.read_text().partition('<script type="application/json" id="data">')[2]
    return json.loads(text.partition("</script>")[0])


def test_tables_have_the_headings_of_its_metrics(runs, capsys):
    for words in (["results", runs], ["compare", runs / "greedy", runs / "oracle"]):
        assert cli.main([str(word) for word in words]) == 0
        out = capsys.readouterr().out
        assert "SR %" in out
        assert "DTG m" in out
        assert "NE" not in out


def test_its_page_has_metrics_verdicts_paths_and_actions(runs):
    data = data_of(runs / "report.html")
    facts = {metric["name"]: metric for metric in data["metrics"]}
    assert (facts["distance_to_goal"]["heading"], facts["distance_to_goal"]["about"]) == (
        "DTG m",
        "Path left.",
    )
    assert [name for name, metric in facts.items() if metric["hasCard"]] == [
        "success",
        "spl",
        "distance_to_goal",
        "collisions",
    ]
    first = data["results"][0]
    assert first["kind"] == "stopped_far"
    assert first["say"].startswith("Failed after")
    assert set(first["act"]) <= {"FORWARD", "LEFT", "RIGHT", "STOP"}
    assert len(first["xy"]) == 2 * (len(first["act"]) + 1)
    assert "plans" not in data


def test_its_page_draws_itself(runs, browser):
    problems = []
    page = browser.new_page()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((runs / "report.html").resolve().as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    assert "Stopped far" in page.locator(".classes").inner_text()
    assert page.locator("#scores .card h3").all_inner_texts()[2].startswith("DTG")
    assert page.locator("#table tbody tr").count() == 4
    assert page.locator("#table thead").inner_text().split()[-2:] == ["DTG", "m"]
    page.locator("#table tbody a").first.click()
    page.wait_for_selector("dialog[open]")
    assert page.locator(".map .driven").count() > 10
    assert page.locator(".map .goal").count() == 1
    assert page.locator(".steps .map-key li").all_inner_texts() == [
        "forward",
        "left",
        "right",
        "stop",
        "bump",
    ]
    assert page.locator(".readout").inner_text().startswith("step ")
    page.close()
    assert problems == []


def test_an_episode_of_it_is_drawn_as_a_path(runs, tmp_path):
    episode = data_of(runs / "report.html")["episodes"][0]["id"]
    file = tmp_path / "path.png"
    assert cli.main(["report", str(runs / "oracle"), "--png", episode, "--out", str(file)]) == 0
    with Image.open(file) as picture:
        assert len(picture.getcolors(picture.width * picture.height)) > 100


def test_a_page_of_its_own_brings_its_scripts(tmp_path, monkeypatch):
    (tmp_path / "my_pages" / "viewer").mkdir(parents=True)
    (tmp_path / "my_pages" / "__init__.py").write_text(
        "from proctor.exams.page import Page\nclass MyPage(Page):\n    scripts = ('mine.js',)\n"
    )
    (tmp_path / "my_pages" / "viewer" / "mine.js").write_text("// mine\n")
    monkeypatch.syspath_prepend(tmp_path)
    from my_pages import MyPage  # noqa: PLC0415

    class Further(MyPage):
        """Inherits them."""

    assert MyPage.viewer_file("mine.js") == Further.viewer_file("mine.js") == "// mine\n"
    with pytest.raises(FileNotFoundError, match="there is no viewer/other"):
        MyPage.viewer_file("other.js")
    assert issubclass(MyPage, Page)


def test_a_metric_that_nobody_describes_is_called_by_its_name():
    unknown = metric_named(VlnExam, "my_own")
    assert (unknown.heading, unknown.scale, unknown.better) == ("my_own", 1.0, "none")
    assert metric_named(VlnExam, "navigation_error").heading == "NE m"
    assert metric_named(VlnExam, "success_at_0.2m").heading == "0.2 m"


@pytest.mark.parametrize(
    ("unit", "heading", "scale"), [("%", "X %", 100), ("cm", "X cm", 100), ("s", "X s", 1)]
)
def test_a_heading_names_the_unit(unit, heading, scale):
    metric = Metric("x", lambda *_: 0.0, "X", "A number.", unit)
    assert (metric.heading, metric.scale) == (heading, scale)
