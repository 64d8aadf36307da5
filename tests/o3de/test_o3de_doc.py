"""What docs/o3de.md says of commands, operations, options, codes and errors is what the code has."""

import ast
import json
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest
from o3de_editors import running_agent

from o3de_sim import constants
from o3de_sim.editor import arguments, client, server
from o3de_sim.editor.operation_table import OPERATIONS
from o3de_sim.errors import Code
from proctor.cli import _parser
from proctor.o3de.config import O3DE_SIMULATOR_CONFIG

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = (REPOSITORY / "docs" / "o3de.md").read_text()


def section(title):
    """Return the text below a heading, up to the next one."""
    return re.split(r"^##+ ", PAGE.partition(f"# {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def rows(text, heading):
    """Return the cells of the table that has this heading, row by row."""
    table = text.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    return [re.split(r" *\| *", line)[1:-1] for line in table.splitlines()[2:]]


def plain(value):
    """Return a default as JSON has it, without needless points."""
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def signature(operation):
    words = [
        each.name if each.is_needed else f"{each.name}={json.dumps(plain(each.default))}"
        for each in operation.arguments
    ]
    return f"`{operation.name}({', '.join(words)})`"


def test_the_table_of_operations_is_that_of_the_agent():
    told = [(row[0], row[1]) for row in rows(section("Operations"), "operation")]
    assert told == [(signature(one), "✎" if one.edits else "") for one in OPERATIONS]


def test_the_table_of_the_configuration_has_all_keys_and_defaults():
    told = {row[0].strip("`"): json.loads(row[1].strip("`")) for row in rows(section("Configuration"), "key")}
    assert told == O3DE_SIMULATOR_CONFIG


def test_codes_and_limits_are_those_of_the_protocol():
    wire = section("The wire, version 1")
    assert [row[0].strip("`") for row in rows(wire, "code")] == list(get_args(Code))
    limits = {row[0]: row[1] for row in rows(wire, "limit")}
    names = f"{arguments.MAX_NAME} characters; {arguments.MAX_PATH} characters; {arguments.MAX_LIST} items"
    assert limits.pop("level names").startswith("1 to 64")
    assert arguments.LEVEL_NAME.pattern == "[A-Za-z0-9_-]{1,64}"
    assert limits == {
        "frame": f"{constants.MAX_FRAME_BYTES // 2**20} MiB",
        "`timeout_s`": f"{constants.MAX_TIMEOUT_S:g} s; {constants.DEFAULT_TIMEOUT_S:g} s unless said",
        "until `hello`": f"{client.HELLO_S:g} s",
        "for a frame to arrive whole": f"{client.FRAME_S:g} s",
        "requests that wait": str(server.MAX_QUEUE),
        "names; paths; lists": names,
    }


def literals():
    """Return every text in the code that has to do with O3DE, with a gap where something is filled in."""
    found = []
    folders = ("o3de_sim", *(f"proctor/{name}" for name in ("o3de", "worlds", "robots")))
    for file in (file for folder in folders for file in (REPOSITORY / "src" / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "\0" for part in node.values]
                found.append("".join(parts))
    return found


def test_errors_that_are_quoted_are_said_by_the_code():
    texts = literals()
    quoted = [
        text
        for row in rows(section("When something does not work"), "it says")
        for text in re.findall("`([^`]+)`", row[0])
    ]
    assert len(quoted) > 20
    names = r"/odom|/robot/odom|/cmd_vel|/clock|/spawn_entity|/load_world|MISSING_ASSETS"
    for text in quoted:
        for piece in re.split(rf"\.\.\.|{names}", text):
            assert any(piece.strip() in each for each in texts), piece


def commands():
    found = []
    for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0].rpartition("/")[2] == "proctor":
                found.append(words[1:])
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_the_command_line_takes_what_is_shown(words):
    assert _parser(words).parse_args(words)


def test_the_options_of_the_stand_in_are_those_of_the_command():
    parser = next(action for action in _parser([])._actions if action.choices).choices["o3de-standin"]
    told = re.findall(r"`(--[a-z-]+)", section("Without O3DE first").partition("| option |")[2])
    assert set(told) == set(parser._option_string_actions) - {"-h", "--help", "--parent"}


def test_the_box_of_the_docs_is_made_and_played(tmp_path, monkeypatch, capsys):
    code = re.findall(r"```python\n(.*?)```", section("`o3de_sim` for your own scripts"), re.DOTALL)[0]
    with running_agent(tmp_path / "project") as editor:
        monkeypatch.setenv(constants.PORT_VARIABLE, str(editor.server.port))
        monkeypatch.setenv(constants.TOKEN_VARIABLE, "a token for tests")
        exec(code, {})
        assert not editor.editor.unknown_calls
    assert capsys.readouterr().out.count("Vector3") == 5
