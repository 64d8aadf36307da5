"""What was said, in the report: in step with the map, as text only, bounded, whatever a transcript holds."""

import base64
import gzip
import io
import json

import pytest
import talking_policy
from PIL import Image
from served_agents import episode
from talking_policy import packed

from proctor import cli
from proctor.exams.datasets import save_dataset
from proctor.report import conversations
from proctor.report.conversations import shortened
from proctor.report.html import write_report
from proctor.report.run_record import read_runs
from proctor.runs import transcripts
from proctor.runs.folder import wire_file
from proctor.runs.transcripts import Transcript

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
DECISION = {"kind": "decision", "step": 0, "actions": ["FORWARD"], "reply": "ok", "prompt": "What next?"}


@pytest.fixture
def run(tmp_path):
    """A run of two episodes whose model replies with a hostile text, three times in each."""
    save_dataset([episode("ep_0"), episode("ep_1")], tmp_path / "episodes.json")
    command = [
        *(
            "run",
            "--dataset",
            str(tmp_path / "episodes.json"),
            "--env",
            "mock",
            "--out",
            str(tmp_path / "run"),
        ),
        *("--policy", f"{talking_policy.__file__}:TalkingPolicy", "--name", "talking"),
        *("--policy-option", f"reply={json.dumps(HOSTILE)}"),
    ]
    assert cli.main(command) == 0
    return tmp_path / "run"


@pytest.fixture
def open_page(browser):
    """Reports on a run and opens the page offline; the test fails on any error or message of the page."""
    contexts, problems = [], []

    def opened(run, *, width=1280, fragment=""):
        assert cli.main(["report", str(run)]) == 0
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((run / "report.html").resolve().as_uri() + fragment)
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def packed_file(tmp_path, *lines, raw=b""):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(gzip.decompress(packed(lines)) + raw))
    return path


def test_a_transcript_gives_the_decisions_with_their_pictures(run):
    found = Transcript(wire_file(run, "ep_0"))
    assert found.problems == []
    assert [decision.step for decision in found.decisions] == [0, 2, 4]
    assert (found.decisions[0].attempts, found.decisions[0].seconds) == (1, 0.5)
    assert set(found.decisions[0].pictures) <= set(found.pictures)


def test_replies_that_led_to_no_action_are_shown_as_well(tmp_path):
    request = {"kind": "request", "step": 3, "attempt": 0, "body": {"ask": "again"}}
    reply = {"kind": "reply", "step": 3, "attempt": 0, "status": 200, "seconds": 1.5, "body": "I refuse."}
    repaired = [{**DECISION, "step": 2}, request, reply, request, {**reply, "body": {"text": "Still not."}}]
    (first, last) = Transcript(packed_file(tmp_path, *repaired)).decisions
    assert (first.step, last.step, last.actions, last.attempts, last.seconds) == (2, 3, [], 2, 3.0)
    assert last.reply == 'I refuse.\n\n{\n  "text": "Still not."\n}'
    assert "again" in last.prompt
    assert last.note == "No action came of this (HTTP status 200)."
    third = {**DECISION, "step": 4}
    found = Transcript(packed_file(tmp_path, request, reply, {**request, "step": 4}, third)).decisions
    assert [decision.step for decision in found] == [3, 4]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"{not json\n", "1 line could not be read; the first is line 2: JSON is malformed"),
        (b"[]\n\xff\n", "2 lines could not be read; the first is line 2: Expected `object`, got `array`"),
        (b'{"kind":"decision","step":-1}\n', "line 2: Expected `int` >= 0 - at `$.step`"),
        (b'{"kind":"decision","step":1e99}\n', "line 2: Expected `int`, got `float` - at `$.step`"),
        (b'{"kind":"decision","step":1,"reply":7}\n', "line 2: Expected `str`, got `int` - at `$.reply`"),
        (b'{"kind":"reply","step":1,"body":' + b"[" * 99999 + b"\n", "line 2: maximum recursion depth"),
        (b'{"kind":"note","text":"it was too long"}\n', "it was too long"),
    ],
)
def test_lines_that_cannot_be_read_are_named_and_the_others_read(raw, problem, tmp_path):
    found = Transcript(packed_file(tmp_path, DECISION, raw=raw))
    assert len(found.decisions) == 1
    (said,) = found.problems
    assert problem in said


def test_kinds_of_later_versions_are_passed_over(tmp_path):
    found = Transcript(packed_file(tmp_path, DECISION, raw=b'{"kind":"sound","data":""}\n'))
    assert (len(found.decisions), found.problems) == (1, [])


def test_a_torn_file_is_read_as_far_as_it_goes(run):
    path = wire_file(run, "ep_0")
    whole = path.read_bytes()
    for content, decisions in ((whole[:-20], 3), (b"", 0), (b"not gzip", 0), (whole[:40], 0)):
        path.write_bytes(content)
        found = Transcript(path)
        assert len(found.decisions) <= decisions
        assert bool(found.problems) == bool(content)


