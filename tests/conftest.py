"""What holds for all tests."""

import json
import os
import shutil
import signal
from importlib.util import find_spec

import pytest
from hypothesis import settings

# A job in the background of a script ignores SIGINT, and so would all commands that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# They run in .venv-ros, which `make ros` sets up.
collect_ignore = [] if find_spec("rclpy") else ["ros"]

if "PYTEST_XDIST_WORKER" in os.environ:
    # The workers keep all cores busy: threads in each of them would only be in each other's way.
    # With 0, Mesa draws in the thread that asks for a picture.
    for name, count in (("LP_NUM_THREADS", "0"), ("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")):
        os.environ.setdefault(name, count)

# On a busy machine anything takes long for once.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable():
    """Replace halves of surrogate pairs, which hostile text logs and no worker could send as UTF-8."""
    report = yield
    return json.loads(json.dumps(report, ensure_ascii=False).encode(errors="replace"))


@pytest.fixture(scope="module")
def browser():
    """The system's Chromium: what people open is tested in a real browser."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - not there in .venv-ros

    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if binary is None:
        pytest.fail("pages are tested in Chromium; please run: sudo apt-get install -y chromium")
    with sync_playwright() as driver:
        # As root, and in most containers, Chromium's own sandbox cannot start.
        chromium = driver.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def planning_client():
    """One planning process for all tests that do not end it: each would take seconds to get warm."""
    from proctor.navigation.process.client import PlanningClient  # noqa: PLC0415 - few tests need it

    with PlanningClient() as client:
        assert client.wait_until_ready(300.0)
        yield client


@pytest.fixture
def client(planning_client):
    """The planning process, with nothing under way."""
    yield planning_client
    planning_client.cancel()


@pytest.fixture
def proctor(capsys):
    """Call a command; return its exit code, and what it wrote to stdout and stderr."""
    from proctor import cli  # noqa: PLC0415 - few tests need it

    def call(*words):
        code = cli.main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
