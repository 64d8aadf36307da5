"""The report in a real browser: it draws itself, filters, sorts, opens episodes, and trusts no text."""

import sys
from pathlib import Path
from pkgutil import resolve_name

import msgspec
import pytest
from house_runs import edit_journal, run_in_houses
from running import finished

from proctor import cli
from proctor.exams.names import all_exams
from proctor.exams.results import Fault
from proctor.report import html
from proctor.runs.summary import latency_of

PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>\u2028 & <b>bold</b> {x}"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of two policies in two houses, with a fault and hostile texts in it."""
    out = run_in_houses(tmp_path_factory.mktemp("runs"), episodes=2)
    first, second = finished(out / "forward")
    fault = Fault(side="agent", kind="policy_exception", message=HOSTILE, traceback=HOSTILE)
    changes = {"error": fault, "status": "error", "failure_reason": fault.kind, "instruction": HOSTILE}
    changes["verdict"] = msgspec.UNSET  # found again from the record
    edit_journal(
        out / "forward", lambda r: msgspec.structs.replace(r, **changes) if r.episode_id == second else r
    )
    assert cli.main(["report", str(out)]) == 0
    return out / "report.html", first, second


@pytest.fixture
def open_page(browser, report):
    """Opens the report offline; the test fails on any error, request or message of the page."""
    contexts, problems = [], []

    def opened(fragment="", *, viewport=DESKTOP, scheme="light"):
        context = browser.new_context(viewport=viewport, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "request", lambda request: problems.append(request.url) if request.url[:4] == "http" else None
        )
        page.goto(report[0].resolve().as_uri() + fragment)
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def rows(page):
    return page.locator("#table tbody tr")


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_page_shows_scores_classes_and_episodes(open_page):
    page = open_page()
    assert page.title() == "houses-v1: forward, oracle – Proctor report"
    assert page.locator("#scores .card").count() == 9
    success = page.locator("#scores .card").first.locator(".whisker")
    assert (
        success.nth(0)
        .get_attribute("aria-label")
        .startswith("forward: Success rate 0%, 95 % interval 0% to ")
    )
    assert success.nth(1).get_attribute("aria-label").startswith("oracle: Success rate 100%")
    assert "★" in success.nth(1).inner_text()
    assert page.locator(".classes tbody tr").count() >= 2
    assert page.locator("#spread svg").count() == 3
    assert rows(page).count() == 4
    assert (
        page.locator("#scores-note").inner_text().startswith("Mean and 95 % interval. Definitions of vln-ce")
    )


def test_search_filters_and_sorting(open_page, report):
    page = open_page()
    page.fill("#search", "success")
    assert rows(page).count() == 2
    assert page.locator("#count").inner_text() == "2 of 4 rows"
    page.fill("#search", f"{report[1]} forward")
    assert rows(page).count() == 1
    page.click("#clear")
    assert rows(page).count() == 4
    page.select_option("#f-run", label="oracle")
    assert rows(page).count() == 2
    page.select_option("#f-kind", "failure")
    assert rows(page).count() == 0
    page.click("#clear")
    page.select_option("#f-kind", "agent_fault")
    assert rows(page).count() == 1
    page.click("#clear")
    page.click("#table th >> text=Steps")
    steps = [int(text) for text in page.locator("#table tbody td:nth-child(7)").all_inner_texts()]
    assert steps == sorted(steps, reverse=True)
    assert page.locator("#table th").nth(6).get_attribute("aria-sort") == "descending"
    page.click("#table th >> text=Steps")
    assert [int(t) for t in page.locator("#table tbody td:nth-child(7)").all_inner_texts()] == steps[::-1]


