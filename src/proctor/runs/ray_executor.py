"""The executor `ray`: episodes on the nodes of a Ray cluster.

Ray places processes and says which are gone. Who does which episode, and what becomes of one whose node is
lost, is decided here: each actor has one episode at a time, and what comes back is written by this process.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec

from proctor.core.addresses import replicas
from proctor.core.errors import UserError
from proctor.exams.fault_words import counted
from proctor.exams.results import Fault
from proctor.runs.attempts import Attempts
from proctor.runs.examiner import Finished, episode_seed, lost
from proctor.runs.executors import check_episodes
from proctor.runs.job import RunJob, agent_digest
from proctor.runs.leases import MAX_LOSSES
from proctor.runs.plan import software_difference, software_versions
from proctor.runs.pool import CLOSE_DEADLINE_S, START_DEADLINE_S
from proctor.runs.ray_actor import (
    ActorSetup,
    file_digests,
    localhost_hint,
    passed_on,
    shared_file,
)
from proctor.runs.ray_cluster import Lost, Node, NotImportable, RayCluster, RayOptions
from proctor.runs.recorder import Recorders
from proctor.runs.resources import Moment

LOOK_INTERVAL_S = 1.0  # for nodes that came or went
OTHERS_WAIT_S = 5.0
"""How long a run does not begin when a worker is ready and others wait for a CPU that is in use. Those that
have waited so long are placed on other nodes, if there is room."""
BUILD_DEADLINE_S = START_DEADLINE_S + 60.0  # the pool on the node has the first of them, and says more
RETRY_PAUSE_S = 30.0
"""How long a node rests where a worker could not begin, once the run has begun. Then twice that."""


class _Seat:
    """An actor, and what it is doing."""

    def __init__(self, index: int, node: Node, actor: Any) -> None:
        self.index, self.node, self.actor = index, node, actor
        self.state: Literal["placed", "building", "ready"] = "placed"
        self.since_s = time.monotonic()  # in this state
        self.call: Any = actor.describe.remote()  # the one that is under way
        self.episode: Any = None
        self.begun = Moment.now()  # its present episode
        self.granted_bytes = 0  # of the budget for frames


class RayExecutor:
    """Does episodes on as many workers as a Ray cluster has room for, also on nodes that come later."""

    options_type: ClassVar[type[msgspec.Struct]] = RayOptions
    fills_cluster: ClassVar[bool] = True

    def __init__(
        self,
        job: RunJob,
        workers: int | None,
        recorders: Recorders | None = None,
        *,
        check: bool = True,
        **options: Any,
    ) -> None:
        self._job = msgspec.structs.replace(job, policy_sha256=agent_digest(job))
        self._most, self._recorders = workers or math.inf, recorders
        # The machine of the run may reach an agent that a node does not reach.
        self._check = check or bool(replicas(job.policy))
        self._options = RayOptions(**options)
        self._cluster = RayCluster(self._options)
        self._exam = job.make_exam()
        self._left = 0  # episodes that are not done
        self._files: list[tuple[str, str]] = []
        self._shared_file = ""
        self._nodes: list[Node] = []
        self._looked_at_s = -math.inf
        self._seats: list[_Seat] = []
        self._refused: dict[str, str] = {}  # why, by the id of the node
        self._failures: Counter[str] = Counter()  # times that workers could not begin, by the id of the node
        self._paused_until_s: dict[str, float] = {}  # when to try again, by the id of the node
        self._last_failure = ""
        self._others_wait_s = OTHERS_WAIT_S
        self._checked: set[str] = set()  # the nodes on which a worker compares the files, or has
        self._losses: Counter[str] = Counter()  # by episode id
        self._losses_on: Counter[str] = Counter()  # by node
        self._again: deque[Any] = deque()  # episodes that were lost
        self._has_begun = False
        self._stack = ExitStack()
        self._problems: list[str] = []

    def check(self, episodes: Sequence[Any]) -> list[str]:
        """Let an env look at the episodes here."""
        self._left = len(episodes)
        self._files = file_digests(self._job.exam_class.scene_files(episodes))
        notes, problems = check_episodes(self._job, episodes)
        self._problems += problems
        return notes

    def start(self) -> None:
        """Join the cluster, and wait until its workers have built env and policy.

        Workers that wait for a CPU that others use may come later; those that are refused end the run.
        """
        self._cluster.join()
        if self._cluster.is_ours:
            self._files = []
        if self._recorders is not None:
            self._shared_file = self._stack.enter_context(shared_file(self._recorders.run_dir))
        deadline_s = time.monotonic() + self._options.start_timeout_s
        others_until_s = math.inf
        while True:
            self._hire()
            waiting = [seat for seat in self._seats if seat.state != "ready"]
            if self._seats and not waiting:
                break
            is_any_ready = len(waiting) < len(self._seats)
            if is_any_ready:
                others_until_s = min(others_until_s, time.monotonic() + OTHERS_WAIT_S)
            is_any_building = any(seat.state == "building" for seat in waiting)
            if not is_any_building and time.monotonic() > min(deadline_s, others_until_s):
                break
            self._advance(LOOK_INTERVAL_S)
        if not any(seat.state == "ready" for seat in self._seats):
            raise UserError(
                f"{self._cluster.label}: no worker could begin within {self._options.start_timeout_s:g} s. "
                "Are all CPUs in use? `ray status` tells; executor-option start_timeout_s=S waits longer"
            )
        self._has_begun = True

    def run(self, attempts: Attempts) -> Iterator[Finished | None]:
        """Do the episodes; results come as they are ready."""
        alone_since_s = time.monotonic()
        while True:
            self._hire()
            for seat in self._seats:
                if seat.call is None and (self._again or attempts.wait_s() == 0.0):
                    episode = self._again.popleft() if self._again else attempts.take(seat.index)
                    if episode is None:
                        yield None
                        break
                    self._give(seat, episode)
            is_busy = any(seat.episode is not None for seat in self._seats)
            wait_s = attempts.wait_s()
            if not is_busy and not self._again and wait_s is None:
                return
            if any(seat.state != "placed" for seat in self._seats):
                alone_since_s = time.monotonic()
            elif time.monotonic() - alone_since_s > self._options.start_timeout_s or not self._hope():
                raise UserError(self._no_nodes())
            for episode, finished in self._advance(min(LOOK_INTERVAL_S, wait_s or LOOK_INTERVAL_S)):
                attempts.note(episode, finished.result)
                self._left -= not attempts.comes_again(finished.result)
                attempts.news = next((f"not used: {why}" for why in self._refused.values()), "")
                yield finished

    def close(self) -> list[str]:
        """End all actors, the idle ones in good order, and what was started here."""
        try:
            self._close_idle()
        finally:
            for seat in self._seats:
                self._cluster.dismiss(seat.actor)
            self._seats = []
            self._cluster.leave()
            self._stack.close()
        self._problems += [f"not used: {why}" for why in self._refused.values()]
        for node, losses in self._losses_on.items():
            self._problems.append(f"{node}: {counted(losses, 'worker')} lost in the middle of an episode")
        return list(dict.fromkeys(self._problems))

    def _close_idle(self) -> None:
        """Let the actors that do nothing close policy and env, as long as there is time."""
        idle = [seat for seat in self._seats if seat.state == "ready" and seat.call is None]
        calls = [seat.actor.close.remote() for seat in idle]
        deadline_s = time.monotonic() + CLOSE_DEADLINE_S
        while calls and (ready := self._cluster.wait(calls, deadline_s - time.monotonic())):
            calls = [call for call in calls if call not in ready]
            for call in ready:
                with suppress(Lost):
                    self._problems += msgspec.json.decode(self._cluster.answer(call), type=list[str])

    def _hire(self) -> None:
        """Ask for as many actors as there are places and episodes: Ray would let others wait for ever."""
        if time.monotonic() - self._looked_at_s < LOOK_INTERVAL_S:
            return
        nodes, self._looked_at_s = self._cluster.nodes(), time.monotonic()
        if nodes is None:
            return
        self._nodes = nodes
        if not self._has_begun and not any(node.places for node in nodes):
            raise UserError(self._cluster.no_room(len(nodes)))
        alive = {node.id for node in nodes}
        for seat in self._seats:
            if seat.call is None and seat.node.id not in alive:
                self._drop(seat)  # else an episode that it is given would count as lost
        # At least one: an episode that another process has taken over may come back.
        while len(self._seats) < min(self._most, max(1, self._left)) and (room := self._open_nodes()):
            node = min(room, key=lambda node: (self._failures[node.id], -room[node]))
            taken = {seat.index for seat in self._seats}
            index = next(number for number in range(len(taken) + 1) if number not in taken)
            self._seats.append(_Seat(index, node, self._cluster.hire(node)))

    def _open_nodes(self) -> dict[Node, int]:
        """Return the nodes that may get another worker, and how many each has room for now.

        Where others use the CPUs, that is 0 or less, and a worker waits there.
        """
        used = Counter(seat.node.id for seat in self._seats)
        waiting = Counter(seat.node.id for seat in self._seats if seat.state == "placed")
        now_s = time.monotonic()
        return {
            node: min(node.places - used[node.id], node.free - waiting[node.id])
            for node in self._nodes
            if node.places > used[node.id]
            and node.id not in self._refused
            and now_s >= self._paused_until_s.get(node.id, 0.0)
        }

    def _end_overdue(self) -> None:
        """Refuse nodes where a worker hangs while it is built; take free CPUs rather than wait for others."""
        now_s = time.monotonic()
        for seat in self._seats:
            if seat.state == "building" and now_s - seat.since_s > BUILD_DEADLINE_S:
                self._refuse(seat, f"a worker was not ready after {BUILD_DEADLINE_S:g} s")
        room = sum(max(0, free) for node, free in self._open_nodes().items() if not self._failures[node.id])
        waiting = [s for s in self._seats if s.state == "placed" and now_s - s.since_s > self._others_wait_s]
        for seat in waiting[:room]:
            self._drop(seat)
        if waiting[:room]:
            self._others_wait_s *= 2  # it may have been a node that is slow to start processes

    def _advance(self, most_s: float) -> list[tuple[Any, Finished]]:
        """Wait until something has happened, and let the actors go on; return the finished episodes."""
        self._end_overdue()
        seats = {seat.call: seat for seat in self._seats if seat.call is not None}
        if not seats:
            time.sleep(most_s)  # nobody is there: nodes may come
            return []
        finished = []
        for call in self._cluster.wait([*seats], most_s):
            seat = seats[call]
            if seat not in self._seats:
                continue  # it was dropped with another one of its node
            try:
                answer = self._cluster.answer(call)
            except Lost as error:
                finished += self._lose(seat, str(error))
                continue
            except NotImportable as error:
                self._refuse(seat, f"Proctor cannot be used there ({error}); install the same on all nodes")
                continue
            seat.call = None
            if seat.state == "placed":
                self._prepare(seat, answer)
            elif seat.state == "building":
                self._settle(seat, answer)
            else:
                finished += self._result(seat, answer)
        return finished

    def _prepare(self, seat: _Seat, description: bytes) -> None:
        found = msgspec.json.decode(description, type=dict[str, str])
        if difference := software_difference(found, software_versions()):
            self._refuse(seat, f"it has {difference}; install the same on all nodes")
            return
        is_first = seat.node.id not in self._checked
        self._checked.add(seat.node.id)
        threads = int(self._options.cpus_per_worker)
        setup = ActorSetup(
            job=msgspec.structs.replace(self._job, first_worker=self._job.first_worker + seat.index),
            check=self._check,
            folder=str(Path.cwd()),
            environ={"LP_NUM_THREADS": str(threads if threads > 1 else 0), **passed_on(self._job)},
            files=self._files if is_first else [],
            recording=self._recorders.config if self._recorders else None,
            run_dir=str(self._recorders.run_dir) if self._recorders else "",
            shared_file=self._shared_file,
        )
        seat.state, seat.since_s = "building", time.monotonic()
        seat.call = seat.actor.prepare.remote(msgspec.json.encode(setup))

    def _settle(self, seat: _Seat, complaint: bytes) -> None:
        if not complaint:
            seat.state = "ready"
            del self._failures[seat.node.id]
            return
        is_here = seat.node.address == self._cluster.own_address()
        why = complaint.decode() + ("" if is_here else localhost_hint(self._job.policy))
        if self._has_begun:
            self._fail(seat, why)  # the agent may only be away for a moment
        else:
            self._refuse(seat, why)

    def _give(self, seat: _Seat, episode: Any) -> None:
        if self._recorders is not None:
            granted = sum(other.granted_bytes for other in self._seats)
            idle = sum(other.call is None for other in self._seats)
            seat.granted_bytes = max(0, self._recorders.bytes_left() - granted) // idle
        seat.episode, seat.begun = episode, Moment.now()
        seat.call = seat.actor.examine.remote(msgspec.json.encode(episode), seat.granted_bytes)

    def _result(self, seat: _Seat, answer: list[bytes]) -> list[tuple[Any, Finished]]:
        complaint, record, trace, transcript, counted = answer
        if complaint:
            self._refuse(seat, complaint.decode())
            return self._lose_episode(seat)
        episode, seat.episode, seat.granted_bytes = seat.episode, None, 0
        if self._recorders is not None:
            self._recorders.add_share(msgspec.json.decode(counted, type=list[int]))
        result = msgspec.json.decode(record, type=self._exam.result)
        return [(episode, Finished(result, record, trace, transcript))]

    def _lose(self, seat: _Seat, why: str) -> list[tuple[Any, Finished]]:
        """Take out an actor that is gone."""
        if seat.episode is None:
            self._fail(seat, why)
            return []
        self._losses_on[str(seat.node)] += 1
        self._drop(seat)
        for other in self._seats:
            if other.call is None and other.node.id == seat.node.id:
                self._drop(other)  # it may have died with its node; one that is dead must not count as a loss
        return self._lose_episode(seat)

    def _lose_episode(self, seat: _Seat) -> list[tuple[Any, Finished]]:
        """Give the episode of an actor to another one, or record that it was lost if that was enough."""
        episode = seat.episode
        self._losses[episode.episode_id] += 1
        if self._losses[episode.episode_id] < MAX_LOSSES:
            self._again.append(episode)
            return []
        problem = f"{MAX_LOSSES} workers on Ray nodes were lost, one after the other, in this episode"
        fault = Fault(side="evaluator", kind="node_lost", message=problem)
        seed = episode_seed(self._job.seed, episode.episode_id)
        return [(episode, lost(self._exam, episode, seed, fault, begun=seat.begun))]

    def _fail(self, seat: _Seat, why: str) -> None:
        """Count that a worker could not begin, and try again a few times."""
        self._drop_beginners(seat)
        self._last_failure = f"{seat.node}: {why}"
        self._failures[seat.node.id] += 1
        failures = self._failures[seat.node.id]
        if failures >= MAX_LOSSES:
            self._refuse(seat, f"{MAX_LOSSES} workers, one after the other, could not begin: {why}")
        elif self._has_begun:
            self._paused_until_s[seat.node.id] = time.monotonic() + RETRY_PAUSE_S * failures

    def _drop(self, seat: _Seat) -> None:
        self._cluster.dismiss(seat.actor)
        self._seats = [other for other in self._seats if other is not seat]
        self._checked.discard(seat.node.id)
        self._looked_at_s = -math.inf  # look for a place for another one at once

    def _refuse(self, seat: _Seat, why: str) -> None:
        """Begin no worker on a node any more. Before the run has begun, that ends it."""
        if not self._has_begun:
            raise UserError(f"{seat.node}: {why}")
        self._refused[seat.node.id] = f"{seat.node}: {why}"
        self._drop_beginners(seat)

    def _drop_beginners(self, seat: _Seat) -> None:
        """Drop an actor, and those on its node that are not ready: what it met, they meet, too."""
        for other in self._seats:
            if other is seat or (other.node.id == seat.node.id and other.state != "ready"):
                self._drop(other)

    def _hope(self) -> bool:
        """Tell whether a worker may still come: a node is not refused, or all are gone."""
        alive = [node.id for node in self._nodes if node.places]
        return not alive or any(node not in self._refused for node in alive)

    def _no_nodes(self) -> str:
        if not self._hope():
            why = f"the last node was refused: {[*self._refused.values()][-1]}"
        elif any(node.places for node in self._nodes):
            why = f"no worker could begin within {self._options.start_timeout_s:g} s"
            why += f" ({self._last_failure})" if self._last_failure else ""
        else:
            why = "all of its nodes with CPUs are gone"
        return f"{self._cluster.label}: {why}. What is done is kept: the same command goes on"
