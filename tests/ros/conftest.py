"""What holds for all tests over ROS 2: they stay on this machine, and each module has its own domain."""

import pytest

from proctor.worlds.ros2.host.sim_host_process import Domain


@pytest.fixture(scope="module", autouse=True)
def ros_domain():
    domain = Domain()
    with domain.entered():
        yield domain.number
    domain.close()