def test_the_time_per_action_stands_in_a_card_in_the_table_and_at_each_episode(open_page, report):
    page = open_page()
    forward = latency_of(finished(report[0].parent / "forward").values())
    line = page.locator(".latency tbody tr").first
    assert line.locator("td").all_inner_texts()[0] == page.evaluate(f"milliseconds({forward.p50_ms})")
    assert line.get_attribute("title") == f"forward: over {forward.n} actions"
    cells = page.locator("#scores-table tbody tr").first.locator("td").all_text_contents()
    assert cells[-3:] == [f"{ms:.2f}" for ms in (forward.p50_ms, forward.p95_ms, forward.p99_ms)]
    page = open_page(f"#ep={report[1]}&run=forward")
    facts = page.locator(".facts").inner_text()
    assert "ms (median)" in facts
    assert "slowest action" in facts


def test_agent_faults_are_told_by_reason_with_their_first_message(open_page, report):
    page = open_page()
    line = page.locator(".classes .reason")
    assert line.count() == 1
    said = line.locator("th").inner_text()
    assert "the agent raised an error" in said
    assert f"first in {report[2]}: </script><script>" in said
    line.locator("button:not([disabled])").click()
    assert page.input_value("#f-kind") == "agent_fault:policy_exception"
    assert rows(page).count() == 1
    assert "– the agent raised an error" in page.locator("#f-kind option").all_inner_texts()
    page.click("#clear")
    page.fill("#search", "policy_exception")
    assert rows(page).count() == 1


def test_of_an_address_its_end_is_shown_where_room_is_short(open_page):
    page = open_page()
    assert page.evaluate("shortened('ws://localhost:8080')") == "…st:8080"
    assert page.evaluate("shortened('my_agent:LongName')") == "my_agent:LongName"


def test_a_bar_of_a_class_leads_to_its_episodes(open_page):
    page = open_page()
    page.click(".bar-button[aria-label^='oracle, Success']")
    assert rows(page).count() == 2
    assert page.input_value("#f-kind") == "success"


def test_an_episode_opens_by_row_link_and_key(open_page, report):
    page = open_page()
    rows(page).first.locator("td").nth(4).click()
    page.wait_for_selector("dialog[open]")
    assert report[1] in page.locator("#ep-title").inner_text()
    assert f"#ep={report[1]}&run=forward" in page.url
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "() => location.hash.includes('run=forward') && !location.hash.includes('" + report[1] + "')"
    )
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog:not([open])", state="attached")
    assert "#" not in page.url


def test_a_shared_link_shows_map_timeline_and_frames(open_page, report):
    page = open_page(f"#ep={report[1]}&run=oracle")
    page.wait_for_selector("dialog[open]")
    assert page.locator("blockquote").inner_text()
    assert "Stopped" in page.locator(".verdict").inner_text()
    assert page.locator(".map image").count() == 1
    assert page.locator(".map .reference").count() == 1
    assert page.locator(".map .driven").count() > 10
    frames = page.locator(".frame img")
    assert frames.count() == 4
    assert page.evaluate("[...document.querySelectorAll('.frame img')].every((i) => i.naturalWidth === 64)")
    page.locator(".frame").first.click()
    assert page.locator(".readout").inner_text().startswith("step 0 of ")
    before = page.locator(".map .robot").get_attribute("transform")
    page.locator("input[type=range]").focus()
    page.keyboard.press("End")
    last = page.locator("input[type=range]").get_attribute("max")
    assert page.locator(".readout").inner_text().startswith(f"step {last} of {last} · STOP")
    assert page.locator(".map .robot").get_attribute("transform") != before
    page.locator(".others input").check()
    assert page.locator(".map .other").count() == 2
    page.click("text=Whole plan")
    assert page.locator(".map image").count() == 1


def test_the_robot_stands_where_it_was_recorded(open_page, report):
    page = open_page(f"#ep={report[1]}&run=oracle")
    result = finished(report[0].parent / "oracle")[report[1]]
    step = 12
    page.locator("input[type=range]").fill(str(step))
    moved = page.locator(".map .robot").get_attribute("transform")
    x, y = (float(text) for text in moved.partition("(")[2].partition(")")[0].split(","))
    assert (x, -y) == pytest.approx((result.trajectory[step].x, result.trajectory[step].y), abs=0.0101)
    # The plan's image must lie in the same frame: its corners are those of the scene's drawing.
    box = page.evaluate("DATA.plans[ROWS[0].episode.plan].box")
    assert box[0] < x < box[2]
    assert box[1] < -y < box[3]