def test_what_unpacks_to_too_much_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(transcripts, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(transcripts, "MAX_UNPACKED_BYTES", 5000)
    found = Transcript(packed_file(tmp_path, DECISION, raw=b"x" * 10**7))
    assert (len(found.decisions), found.problems) == (
        1,
        ["it is read only in part: a line, or the whole, is too long"],
    )
    found = Transcript(packed_file(tmp_path, *[DECISION] * 1000))
    assert 10 < len(found.decisions) < 100
    assert found.problems == ["it is read only in part: a line, or the whole, is too long"]


def test_long_texts_lose_their_middle():
    assert shortened("short") == "short"
    text = shortened("a" * 3000 + "b" * 3000)
    assert (text[0], text[-1]) == ("a", "b")
    assert "[... 2000 characters left out ...]" in text
    assert shortened("\ud800") == "?"


def test_the_page_shows_each_decision_in_step_with_the_slider(run, open_page):
    page = open_page(run, fragment="#ep=ep_0")
    talk = page.locator(".talk")
    slider = page.locator("#ep-body input[type=range]")
    slider.fill("0")
    assert talk.locator("h3").inner_text() == "Decision 1 of 3"
    assert "at the start · 0.5 s · 1.0k tokens in (4 % cached), 50 out, $0.25" in talk.inner_text()
    assert talk.locator(".chosen").inner_text() == "→ 1, 1"
    assert talk.locator(".said").inner_text() == "note of step 0"
    assert talk.locator("pre").nth(0).inner_text() == HOSTILE
    assert talk.locator("pre").nth(1).inner_text() == "Walk one metre. What next at step 0?"
    assert talk.locator("img").evaluate("image => image.complete && image.naturalWidth > 0")
    slider.fill("3")
    assert talk.locator("h3").inner_text() == "Decision 2 of 3"
    talk.get_by_role("button", name="Next decision").click()
    assert talk.locator("h3").inner_text() == "Decision 3 of 3"
    assert slider.input_value() == "4"
    assert talk.get_by_role("button", name="Next decision").is_disabled()
    assert page.evaluate("window.hacked") is None
    facts = page.locator(".facts").inner_text()
    assert "$0.75" in facts
    assert "3.0k (4 % cached)" in facts


def test_cost_and_tokens_stand_in_the_list_and_in_the_scores(run, open_page):
    page = open_page(run)
    row = page.locator("#table tbody tr").first.inner_text()
    assert "$0.75" in row
    assert "3.1k" in row
    card = page.locator("#scores .card", has_text="Used").inner_text()
    assert "$1.50" in card
    assert "6.0k" in card
    page.get_by_role("button", name="Cost").click()
    assert page.locator("#table th[aria-sort=descending]").inner_text().startswith("Cost")


@pytest.mark.parametrize("width", [1280, 420])
def test_the_page_does_not_scroll_sideways(width, run, open_page):
    page = open_page(run, width=width, fragment="#ep=ep_0")
    assert page.evaluate("document.querySelector('#episode').scrollWidth <= innerWidth")
    assert page.locator(".talk").bounding_box()["width"] <= width


def test_a_damaged_transcript_costs_nothing_else(run, open_page):
    wire_file(run, "ep_0").write_bytes(wire_file(run, "ep_0").read_bytes()[:-30])
    wire_file(run, "ep_1").write_bytes(b"not gzip")
    page = open_page(run, fragment="#ep=ep_0")
    assert (
        "ep_0.jsonl.gz: it is read only in part: Compressed file ended" in page.locator(".talk").inner_text()
    )
    page.locator("#ep-next").click()
    page.wait_for_function("() => document.querySelector('#ep-title').innerText.includes('ep_1')")
    assert "ep_1.jsonl.gz: it is read only in part: Not a gzipped file" in page.locator(".talk").inner_text()


def test_pictures_that_are_none_or_too_large_are_left_out(run, open_page):
    stream = io.BytesIO()
    Image.new("1", (5_000, 5_000)).save(stream, "PNG")
    pictures = {
        "a": "%%%",
        "b": base64.b64encode(b"GIF89a").decode(),
        "c": base64.b64encode(stream.getvalue()).decode(),
    }
    lines = [{"kind": "picture", "sha256": name, "data": data} for name, data in pictures.items()]
    wire_file(run, "ep_0").write_bytes(packed([*lines, {**DECISION, "pictures": ["a", "b", "c", "missing"]}]))
    page = open_page(run, fragment="#ep=ep_0")
    assert page.locator(".talk img").count() == 0
    assert "a picture cannot be read" in page.locator(".talk").inner_text()


def test_conversations_beyond_the_room_of_a_report_are_left_to_their_files(run, tmp_path, monkeypatch):
    monkeypatch.setattr(conversations, "MAX_REPORT_LETTERS", 10)
    monkeypatch.setattr(conversations, "MAX_DECISIONS", 2)
    runs, _ = read_runs([run])
    write_report(runs, tmp_path / "report.html", frames=None)
    page = (tmp_path / "report.html").read_text()
    assert page.count("Left out to keep this page small; the folder wire has it.") == 1
    assert "of 3 decisions the first 2 are shown" in page


def test_without_pictures_the_texts_remain(run, tmp_path):
    runs, _ = read_runs([run])
    write_report(runs, tmp_path / "report.html", frames=0)
    page = (tmp_path / "report.html").read_text()
    assert "data:image/jpeg" not in page
    assert "What next at step 2?" in page
