"""Ten thousand frames that nobody should send."""

import json
import re
import struct

import numpy as np
from editor_agents import TOKEN, Client, EditorAgent

from o3de_sim.editor.operation_table import TABLE
from o3de_sim.o3de_api.wire import LENGTH

FRAMES = 10_000
BATCH = 32
CODES = {"bad_request", "unknown_op", "bad_state", "not_found", "az_call_failed", "timeout"}
DEEP = json.loads("[" * 60 + "]" * 60)
VALUES = [
    *(None, True, False, 0, 1, -1, 3, 2**63, 10**30, 1.5, -0.0, 1e308, 5e-324),
    *(
        "",
        "x",
        "[1]",
        "lab",
        "den",
        "table",
        "*",
        "a|b",
        "\x00",
        "\ud800",
        "é" * 200,
        "\u202e",
        "%s%n",
        "box",
    ),
    *("static", "dynamic", "kinematic", "point", "plane", "capsule"),
    *("../../etc/passwd", "/etc/passwd", "C:\\x.png", "..\\x", "user/a.png", "user/../../b.png", "b.ppm"),
    *("user/link/c.png", "link/d.prefab", "@engroot@/e.png", "Levels/lab/lab.prefab"),
    *(
        "Assets/Models/robot.prefab",
        "Assets/Models/new.prefab",
        "Assets/Models/Chair.gltf",
        "a/" * 127 + "b.png",
    ),
    *([], [0, 0, 0], [1, 2, 3], [0, 0, 0, 1], [0, 0, 0.6, 0.8], [1, 2], ["x"] * 3, [[0, 0, 0]], [1e300] * 3),
    *({}, {"shape": "box", "size": [1, 1, 1]}, {"x": 1}),
    *(
        [{"shape": "box", "size": [1, 1, 1]}],
        [{"shape": "capsule", "size": [1, 1, 3], "rotate": [0, 0, 0, 1]}],
    ),
    *([{"shape": "orb", "size": [1, 1, 1]}], ["Mesh", "ROS2 Frame"], ["Assets/x.gltf"], [0] * 5000, DEEP),
]
BOX = {"shape": "box", "size": [1, 1, 1]}
SOUND = {
    "asset_path": ["Assets/Models/Chair.gltf", "Assets/none.gltf"],
    "colliders": [[BOX], [BOX | {"rotate": [0, 0, 0, 1]}]],
    "color": [[1, 0.5, 0]],
    "enabled": [True, False],
    "frames": [1, 2],
    "intensity": [0, 5.5],
    "mass": [1, None],
    "name": ["lab", "den", "table", "robot"],
    "names": [["Mesh", "ROS2 Frame"]],
    "path": [
        "user/a.png",
        "Assets/Models/robot.prefab",
        "Assets/Models/new.prefab",
        "Assets/Models/Chair.gltf",
    ],
    "paths": [["Assets/Models/Chair.gltf", "x"]],
    "position": [[0, 0, 0], [1, 2, 3]],
    "primitive": ["box", "plane", None],
    "rotation": [[0, 0, 0, 1], [0, 0, 0.6, 0.8]],
    "scale": [2, [1, 2, 3]],
    "token": ["x"],
    "type": ["static", "dynamic", "kinematic", "point", "directional"],
}
OPS = [
    *(name for name in TABLE if name != "selftest"),  # which is long, and comes at the end
    *["simulation_tool.exit_game_mode", "entity_tool.create", "pc.add_rigid_body", "pc.add_colliders"] * 3,
    "tc.set_positon",
    "",
    "__class__",
    "entity_tool",
    "hello.",
    "os.system",
    "x" * 5000,
]
ARGUMENTS = sorted({argument.name for operation in TABLE.values() for argument in operation.arguments})
CHAIR = {
    "scenes": [{"nodes": [0]}],
    "nodes": [{"mesh": 0}],
    "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
    "accessors": [{"min": [0, 0, 0], "max": [1, 1, 1]}],
}


