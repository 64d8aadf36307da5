"""The page of `proctor play` in a real browser: keys, touch, languages, several windows and people."""

import os
import re
import signal
import subprocess
import sys

import pytest
from play_pages import LONG_S, SOLUTION, served
from playwright.sync_api import expect

from proctor.runs.folder import RunFolder

PHONE = {"viewport": {"width": 420, "height": 860}, "has_touch": True, "is_mobile": True}
PLAY = [sys.executable, "-m", "proctor.cli", "play", "--suite", "houses-v1", "--no-browser", "--port", "0"]
SMALL = ["--env-option", "width=160", "--env-option", "height=120"]

HOLD = """() => { for (let i = 0; i < 50; i += 1) {
  document.dispatchEvent(new KeyboardEvent("keydown", { code: "ArrowUp", repeat: i > 0 }));
} }"""
"""Holds a key: all repeats come before the first answer."""

expect.set_options(timeout=1000 * LONG_S)


@pytest.fixture
def open_page(browser):
    """Opens the page; the test fails on any error of it, and on any request to elsewhere."""
    contexts, problems = [], []

    def opened(url, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(1000 * LONG_S)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text))
        page.on(
            "request",
            lambda request: request.url.startswith((url[:20], "blob:")) or problems.append(request.url),
        )
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def page(tmp_path):
    with served(tmp_path) as found:
        yield found


def begin(page, name="Anna"):
    """Enter a name, read the rules, and wait for the first picture."""
    page.fill("#name", name)
    page.keyboard.press("Enter")
    page.wait_for_selector(".rules")
    page.keyboard.press("Enter")
    expect(page.locator("#steps")).to_contain_text("10 of 10")


def press(page, *keys):
    """Press keys one after the other, as fast as the steps are done."""
    for key in keys:
        before = page.inner_text("#steps")
        page.keyboard.press(key)
        expect(page.locator("#steps")).not_to_have_text(before)


def stop(page):
    page.wait_for_selector("#steps")
    page.keyboard.press("Enter")
    expect(page.locator("#ask")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_selector(".score")


def steps_left(page, count):
    expect(page.locator("#steps")).to_have_text(re.compile(rf"^{count} of 10 steps left$"))


def test_an_exam_is_taken_with_keys_from_the_name_to_the_summary(page, open_page):
    tab = open_page(page.url)
    begin(tab)
    assert tab.inner_text(".play blockquote") == "Walk one metre."
    press(tab, *SOLUTION)
    steps_left(tab, 6)
    tab.keyboard.press("Enter")
    expect(tab.locator("#ask")).to_be_visible()
    tab.keyboard.press("Escape")  # not yet
    expect(tab.locator("#ask")).to_be_hidden()
    steps_left(tab, 6)
    stop(tab)
    assert "You did it!" in tab.inner_text("h1")
    assert tab.locator(".facts dt").count() >= 3
    assert tab.locator("img.map").evaluate("image => image.decode().then(() => image.naturalWidth)") > 400
    tab.keyboard.press("Enter")
    expect(tab.locator("#where")).to_contain_text("Episode 2 of 2")
    steps_left(tab, 10)
    stop(tab)
    assert "Not this time" in tab.inner_text("h1")
    assert page.results("Anna")[1].verdict.sentence == tab.inner_text(".verdict")
    tab.keyboard.press("Enter")
    expect(tab.locator(".rate")).to_have_text("1 of 2 episodes succeeded")
    assert f"proctor report {page.out / 'Anna'}" in tab.inner_text("code")
    assert [result.actions for result in page.results("Anna")] == [[1, 1, 1, 1, 0], [0]]


def test_two_people_play_one_after_the_other(page, open_page):
    tab = open_page(page.url)
    for name in ("Anna", "Ben"):
        begin(tab, name)
        for _ in range(2):
            stop(tab)
            tab.click(".primary")
        tab.wait_for_selector(".rate")
        assert name in tab.inner_text("h1")
        tab.click("text=Next person")
    tab.wait_for_selector("#name")
    assert [len(page.results(name)) for name in ("Anna", "Ben")] == [2, 2]
    tab.fill("#name", "Anna")  # who has done all of it
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".rate")


