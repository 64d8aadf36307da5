"""The report on pick-and-place in a real browser: funnel, filters, views of the hand, timeline, frames."""

import msgspec
import numpy as np
import pytest
from house_runs import edit_journal
from PIL import Image
from running import finished
from tabletop_runs import ENDINGS, GRASPED, LAST, write_run

from proctor import cli
from proctor.exams.pick_place.hand_views import side_of
from proctor.report import key_frames
from proctor.runs.recordings import recording_folder

PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
HOSTILE = "</script><img src=x onerror='window.hacked=1'> & <b>bold</b>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One policy that ends in every way there is, and one that mostly succeeds."""
    out = tmp_path_factory.mktemp("runs")
    dataset = out.parent / "episodes.json"
    write_run(out / "mine", ENDINGS, policy="mine", dataset=dataset)
    write_run(out / "expert", ["success"] * (len(ENDINGS) - 1) + ["dropped"], dataset=dataset)
    filmed = write_run(out.parent / "filmed", ["success"])
    frames = recording_folder(filmed, "pick_000") / "frames"
    frames.mkdir(parents=True)
    for step in range(LAST + 1):
        Image.new("RGB", (64, 48), (step, 100, 0)).save(frames / f"{step:05d}.jpg")
    edit_journal(
        out / "mine",
        lambda r: msgspec.structs.replace(r, instruction=HOSTILE) if r.episode_id == "pick_002" else r,
    )
    nothing = {"object_path": [], "base_path": [], "gripper": [], "phases": [], "held": []}
    edit_journal(
        out / "mine",
        lambda r: (
            r
            if r.failure_reason != "env_lost"
            else msgspec.structs.replace(
                r, trajectory=[], pick_place=msgspec.structs.replace(r.pick_place, **nothing)
            )
        ),
    )
    assert cli.main(["report", str(out), "--frames", "0"]) == 0
    assert cli.main(["report", str(filmed), "--out", str(out / "framed.html")]) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_frames, "MOST_FILM_FRAMES", 2)
        assert cli.main(["report", str(filmed), "--out", str(out / "few_frames.html")]) == 0
    return out


@pytest.fixture
def open_page(browser, runs):
    """Opens the report offline; the test fails on any error, request or message of the page."""
    contexts, problems = [], []

    def opened(fragment="", *, file="report.html", viewport=DESKTOP):
        context = browser.new_context(viewport=viewport, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((runs / file).resolve().as_uri() + fragment)
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def rows(page):
    return page.locator("#table tbody tr")


def test_the_funnel_counts_stages_of_each_policy(open_page):
    page = open_page()
    funnels = page.locator(".funnel")
    assert funnels.count() == 2
    counts = [funnels.nth(index).locator(".stage b").all_inner_texts() for index in (0, 1)]
    assert counts[0] == ["10", "8", "6", "5", "3", "1"]  # without the evaluator's fault
    assert counts[1] == ["11", "11", "11", "11", "10", "10"]
    widths = funnels.nth(0).locator(".stage-track i").evaluate_all("bars => bars.map((b) => b.offsetWidth)")
    assert widths == sorted(widths, reverse=True)
    assert widths[3] == pytest.approx(widths[0] / 2, abs=1)


def test_what_was_lost_between_stages_leads_to_its_episodes(open_page):
    page = open_page()
    page.click("[aria-label='mine: 2 lost before grasped']")
    assert page.input_value("#f-group0") == "reached"
    assert page.locator("#table tbody .kind").all_inner_texts() == ["⊃\nNot grasped", "!\nAgent fault"]
    page.click("#clear")
    assert rows(page).count() == 2 * len(ENDINGS)


def test_every_way_to_end_has_a_line_and_filters_work(open_page):
    page = open_page()
    assert page.locator(".classes tbody tr:not(.reason)").count() == len(ENDINGS)
    page.select_option("#f-kind", "dropped")
    assert rows(page).count() == 2
    page.click("#clear")
    page.select_option("#f-group1", "container")
    assert {cell.inner_text() for cell in page.locator("#table tbody td:nth-child(4)").all()} == {"container"}
    page.click("#clear")
    page.fill("#search", "gripper never let go")
    assert page.locator("#table tbody .kind").all_inner_texts() == ["◉\nNot released"]
    page.click("#clear")
    page.click("#table th >> text=Done %")
    values = [
        float(text) for text in page.locator("#table tbody td:nth-child(6)").all_inner_texts() if text != "–"
    ]
    assert values == sorted(values, reverse=True)


def test_scores_are_those_of_this_task(open_page):
    page = open_page()
    titles = [text.split("\n")[0] for text in page.locator("#scores .card h3").all_inner_texts()]
    assert titles[:3] == ["Success rate", "Completion rate", "Trajectory similarity"]
    said = page.locator("#scores .card").first.locator(".whisker").nth(0).get_attribute("aria-label")
    assert said.startswith("mine: Success rate 10%, 95 % interval")
    assert "Tolerance of a target position: 5 cm." in page.locator("#scores-note").inner_text()
    assert page.locator("#spread svg").count() == 3
    assert page.locator("#by option").all_inner_texts() == ["target type", "object", "language", "scene"]


def test_an_episode_shows_both_views_and_they_follow_the_slider(open_page, runs):
    page = open_page("#ep=pick_000&run=expert")
    page.wait_for_selector("dialog[open]")
    assert page.locator(".hand-top .driven").count() == 4
    assert page.locator(".hand-side .driven.phase-l").count() == 1
    assert page.locator(".hand-top .shape.big").count() >= 5
    result = finished(runs / "expert")["pick_000"]

    def at(view, mark):
        moved = page.locator(f".hand-{view} .{mark}").get_attribute("transform")
        x, y = (float(text) for text in moved.partition("(")[2].partition(")")[0].split(","))
        return x, -y

    for step in (0, GRASPED + 10, LAST):
        page.locator("input[type=range]").fill(str(step))
        hand, cup = result.trajectory[step], result.pick_place.object_path[step]
        assert at("top", "fingers") == pytest.approx((hand.x, hand.y), abs=0.0011)
        flat = side_of(result.pick_place).flat(np.array([(hand.x, hand.y, hand.z)]))[0]
        assert at("side", "fingers") == pytest.approx(tuple(flat), abs=0.0021)
        assert at("top", "carried") == pytest.approx(cup[:2], abs=0.0011)
        holds = page.locator(".hand-top .fingers").evaluate("mark => mark.classList.contains('holds')")
        assert holds == result.pick_place.held[step]
    assert (
        page.locator(".readout")
        .inner_text()
        .startswith(f"step {LAST} of {LAST} · 12.5 s · place · gripper 40.0 mm")
    )
    page.locator("input[type=range]").fill(str(GRASPED + 10))
    assert " · held · " in page.locator(".readout").inner_text()


def test_the_timeline_has_phases_hold_and_the_gripper(open_page):
    page = open_page("#ep=pick_004&run=mine")
    page.wait_for_selector("dialog[open]")
    assert page.locator(".timeline .act").count() == 4
    assert page.locator(".timeline .held").count() == 1
    assert page.locator(".timeline .curve").count() == 1
    assert page.locator(".timeline .bump").count() == 2
    assert page.locator(".timeline .wrong-text").text_content() == "went wrong"
    page.locator(".timeline").scroll_into_view_if_needed()
    box = page.locator(".timeline").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 12, box["y"] + 40)
    assert page.locator(".readout").inner_text().startswith(f"step {LAST} of {LAST}")
    assert "Let go of the red cup at step 85" in page.locator(".verdict").inner_text()


