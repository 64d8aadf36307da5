# Stands in for ament_cmake_ros, which wants the whole test tooling of ROS 2.
find_package(ament_cmake REQUIRED)
set(BUILD_SHARED_LIBS ON)
