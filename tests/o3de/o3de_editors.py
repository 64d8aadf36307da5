"""The agent's server on a made-up Editor, pumped as the real one's main thread would."""

import select
import threading
from contextlib import contextmanager
from importlib import import_module

from o3de_sim.editor.azlmbr_calls import Engine
from o3de_sim.editor.operation_table import Dispatcher
from o3de_sim.editor.server import AgentServer
from proctor.o3de.standin.fake_editor import FakeEditor

TOKEN = "a token for tests"
LEVEL = "test_level"


@contextmanager
def editor_with_level(project):
    """A made-up Editor with an empty level, in this process."""
    editor = FakeEditor(project)
    with editor.installed():
        general = import_module("azlmbr.legacy.general")
        made = general.create_level_no_prompt("Prefabs/Default_Level.prefab", LEVEL, 1024, 1, 4096, False)
        assert made == 0, "the project has this level already"
        editor.frame()
        yield editor


class PumpedEditor:
    """Runs frames and the server in a thread, until it is told to stand still."""

    def __init__(self, editor, server):
        self.editor, self.server = editor, server
        self.is_stalled = self.is_over = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self.is_over:
            select.select(self.server.sockets(), [], [], 0.001)
            if not self.is_stalled:
                self.editor.frame()
                self.server.pump()

    def stop(self):
        self.is_over = True
        self._thread.join()


@contextmanager
def running_agent(project, port=0, token=TOKEN):
    """A made-up Editor whose agent answers on `server.port`."""
    with editor_with_level(project) as editor:
        engine = Engine()
        server = AgentServer(Dispatcher(engine), port=port, token=token)
        pumped = PumpedEditor(editor, server)
        try:
            yield pumped
        finally:
            pumped.stop()
            server.close()
            engine.close()