def test_frames_are_labelled_and_lead_to_their_step(open_page):
    page = open_page("#ep=pick_000", file="framed.html")
    page.wait_for_selector("dialog[open]")
    captions = page.locator(".frame span").all_inner_texts()
    assert [caption.split(" · ")[0] for caption in captions] == [
        "start",
        "reach",
        "grasp",
        "lift",
        "place",
        "end",
    ]
    assert captions[2] == f"grasp · step {GRASPED} · {GRASPED / 10:.1f} s"
    page.locator(".frame").nth(2).click()
    assert page.locator(".readout").inner_text().startswith(f"step {GRASPED} of ")
    assert page.locator(".frame.now").count() == 1


def test_hostile_texts_stay_texts_and_an_episode_that_never_began_opens(open_page):
    page = open_page("#ep=pick_002&run=mine")
    page.wait_for_selector("dialog[open]")
    assert page.locator("blockquote").text_content() == HOSTILE
    assert page.evaluate("window.hacked") is None
    page.evaluate("location.hash = '#ep=pick_010&run=mine'")
    page.wait_for_function("() => document.getElementById('ep-title').textContent.includes('pick_010')")
    assert "No paths were kept" in page.locator("#ep-body").inner_text()


@pytest.mark.parametrize("fragment", ["", "#ep=pick_000&run=expert"])
def test_nothing_is_wider_than_a_phone(open_page, fragment):
    page = open_page(fragment, viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    if fragment:
        assert page.evaluate("document.getElementById('episode').scrollWidth") <= PHONE["width"]


def test_it_prints(open_page):
    page = open_page("#ep=pick_000&run=expert")
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_play_moves_the_recorded_pictures(open_page):
    page = open_page("#ep=pick_000", file="framed.html")
    image = page.locator(".now-view img")
    sources = set()
    for step in (0, 10, 20):
        page.evaluate("(step) => goTo(step)", step)
        assert image.get_attribute("alt") == f"What the robot saw after step {step}"
        sources.add(image.get_attribute("src"))
    assert len(sources) == 3
    page.evaluate("() => goTo(0)")
    page.click(".play")
    page.wait_for_function("() => !document.querySelector('.now-view img').alt.endsWith('step 0')")


def test_key_frames_are_shown_where_there_is_room_for_few_others(open_page):
    page = open_page("#ep=pick_000", file="few_frames.html")
    key_steps, others = page.evaluate(
        "[ROWS[0].frames, ROWS[0].film].map((all) => all.map(([step]) => step))"
    )
    assert len(others) == 2
    assert not set(others) & set(key_steps)
    for step in (*key_steps, *others):
        page.evaluate("(step) => goTo(step)", step)
        assert page.locator(".now-view img").get_attribute("alt") == f"What the robot saw after step {step}"


def test_a_score_that_is_zero_everywhere_has_no_axis(open_page):
    page = open_page(file="framed.html")
    card = page.locator("#scores article", has_text="Drops per episode")
    assert card.locator(".scale").count() == 0
    assert page.locator("#scores article", has_text="Success rate").locator(".scale").count() == 1
    assert "0.0 cm" not in page.locator("#scores .scale").all_inner_texts()
