"""Leases alone: one holder at a time, whatever becomes of the holders, by the folder's clock."""

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from proctor.runs import leases as leases_module
from proctor.runs.leases import CLOSED_AT_S, RELEASED_AT_S, Holder, Lease, Leases

FAR_S = 10_000.0  # no lease of these tests ends by itself
HELD_UNTIL_KILLED = """
import sys
from pathlib import Path
from proctor.runs.leases import Leases
folder = Path(sys.argv[1])
clock = folder.parent / "clock-of-another"
clock.write_text("{}")
print(Leases(folder, clock, float(sys.argv[2])).claim("item").attempt, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "leases").mkdir()
    return tmp_path / "leases"


@pytest.fixture
def make(folder):
    """Make the leases of one more process, as it seems; all are closed at the end."""
    made = []

    def one_more(lease_s=FAR_S):
        clock = folder.parent / f"clock{len(made)}"
        clock.write_text("{}")
        made.append(Leases(folder, clock, lease_s))
        return made[-1]

    yield one_more
    for leases in made:
        leases.close()


def hold(folder, item="item", attempt=0, *, age_s=0.0, **holder):
    """Leave the file of an attempt that somebody else has made."""
    ours = msgspec.structs.asdict(Holder.this())
    path = folder / f"{item}.{attempt}"
    path.write_bytes(msgspec.json.encode(Holder(**{**ours, **holder})))
    now_s = path.stat().st_mtime
    os.utime(path, (now_s - age_s, now_s - age_s))
    return path


def claim_all(folder, items, number, start, answers):
    """Be a process that takes what it can get."""
    clock = folder.parent / f"clock-of-{number}"
    clock.write_text("{}")
    leases = Leases(folder, clock, FAR_S)
    start.wait(60)
    answers.put((number, [item for item in items if isinstance(leases.claim(item), Lease)]))
    start.wait(60)  # alive until all have answered


def test_each_item_has_one_holder_among_many_processes(folder):
    context = multiprocessing.get_context("fork")
    items, count = [f"ep_{index}" for index in range(200)], 6
    start, answers = context.Barrier(count + 1), context.Queue()
    processes = [
        context.Process(target=claim_all, args=(folder, items, number, start, answers), daemon=True)
        for number in range(count)
    ]
    for process in processes:
        process.start()
    start.wait(60)
    taken = dict(answers.get(timeout=60) for _ in processes)
    start.wait(60)
    for process in processes:
        process.join(60)
    assert sorted(item for mine in taken.values() for item in mine) == sorted(items)
    assert sorted(file.name for file in folder.iterdir()) == sorted(f"{item}.0" for item in items)


def test_what_is_held_is_not_taken_and_its_holder_is_known(make):
    ours, theirs = make(), make()
    assert ours.claim("item").attempt == 0
    holder = theirs.claim("item")
    assert holder == msgspec.structs.replace(Holder.this(), lease_s=FAR_S, unique=holder.unique)
    assert str(theirs.claim("item")).startswith(f"process {os.getpid()} on ")


def test_what_is_released_is_taken_at_once_and_what_is_closed_is_not(make):
    ours, theirs = make(), make()
    ours.claim("item")
    ours.release("item")
    lease = theirs.claim("item")
    assert (lease.attempt, lease.losses) == (1, 0)
    theirs.close_item("item")
    assert ours.claim("item") is None
    assert theirs.claim("item") is None


def test_reopened_items_are_taken_again_and_others_stay_closed(make):
    ours, theirs = make(), make()
    for item in ("a", "a.b", "b"):
        ours.claim(item)
        ours.close_item(item)
    theirs.reopen({"a.b", "b"})
    assert theirs.claim("a") is None
    assert [theirs.claim(item).attempt for item in ("a.b", "b")] == [1, 1]


def test_closing_gives_back_all_that_is_held(make):
    ours, theirs = make(), make()
    ours.claim("a")
    ours.claim("b")
    ours.close()
    assert [theirs.claim(item).attempt for item in ("a", "b")] == [1, 1]


def test_a_lease_without_a_sign_of_life_is_lost_by_the_folders_clock(folder, make, monkeypatch):
    # The clocks of the hosts do not matter: nothing here may ask this one.
    monkeypatch.setattr(time, "time", lambda: pytest.fail("the clock of a host was asked"))
    leases = make(60.0)
    hold(folder, "young", age_s=55, host="h", system="other")
    hold(folder, "old", age_s=65, host="h", system="other")
    assert leases.claim("young").host == "h"
    lease = leases.claim("old")
    assert (lease.attempt, lease.losses) == (1, 1)


def test_ages_are_judged_by_the_folder_when_all_its_times_are_an_hour_ahead(folder, make, monkeypatch):
    leases = make(60.0)
    now_s = leases.folder_time_s()
    monkeypatch.setattr(leases, "folder_time_s", lambda: now_s + 3600)
    hold(folder, "young", age_s=55 - 3600, host="h", system="other")
    hold(folder, "old", age_s=65 - 3600, host="h", system="other")
    assert isinstance(leases.claim("young"), Holder)
    assert isinstance(leases.claim("old"), Lease)


def test_the_holders_own_lease_counts_not_that_of_who_judges(folder, make):
    hold(folder, age_s=100, host="h", system="other", lease_s=600.0)
    assert isinstance(make(60.0).claim("item"), Holder)
    hold(folder, "short", age_s=100, host="h", system="other", lease_s=60.0)
    assert isinstance(make(600.0).claim("short"), Lease)


def test_who_sleeps_between_two_looks_takes_nothing_that_is_alive(folder, make, monkeypatch):
    leases, path = make(60.0), hold(folder, age_s=20, host="h", system="other")
    now_s = leases.folder_time_s()

    def sleep_and_ask():
        """Be stopped for a long time right before the clock is read; the holder is alive meanwhile."""
        os.utime(path, (now_s + 900, now_s + 900))
        return now_s + 910

    monkeypatch.setattr(leases, "folder_time_s", sleep_and_ask)
    assert isinstance(leases.claim("item"), Holder)


def test_a_dead_process_of_this_system_is_lost_at_once(folder, make):
    command = [sys.executable, "-c", HELD_UNTIL_KILLED, str(folder), str(FAR_S)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"0\n"
        leases = make()
        assert leases.claim("item").process == process.pid
        process.kill()
        process.wait(60)
        lease = leases.claim("item")
    assert (lease.attempt, lease.losses) == (1, 1)


def test_a_zombie_is_dead(folder, make):
    command = [sys.executable, "-c", HELD_UNTIL_KILLED, str(folder), str(FAR_S)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and nobody has asked for its end
        assert make().claim("item").losses == 1
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(60)


@pytest.mark.parametrize(
    "holder",
    [
        {"system": "another-boot pid:[4026531836]"},
        {"system": Holder.this().system.replace("pid:[", "pid:[9")},
        {"host": "a-clone-of-this-machine"},
        {"system": ""},
    ],
    ids=["boot", "namespace", "host", "not Linux"],
)
def test_a_process_of_another_system_is_not_taken_for_dead(folder, make, holder):
    hold(folder, process=2**22 + 1, started="1", **holder)
    assert isinstance(make().claim("item"), Holder)


def test_a_process_id_that_is_used_again_is_another_process(folder, make):
    hold(folder, started="1")
    assert make().claim("item").losses == 1


@pytest.mark.parametrize("content", [b"", b'{"host":"h","proc', b"\xff\xfe\x00", b"[]", b"{}"])
def test_a_file_that_is_cut_off_holds_until_its_time_is_over(folder, make, content):
    path = folder / "item.0"
    path.write_bytes(content)
    leases = make(60.0)
    assert leases.claim("item").host == "an unknown host"
    os.utime(path, (path.stat().st_mtime - 100, path.stat().st_mtime - 100))
    assert leases.claim("item").losses == 1


def test_losses_in_a_row_are_counted_and_a_release_ends_the_row(folder, make):
    for attempt in range(3):
        hold(folder, attempt=attempt, age_s=2 * FAR_S)
    leases = make()
    lease = leases.claim("item")
    assert (lease.attempt, lease.losses) == (3, 3)
    leases.release("item")
    lease = make().claim("item")
    assert (lease.attempt, lease.losses) == (4, 0)


def test_reopened_items_have_no_losses(folder, make):
    for attempt in range(3):
        hold(folder, attempt=attempt, age_s=2 * FAR_S)
    hold(folder, "held", host="h", system="other")
    ours, theirs = make(), make()
    ours.reopen({"item", "held"})
    assert theirs.claim("item").losses == 0
    assert isinstance(theirs.claim("held"), Holder)


def test_what_is_held_is_kept_alive_until_it_is_given_back(folder, make):
    leases = make(0.2)
    first, second = leases.claim("first"), leases.claim("second")
    leases.close_item("second")
    before_s, content = first.path.stat().st_mtime, first.path.read_bytes()
    deadline_s = time.monotonic() + 60
    while first.path.stat().st_mtime <= before_s and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert first.path.stat().st_mtime > before_s
    assert second.path.stat().st_mtime == CLOSED_AT_S
    assert first.path.read_bytes() == content
    leases.close()
    assert first.path.stat().st_mtime == RELEASED_AT_S


def test_a_lease_that_was_taken_over_is_not_ours(folder, make):
    ours, theirs = make(), make(60.0)
    lease = ours.claim("item")
    assert ours.is_ours(lease)
    os.utime(lease.path, (5, 5))
    lease.path.write_bytes(b"")  # as if of another host
    os.utime(lease.path, (5, 5))
    assert isinstance(theirs.claim("item"), Lease)
    assert not ours.is_ours(lease)


def test_a_lease_of_a_folder_that_is_gone_is_not_ours(folder, make):
    leases = make()
    lease = leases.claim("item")
    folder.rename(folder.with_name("removed"))
    assert not leases.is_ours(lease)
    leases.close()


def test_a_forked_copy_gives_back_nothing(make):
    ours, theirs = make(), make()
    ours.claim("item")
    child = os.fork()
    if not child:
        ours.release("item")
        ours.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert isinstance(theirs.claim("item"), Holder)


def test_the_module_asks_no_clock_of_the_host():
    source = Path(leases_module.__file__).read_text(encoding="utf-8")
    assert not any(word in source for word in ("time.time", "datetime"))