def test_hostile_texts_stay_texts(open_page, report):
    page = open_page(f"#ep={report[2]}&run=forward")
    page.wait_for_selector("dialog[open]")
    assert page.locator("blockquote").text_content() == HOSTILE
    assert page.locator(".fault pre").first.text_content() == HOSTILE
    assert page.locator("blockquote b, .fault img, blockquote img").count() == 0
    assert page.evaluate("window.hacked") is None


def test_light_dark_and_the_button_between_them(open_page):
    light, dark = open_page(scheme="light"), open_page(scheme="dark")
    assert background(light) == "rgb(251, 251, 250)"
    assert background(dark) == "rgb(20, 22, 26)"
    light.click("#theme")
    assert background(light) == background(dark)
    dark.click("#theme")
    assert background(dark) == "rgb(251, 251, 250)"


@pytest.mark.parametrize("fragment", ["", "episode"])
def test_nothing_is_wider_than_a_phone(open_page, report, fragment):
    page = open_page(f"#ep={report[1]}&run=forward" if fragment else "", viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    if fragment:
        assert page.evaluate("document.getElementById('episode').scrollWidth") <= PHONE["width"]


def test_it_prints(open_page, report, tmp_path):
    page = open_page()
    whole = page.pdf(format="A4")
    assert whole.startswith(b"%PDF")
    page.emulate_media(media="print")
    assert not page.locator("#filters").is_visible()
    single = open_page(f"#ep={report[1]}&run=oracle")
    single.emulate_media(media="print")
    assert not single.locator("main").is_visible()
    assert single.locator(".map").is_visible()


def test_a_thousand_rows_are_drawn_as_they_are_looked_at(open_page):
    page = open_page()
    drawn = page.evaluate(
        "() => { ROWS.splice(0, ROWS.length, ...Array.from({ length: 1000 }, () => ROWS[0]));"
        " applyFilters(); return [shown.length, document.querySelectorAll('#table tbody tr').length]; }"
    )
    assert drawn[0] == 1000
    assert drawn[1] < 200
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert rows(page).count() == 1000


def test_every_part_of_the_viewer_is_in_the_package():
    folder = Path(html.__file__).parent / "viewer"
    used = {*html.FIRST, *html.LAST, "style.css", "index.html"}
    assert {file.name for file in folder.iterdir()} == used
    for exam in all_exams():
        page = resolve_name(exam.page)
        folder = Path(sys.modules[page.__module__].__file__).parent / "viewer"
        assert {file.name for file in folder.iterdir()} == {*page.scripts, *page.styles}


def test_rooms_are_named_above_the_paths_and_the_end_above_the_robot(open_page, report):
    page = open_page(f"#ep={report[1]}&run=oracle")
    page.wait_for_selector("dialog[open]")
    order = page.evaluate(
        "[...document.querySelector('.map').children].map((e) => e.getAttribute('class') || e.tagName)"
    )
    assert order.index("room") > max(i for i, kind in enumerate(order) if kind == "driven")
    assert order.index("end") > order.index("robot")
    assert "bathroom" in page.locator(".map .room").all_text_contents()


@pytest.mark.parametrize("width", [420, 1366])
def test_names_and_numbers_stay_on_one_line(open_page, width):
    page = open_page(viewport={"width": width, "height": 850})
    places = "#table td:nth-child(2), #table td:nth-child(3), #table td.number, .whisker b, .whisker .name"
    lines_apart_px = 14  # a raised star is not another line
    broken = page.evaluate(
        """([places, apart]) => [...document.querySelectorAll(places)].filter((element) => {
          const range = document.createRange();
          range.selectNodeContents(element);
          const tops = [...range.getClientRects()].map((box) => box.top);
          return Math.max(...tops) - Math.min(...tops) > apart;
        }).map((element) => element.innerText)""",
        [places, lines_apart_px],
    )
    assert broken == []
