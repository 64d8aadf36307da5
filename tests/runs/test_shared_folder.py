"""The folder `work` of a shared run, seen by one process: what others do to it at the wrong moment."""

import os

import pytest

from proctor.runs.sharing import SharedRun


@pytest.fixture
def run(tmp_path):
    run = SharedRun(tmp_path, 60.0)
    yield run
    run.close()


@pytest.mark.parametrize("name", ["work", "work/hosts", "work/records"])
def test_a_file_in_the_place_of_a_folder_is_told_and_not_waited_for(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    with pytest.raises(OSError, match=name):
        SharedRun(tmp_path, 60.0)


def test_each_who_takes_part_has_another_number(tmp_path, run):
    (tmp_path / "work" / "hosts" / "1.link").touch()  # of one who registers right now
    others = [SharedRun(tmp_path, 60.0) for _ in range(3)]
    assert len({run.number, *(other.number for other in others)}) == 4
    for other in others:
        other.close()


def test_who_registers_while_others_end_the_run_registers_anew(tmp_path, run, monkeypatch):
    link = os.link

    def ended_before(*files):
        monkeypatch.undo()
        run.close(is_complete=True)
        link(*files)

    monkeypatch.setattr(os, "link", ended_before)
    late = SharedRun(tmp_path, 60.0)
    assert late.is_there
    late.close()
