"""The page of `proctor play` for tests: served beside them, with people who press keys or send messages."""

import json
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

from served_agents import episode
from websockets.sync.client import connect

from proctor.cli.play import person_plan
from proctor.contestants.play import PlayServer, play
from proctor.contestants.play_session import PlaySession
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.runs.folder import RunFolder
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig

LONG_S = 30.0
SOLUTION = ["ArrowUp"] * 4
"""Keys that bring the robot to the goal of each episode, before STOP."""


class Served:
    """A page in the mock world, and the run folders of those who play."""

    def __init__(self, folder, *, name="", episodes=("a", "b"), **options):
        self.dataset = folder / "episodes.json"
        save_dataset([episode(each) for each in episodes], self.dataset)
        self.out = folder / "runs"
        dataset = load_dataset(self.dataset)
        self.config = RunConfig(job=RunJob(env="mock", policy="human"), dataset=self.dataset)
        self.session = PlaySession(dataset.exam)
        self.server = PlayServer(self.session, title="two steps", port=0, **options)
        self.reports = []
        self._arguments = (
            self.session,
            lambda who: person_plan(who, self.config, self.out, dataset),
            lambda report, plan: self.reports.append(report),
            name,
        )

    @property
    def url(self):
        return self.server.url

    def results(self, name):
        return RunFolder.open(self.out / name).episodes

    def start(self):
        # A run that still waits for a person when the test is over ends with the tests.
        threading.Thread(target=play, args=self._arguments, daemon=True).start()


@contextmanager
def served(folder, **options):
    """Serve a page."""
    page = Served(folder, **options)
    with page.server:
        page.start()
        yield page


class Player:
    """A browser without a page: what it sends is what a test wants to be sent."""

    def __init__(self, url, client="one", **options):
        address = urlsplit(url)
        query = "&".join(filter(None, (address.query, f"client={client}")))
        self._opening = connect(f"ws://{address.netloc}/ws?{query}", max_size=None, **options)
        self.view, self.pictures = {}, []

    def __enter__(self):
        self.connection = self._opening.__enter__()
        return self

    def __exit__(self, *details):
        self._opening.__exit__(*details)

    def send(self, type_, **values):
        self.connection.send(json.dumps({"type": type_, **values}))

    def receive(self):
        data = self.connection.recv(LONG_S)
        end = 4 + int.from_bytes(data[:4], "big")
        self.view, self.pictures = json.loads(data[4:end]), []
        for size in self.view["sizes"]:
            self.pictures.append(data[end : end + size])
            end += size
        assert end == len(data)
        return self.view

    def wait_for(self, phase, **values):
        """Receive views until one is of this phase and has these values."""
        while self.view.get("phase") != phase or any(
            self.view[key] != value for key, value in values.items()
        ):
            self.receive()
        return self.view

    def press(self, name, value=None):
        """Press in the present turn, and wait for the next one, or for the end."""
        turn = self.wait_for("play", is_open=True)["turn"]
        self.send("press", turn=turn, name=name, value=value)
        while self.view["phase"] == "play" and (self.view["turn"] == turn or not self.view["is_open"]):
            self.receive()
        return self.view
