"""`docs/protocol.md` says what the code does, no less and no more, and its agent works."""

import inspect
import re
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from proctor import __version__
from proctor.agents import connection, messages
from proctor.agents.arrays import named_scans, read_scan
from proctor.agents.codec import MAX_DEPTH, JsonCodec, MsgpackCodec
from proctor.agents.dialects.proctor import ProctorDialect
from proctor.agents.handshake import Address, open_session
from proctor.agents.messages import BadFrame, WireFault
from proctor.agents.websocket_policy import WebSocketPolicy
from proctor.core.answers import INVALID_ACTION, NOT_FINITE, UNSTABLE_PHYSICS, WRONG_LENGTH
from proctor.core.errors import is_busy_status
from proctor.core.types import STEP_M, TURN_RAD, Action, EpisodeInfo, Outcome, Pose2, Scan, Sensor
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.exam import details_of
from proctor.robots.spec import standard_robot
from proctor.runs.attempts import Patience

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
MESSAGES = {
    "hello": messages.Hello,
    "reset_episode": messages.ResetEpisode,
    "get_action": messages.GetAction,
    "action": messages.ActionReply,
    "episode_end": messages.EpisodeEnd,
    "error": messages.ErrorMessage,
}
TYPES = {"string": "str", "integer": "int", "object": "dict", "list": "list", "boolean": "bool", "any": "Any"}
DEPTH_MM = [[0, 500, 1000, 1500], [2000, 2500, 3000, 3500], [4000, 4500, 5000, 20000]]
REPLY_S = 30


def section(title):
    """The text below a heading, up to the next heading of its level or a higher one."""
    level = len(re.search(rf"^(#+) {re.escape(title)}$", PAGE, re.MULTILINE)[1])
    after = PAGE.split(f"{'#' * level} {title}\n", 1)[1]
    return re.split(rf"^#{{1,{level}}} ", after, maxsplit=1, flags=re.MULTILINE)[0]