def test_a_phone_has_buttons(page, open_page):
    tab = open_page(page.url, **PHONE)
    begin(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 420
    for left in (9, 8, 7, 6):
        tab.tap("[data-name=FORWARD]")
        steps_left(tab, left)
    tab.tap("[data-name=STOP]")
    tab.tap("#no")
    tab.tap("[data-name=LEFT]")
    steps_left(tab, 5)
    tab.tap("[data-name=STOP]")
    tab.tap("#yes")
    tab.wait_for_selector(".score")
    assert page.results("Anna")[0].actions == [1, 1, 1, 1, 2, 0]


def test_a_chinese_browser_is_spoken_to_in_chinese(page, open_page):
    tab = open_page(page.url, locale="zh-CN")
    expect(tab.locator("h2")).to_have_text("谁来参加？")
    tab.fill("#name", "安娜")
    tab.keyboard.press("Enter")
    expect(tab.locator(".rules li").first).to_contain_text("机器人摄像头")
    tab.keyboard.press("Enter")
    expect(tab.locator("#steps")).to_have_text("还剩 10 步，共 10 步")
    assert "前进" in tab.inner_text("[data-name=FORWARD]")
    assert tab.inner_text(".play blockquote") == "Walk one metre."  # as the exam has it
    tab.click("#language")
    steps_left(tab, 10)
    tab.reload()
    steps_left(tab, 10)  # the choice is kept


def test_a_second_window_is_told_and_can_take_over(page, open_page):
    first, second = open_page(page.url), open_page(page.url)
    begin(first)
    press(first, "ArrowUp")
    expect(second.locator("h1")).to_contain_text("in use in another window")
    second.keyboard.press("ArrowUp")
    second.click(".primary")
    steps_left(second, 9)
    expect(first.locator("h1")).to_contain_text("in use in another window")
    press(second, "ArrowUp")
    first.keyboard.press("Enter")  # takes it back
    steps_left(first, 8)
    stop(first)
    assert page.results("Anna")[0].actions == [1, 1, 0]


def test_a_page_that_is_loaded_again_shows_the_same(page, open_page):
    tab = open_page(page.url)
    begin(tab)
    press(tab, "ArrowUp", "ArrowLeft")
    tab.reload()
    steps_left(tab, 8)
    press(tab, "ArrowRight")
    stop(tab)
    tab.reload()
    tab.wait_for_selector(".score")
    assert page.results("Anna")[0].actions == [1, 2, 3, 0]


def test_a_lost_connection_comes_back_and_the_episode_waits(page, open_page):
    tab = open_page(page.url)
    begin(tab)
    press(tab, "ArrowUp")
    tab.evaluate("() => socket.close()")
    expect(tab.locator("#offline")).to_be_visible()
    expect(tab.locator("#offline")).to_be_hidden()
    steps_left(tab, 9)
    press(tab, "ArrowUp")
    steps_left(tab, 8)


def test_a_key_that_is_held_neither_queues_steps_nor_stops(page, open_page):
    tab = open_page(page.url)
    begin(tab)
    for _ in range(5):
        tab.keyboard.down("Enter")  # the second and all after it are repeats
    expect(tab.locator("#ask")).to_be_visible()
    tab.keyboard.up("Enter")
    tab.evaluate(HOLD)
    expect(tab.locator("#ask")).to_be_hidden()
    steps_left(tab, 9)  # one was on its way while all others came
    press(tab, "ArrowLeft")
    steps_left(tab, 8)


def test_the_rules_can_be_read_again(page, open_page):
    tab = open_page(page.url)
    begin(tab)
    press(tab, "ArrowUp")
    tab.click("#help")
    tab.wait_for_selector(".rules")
    tab.keyboard.press("ArrowUp")  # nobody drives while reading
    tab.keyboard.press("Enter")
    expect(tab.locator(".rules")).to_be_hidden()
    press(tab, "ArrowLeft")
    steps_left(tab, 8)  # two actions were done, and none while reading


def test_names_are_text_and_never_html(page, open_page):
    tab = open_page(page.url)
    name = "<img src=x onerror=alert(1)>A"
    begin(tab, name)
    assert name in tab.inner_text("#where")


class Command:
    """`proctor play` as people start it, in a process of its own."""

    def __init__(self, out, *words):
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        environment.pop("DISPLAY", None)
        self.process = subprocess.Popen(
            [*PLAY, *SMALL, "--out", str(out), *words], stdout=subprocess.PIPE, text=True, env=environment
        )
        self.url = next(line for line in self.process.stdout if "http://" in line).split()[-1]

    def end(self, number):
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=LONG_S)
        return self.process.returncode, rest


def test_the_command_goes_on_after_it_was_killed_in_the_middle_of_an_episode(tmp_path, open_page):
    command = Command(tmp_path, "--episodes", "2", "--name", "Anna")
    tab = open_page(command.url)
    tab.wait_for_selector(".rules")
    tab.keyboard.press("Enter")
    press(tab, "ArrowLeft")
    stop(tab)
    tab.keyboard.press("Enter")
    expect(tab.locator("#where")).to_contain_text("Episode 2 of 2")
    press(tab, "ArrowUp", "ArrowUp")
    tab.close()
    assert command.end(signal.SIGKILL)[0] == -signal.SIGKILL
    assert [result.actions for result in RunFolder.open(tmp_path / "Anna").episodes] == [[2, 0]]

    command = Command(tmp_path, "--episodes", "2", "--name", "Anna")
    tab = open_page(command.url)
    expect(tab.locator("#where")).to_contain_text("Episode 2 of 2")
    expect(tab.locator("#steps")).to_contain_text("500 of 500")  # from its beginning
    assert tab.locator("#view0").evaluate("image => image.decode().then(() => image.naturalWidth)") == 160
    stop(tab)
    assert tab.locator("img.map").evaluate("image => image.decode().then(() => image.naturalWidth)") > 400
    tab.keyboard.press("Enter")
    expect(tab.locator(".rate")).to_have_text("0 of 2 episodes succeeded")
    tab.close()
    code, output = command.end(signal.SIGINT)
    assert code == 0
    assert "Anna (human)" in output
    assert [result.actions for result in RunFolder.open(tmp_path / "Anna").episodes] == [[2, 0], [0]]


def test_the_command_says_what_is_wrong(proctor, tmp_path):
    code, _, errors = proctor("play", "--suite", "houses-v1", "--name", "...", "--out", tmp_path, "--port", 0)
    assert (code, "--name: expected 1 to 60" in errors) == (2, True)
    code, _, errors = proctor("play", "--suite", "house-v1", "--port", 0)
    assert (code, "did you mean 'houses-v1'" in errors) == (2, True)
    code, _, errors = proctor("play", "--suite", "houses-v1", "--out", tmp_path, "--port", 70000)
    assert (code, "--port: expected a number" in errors) == (2, True)
