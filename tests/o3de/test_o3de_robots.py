"""What an episode needs of the Editor: the robot in the level, wherever the level comes from."""

import pytest
from o3de_editors import LEVEL, TOKEN, running_agent

from o3de_sim.errors import O3DEError
from proctor.o3de.agent_manager import O3DEAgentManager
from proctor.o3de.config import config_of
from proctor.o3de.standin.project_files import FIRST_LEVEL, prepare_project


@pytest.fixture
def manager(tmp_path):
    prepare_project(tmp_path)
    with running_agent(tmp_path) as pumped:
        manager = O3DEAgentManager(config=config_of({"socket_port": pumped.server.port, "token": TOKEN}))
        yield manager
        manager.close()


def test_a_robot_is_put_into_the_level_and_put_elsewhere(manager):
    manager.set_robot_position((1.0, 2.0, 0.0), (0.0, 0.0, 90.0))
    assert manager.get_robot_position().to_list() == pytest.approx([1.0, 2.0, 0.0])
    placed = manager.robot_entity_id
    manager.enter_game_mode()
    assert manager.find_robot() != placed
    manager.set_robot_position((3.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    assert manager.robot_entity_id == placed
    assert manager.get_robot_position().to_list() == pytest.approx([3.0, 0.0, 0.0])
    assert len(manager.agent.entity_tool.find("robot")) == 1


@pytest.mark.parametrize("is_saved", [True, False])
def test_a_robot_is_found_again_in_a_level_that_somebody_has_opened_anew(manager, is_saved):
    manager.create_robot((1.0, 2.0, 0.0), (0.0, 0.0, 0.0))
    editor = manager.agent.editor_tool
    if is_saved:
        editor.save_level()
    for level in (FIRST_LEVEL, LEVEL):  # behind the manager's back
        editor.open_level(level)
    manager.set_robot_position((4.0, 5.0, 0.0), (0.0, 0.0, 0.0))
    (robot,) = manager.agent.entity_tool.find("robot")
    assert manager.agent.tc.get_position(robot).to_list() == pytest.approx([4.0, 5.0, 0.0])


def test_a_robot_that_is_not_there_is_not_asked_for(manager):
    with pytest.raises(O3DEError, match="create_robot"):
        manager.get_robot_position()