def table(text, first_column):
    """The rows of the table whose first column has this title, as dicts; the first cell without backticks."""
    header, _, *rows = re.search(rf"^\| {first_column} \|.*\n(?:\|.*\n)+", text, re.MULTILINE)[0].splitlines()
    titles = [cell.strip() for cell in header.strip("|").split("|")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert all(len(row) == len(titles) for row in cells)
    return {_bare(row[0]): dict(zip(titles, row, strict=True)) for row in cells}


def _bare(cell):
    return cell[1:-1] if re.fullmatch(r"`[^`]*`", cell) else cell


def blocks(language, text=PAGE):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def examples(kind):
    return [msgspec.json.decode(text) for text in blocks("json", section(f"`{kind}`"))]


def test_all_messages_are_told_with_who_sends_them():
    told = table(section("A session"), "message")
    assert told.keys() == MESSAGES.keys() == set(re.findall(r"^### `(\w+)`$", PAGE, re.MULTILINE))
    from_agent = {row for row, cells in told.items() if re.search("agent|either", cells["from"])}
    from_evaluator = {row for row, cells in told.items() if re.search("evaluator|either", cells["from"])}
    assert {MESSAGES[name] for name in from_agent} == set(messages.FromAgent.__args__)
    assert {MESSAGES[name] for name in from_evaluator} == set(messages.FromEvaluator.__args__)


@pytest.mark.parametrize("name", MESSAGES)
def test_every_field_is_told_with_its_type_and_default_and_no_other(name):
    rows = table(section(f"`{name}`"), "field")
    assert rows.pop("type")["meaning"] == f'`"{name}"`'
    fields = {field.name: field for field in msgspec.structs.fields(MESSAGES[name])}
    assert list(rows) == list(fields)
    for field_name, field in fields.items():
        row, default = rows[field_name], field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        if field.required:
            assert row["required"] == "required", field_name
        else:
            told = "none" if default is None else f"`{msgspec.json.encode(default).decode()}`"
            assert row["required"] == f"optional, {told}", field_name
        wanted = TYPES[row["type"]]
        assert wanted in str(field.type) or "Literal" in str(field.type), field_name
        if "Literal" in str(field.type):
            choices = field.type.__args__
            assert all(f'`"{choice}"`' in row["meaning"] for choice in choices), field_name


@pytest.mark.parametrize("text", blocks("json"))
def test_every_example_is_the_message_that_it_shows(text):
    written = msgspec.json.decode(text)
    message_type, codec, understood = MESSAGES[written["type"]], JsonCodec(), []
    for read in (codec.read_agent, codec.read_evaluator):
        try:
            understood.append(read(text))
        except BadFrame as error:  # of the other side
            assert error.kind == WireFault.WRONG_MESSAGE  # noqa: PT017
    assert understood
    for message in understood:
        assert type(message) is message_type
        known = {field.name for field in msgspec.structs.fields(message_type)}
        assert written.keys() - {"type"} <= known
        rewritten = msgspec.json.decode(codec.encode(message))
        assert rewritten == rewritten | written


def test_each_message_is_shown_for_both_tasks():
    for kind in ("reset_episode", "get_action", "action", "episode_end"):
        text = section(f"`{kind}`")
        assert re.search(r"^Navigation:$", text, re.MULTILINE)
        assert re.search(r"^Pick-and-place.*:$", text, re.MULTILINE)
        assert len(examples(kind)) >= 2
    agents, evaluators = examples("hello")
    messages.check_version(msgspec.convert(agents, messages.Hello), "agent")
    assert evaluators["actions"] == list(Action.__members__)
    assert evaluators["name"] == f"proctor {__version__}"


@pytest.mark.parametrize("task", [0, 1], ids=["vln", "pick_and_place"])
def test_the_observations_shown_become_the_arrays_that_the_page_tells(task):
    codec = JsonCodec()
    reset = msgspec.convert(examples("reset_episode")[task], messages.ResetEpisode)
    shown = examples("get_action")[task]["observation"]
    arrays = codec.arrays(shown, reset.observation_format)
    for name, format_ in reset.observation_format.items():
        assert arrays[name].shape == tuple(format_.shape), name
        assert arrays[name].dtype == format_.dtype, name
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    for name in arrays.keys() & {"rgb", "rgb_head", "rgb_wrist"}:
        assert (arrays[name] == colours[:, None]).all()
    for name in arrays.keys() & {"depth", "depth_head"}:
        assert arrays[name].tolist() == DEPTH_MM
    assert str(DEPTH_MM) in section("Observations")
    sensors = {name: Sensor(dtype=f.dtype, shape=f.shape) for name, f in reset.observation_format.items()}
    assert codec.formats(sensors) == reset.observation_format
    known = re.findall(r"\w+", " ".join(table(section("Observations"), "key")))
    assert shown.keys() <= set(known)


class Overheard:
    """A connection that keeps what is sent."""

    def __init__(self):
        self.frames = []

    def send(self, frame, deadline_s):
        del deadline_s
        self.frames.append(msgspec.json.decode(frame))

    def pending(self):
        return None


@pytest.mark.parametrize("task", ["vln", "pick_and_place"])
def test_the_page_tells_all_that_an_episode_begins_with(task):
    keys = table(section("`reset_episode`"), "key")
    own = {key for key, row in keys.items() if row["task"] == "pick-and-place"}
    assert own == details_of(PickAndPlaceEpisode("e"), hide_goal=False).keys()
    details = {key: {} for key in own} if task == "pick_and_place" else {}
    info = EpisodeInfo(
        episode_id="e", instruction="Go.", max_steps=5, seed=1, task=task, details=details, sensors={}
    )
    line = Overheard()
    ProctorDialect(line, JsonCodec(), None).begin(info, 0.0)
    (sent,) = line.frames
    assert sent["episode"].keys() == {key for key in keys if details or key not in own}
    assert sent["episode"].keys() == examples("reset_episode")[task != "vln"]["episode"].keys()
    assert sent["episode"]["instruction"].keys() == {"text", "language"}


def test_plain_sensors_are_written_as_the_page_tells():
    seen = {"odom": Pose2(0.0, 1.0, 2.0), "scan": Scan(np.array([1.0, np.inf]), -3.0, 0.1, 0.02, 10.0)}
    frame = JsonCodec().encode(messages.GetAction(session_id="s", observation=named_scans(seen)))
    written = msgspec.json.decode(frame)["observation"]
    assert written["odom"] == {"x": 0, "y": 1, "yaw": 2}
    assert written["scan"]["ranges"] == [1, None]
    (row,) = re.findall(r"\| `scan` .*", PAGE)
    assert all(f'"{name}"' in row for name in written["scan"])
    assert read_scan(written["scan"])._replace(ranges=0) == (0, -3.0, 0.1, 0.02, 10.0)


def test_every_fault_is_in_the_table_and_no_other():
    told = table(section("When something goes wrong"), "kind")
    assert told.keys() == {*map(str, WireFault), INVALID_ACTION, WRONG_LENGTH, NOT_FINITE, UNSTABLE_PHYSICS}
    assert all(row["what happened"] and row["what to do"] for row in told.values())


def test_numbers_and_names_on_the_page_are_those_of_the_code():
    offered = table(section("msgpack, the fast path"), "subprotocol")
    assert list(offered) == list(messages.SUBPROTOCOLS)
    assert table(section("Observations"), "encoding").keys() == set(messages.Encoding.__args__)
    actions = table(section("Actions"), "number")
    assert [(int(number), row["name"]) for number, row in actions.items()] == [
        (action.value, f"`{action.name}`") for action in Action
    ]
    assert f"{STEP_M} m" in actions["1"]["the robot"]
    assert f"{round(np.degrees(TURN_RAD))}°" in actions["2"]["the robot"]
    limits = table(section("Time and size"), "limit")
    assert limits["frame from the agent"]["default"] == f"{connection.MAX_FRAME_BYTES >> 20} MiB"
    levels = int(limits["nesting"]["default"].removesuffix(" levels"))
    assert levels == MAX_DEPTH
    nested = '{"type": "action", "action": %s 1 %s}'
    JsonCodec().read_agent(nested % ("[" * levels, "]" * levels))
    with pytest.raises(BadFrame) as refused:
        JsonCodec().read_agent(nested % ("[" * 99_999, "]" * 99_999))
    assert refused.value.kind == WireFault.TOO_DEEP
    assert "429 and all from 500 up" in section("Time and size")
    assert all(is_busy_status(status) for status in (429, *range(500, 600)))
    lines = section("Unavailable")
    assert all(f"`{kind}`" in lines for kind in messages.UNAVAILABLE_KINDS)
    assert all(f"{code:d} (" in lines for code in connection.BUSY_CODES)
    assert f"`--max-unavailable` ({Patience().max_unavailable})" in lines
    assert f"(`--unavailable-pause`, {Patience().pause_s:g} s" in lines
    camera, radius_m = standard_robot().camera, standard_robot().radius_m
    assert f"{camera.width} × {camera.height} in `houses-v1`, {camera.fov_deg:.0f}° vertical" in PAGE
    assert f"{camera.height_m} m above the floor" in PAGE
    half = np.tan(np.radians(camera.fov_deg / 2))
    assert f"{camera.height / 2:.0f} / tan 30° = {camera.height / 2 / half:.1f} pixels" in PAGE
    assert f"the floor comes into view at {camera.height_m / half:.1f} m" in PAGE
    assert f"0.75 m height at {(camera.height_m - 0.75) / half:.1f} m" in PAGE
    assert f"further than {camera.far_m:.0f} m" in PAGE
    assert f"radius of {radius_m} m, {standard_robot().height_m} m high" in PAGE


def test_the_options_on_the_page_are_those_of_the_policy():
    known = inspect.signature(WebSocketPolicy).parameters
    rows = {_bare(row["option"]): row for row in table(section("Time and size"), "limit").values()}
    assert {name for name in known if name.endswith("_s")} == rows.keys() - {""}
    for name in rows.keys() - {""}:
        assert rows[name]["default"] == f"{known[name].default:.0f} s"
    assert {*re.findall(r"--policy-option (\w+)=", PAGE), "tell_metrics"} <= known.keys()


def test_the_msgpack_bytes_shown_are_what_the_codec_writes():
    asked, replied = (bytes.fromhex(text) for text in blocks("hex"))
    codec = MsgpackCodec()
    question = codec.read_evaluator(asked)
    assert isinstance(question, messages.GetAction)
    depth = codec.arrays(question.observation, {})["depth"]
    assert depth.dtype == np.uint16
    assert depth.tolist() == [[0, 500], [1000, 20000]]
    answer = messages.ActionReply(session_id="s", request_id=1, action=1)
    assert codec.read_agent(replied) == answer
    assert codec.encode(answer) == replied
    assert codec.encode(msgspec.structs.replace(question, observation={"depth": depth})) == asked


@pytest.fixture
def python_agent(tmp_path):
    """The agent of the page, on a free port instead of 8080."""
    (code,) = blocks("python")
    assert "proctor" not in code
    waits = "        await server.serve_forever()\n"
    tells_port = "        print(server.sockets[0].getsockname()[1], flush=True)\n"
    code = code.replace(" 8080,", " 0,").replace(waits, tells_port + waits)
    (tmp_path / "agent.py").write_text(code)
    with subprocess.Popen(
        [sys.executable, "agent.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, env={}
    ) as process:
        yield f"ws://127.0.0.1:{int(process.stdout.readline())}"
        assert process.poll() is None
        process.kill()


def test_the_agent_on_the_page_works(python_agent):
    def soon():
        return time.monotonic() + REPLY_S

    big = np.random.default_rng(1).integers(0, 256, (720, 960, 3)).astype(np.uint8)  # above 1 MiB as PNG
    sensors = {"rgb": Sensor(dtype="uint8", shape=big.shape)}
    connection, dialect, _ = open_session(Address(url=python_agent), soon())
    for _ in range(2):
        info = EpisodeInfo(episode_id="e", instruction="Go.", max_steps=500, seed=1, sensors=sensors)
        dialect.begin(info, soon())
        views = [{"rgb": big}, *[{"rgb": np.zeros_like(big)}] * 19]
        assert [dialect.ask(view, soon()) for view in views] == [1] * 19 + [0]
        dialect.end(Outcome(status="failure", metrics={}, num_steps=20), soon())
    connection.close()