class Sender:
    """Makes frames, some of which are sound."""

    def __init__(self, seed):
        self.draw = np.random.default_rng(seed)
        self.entities = ["[1]"]
        self.asked = {}
        self.succeeded = set()

    def one(self, values):
        return values[self.draw.integers(len(values))]

    def value(self, name):
        if self.draw.random() > 0.85:
            return self.one(VALUES)
        if name in ("entity", "parent"):
            return self.one(self.entities)
        if name == "entities":
            return [self.one(self.entities)]
        return self.one(SOUND[name])

    def request(self, number):
        """Return a request that may be meant well; only its number and its version are always right."""
        op = self.one(OPS)
        if op in TABLE and self.draw.random() < 0.9:
            names = [argument.name for argument in TABLE[op].arguments if self.draw.random() < 0.9]
        else:
            names = [self.one(ARGUMENTS) for _ in range(self.draw.integers(4))]
        request = {"v": 1, "id": number, "op": op, "args": {name: self.value(name) for name in names}}
        if self.draw.random() < 0.1:
            request[self.one(["op", "args", "timeout_s", "v", "extra"])] = self.one(VALUES)
        self.asked[number] = request["op"]
        return request

    def noise(self):
        """Return bytes that are no frame, or hardly one."""
        body = bytearray(json.dumps(self.request(1)).encode())
        chance = self.draw.random()
        if chance < 0.5:
            for _ in range(self.draw.integers(1, 8)):
                body[self.draw.integers(len(body))] = self.draw.integers(256)
            return LENGTH.pack(len(body)) + bytes(body)
        if chance < 0.7:
            return struct.pack(">I", int(self.draw.integers(2**32))) + bytes(body)
        return self.draw.bytes(int(self.draw.integers(1, 400)))


def everything_below(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_ten_thousand_frames(tmp_path):
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project / "Assets/Models", project / "user", outside):
        folder.mkdir(parents=True)
    (outside / "secret.txt").write_text("secret")
    for link in (project / "user/link", project / "link"):
        link.symlink_to(outside)
    (project / "Assets/Models/robot.prefab").write_text('{"ContainerEntity": {"Name": "r"}, "Entities": {}}')
    (project / "Assets/Models/Chair.gltf").write_text(json.dumps(CHAIR))
    sender = Sender(8)
    with EditorAgent(project).running() as agent:
        agent.level("lab")
        agent.level("den")
        handlers = len(agent.editor.handlers)
        server = agent.serve()
        seen = {"ok": 0, "refused": 0, "closed": 0}
        sent = 0
        while sent < FRAMES:
            sent += exchange(sender, server, agent.editor, seen)
        with Client(server, agent.editor) as client:
            client.hello().result("simulation_tool.exit_game_mode")
            client.result("simulation_tool.toggle_physics", enabled=False)
            assert re.fullmatch(r"[A-Za-z0-9_-]+", client.result("editor_tool.current_level"))
            assert all(check["ok"] for check in client.result("selftest"))
        server.close()
        assert agent.editor._batches == 0
        assert len(agent.editor.handlers) == handlers
    assert everything_below(outside) == {outside / "secret.txt": b"secret"}
    assert {path.name for path in tmp_path.iterdir()} == {"project", "outside"}
    assert min(seen.values()) > 300, seen  # all that can happen has happened
    assert set(TABLE) - sender.succeeded <= {"pc.add_mesh_collider", "selftest"}


def exchange(sender, server, editor, seen):
    """Send frames on a connection of their own, noise last; return how many. All must be answered."""
    with Client(server, editor) as client:
        client.hello()
        count = BATCH if sender.draw.random() < 0.5 else int(sender.draw.integers(4))
        for start in range(0, count, 4):
            numbers = list(range(start + 10, min(start + 14, count + 10)))
            client.send_bytes(b"".join(frame(sender.request(number)) for number in numbers))
            for _ in list(numbers):
                numbers.remove(take(sender, client.answer(), seen))
            assert numbers == []
        client.send_bytes(sender.noise())
        for _ in range(4):
            client.turn()
        client.messages.clear()
        seen["closed"] += client.is_closed
        return count + 1


def frame(message):
    body = json.dumps(message).encode()
    return LENGTH.pack(len(body)) + body


def take(sender, answer, seen):
    """Look at an answer; return which request it is for."""
    assert answer["v"] == 1
    if answer["ok"]:
        seen["ok"] += 1
        sender.succeeded.add(sender.asked[answer["id"]])
        if isinstance(answer["result"], str) and answer["result"].startswith("["):
            sender.entities = [sender.entities[-1], answer["result"]]
    else:
        assert answer["error"]["code"] in CODES, answer
        assert TOKEN not in answer["error"]["message"]
        assert len(answer["error"]["message"]) < 2000
        seen["refused"] += 1
    return answer["id"]
