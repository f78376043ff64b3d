"""A program that dies, stalls, loses answers or its API server: nobody is left behind, and nothing happens twice."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

from gpustack.api import keys
from tests.control_plane.cluster import START_SECONDS, wait_for
from tests.control_plane.machine import Machine
from tests.control_plane.process import Program
from tests.control_plane.reconciler.proxy import Proxy
from tests.control_plane.reconciler.stack import Stack
from tests.control_plane.reconciler.witness import Witness


def deleted(stack: Stack, programs: list[Program]) -> Counter[str]:
    """How often each pod was deleted, by what the programs say."""
    lines = itertools.chain.from_iterable(stack.log(program) for program in programs)
    return Counter(line["pod"] for line in lines if line["message"] == "deleted")


def test_killed_at_every_phase(stack: Stack, witness: Witness, upgraded: Path) -> None:
    """T7: the program is killed (SIGKILL) in each phase of a rollout over three nodes, and started again each time:
    it goes on from what stands on the nodes, no driver is restarted twice, and all ends as if nothing had happened.
    """
    programs = [stack.start("reconciler", "--lease-seconds", "3")]
    nodes = stack.add(3, "free")
    stack.all_done(*nodes)
    jobs = [stack.gpu_pod(machine) for machine in nodes]
    witness.sights.clear()
    stack.apply(upgraded)
    for phase in ("Held", "Evicting", "Acting", "Verifying"):
        wait_for(lambda phase=phase: witness.saw(phase), f"{phase} begins", 60, 0.02)  # type: ignore[misc]
        programs[-1].kill()
        programs.append(stack.start(f"after-{phase.lower()}", "--lease-seconds", "3"))
    stack.all_done(*nodes)
    assert all(stack.api.find("Pod", job["metadata"]["name"], "default") is None for job in jobs)
    assert set(deleted(stack, programs).values()) <= {1}
    assert witness.torn() == []
    for machine in nodes:
        assert {key for key in stack.annotations(machine) if key.startswith(keys.DOMAIN)} <= {
            keys.LAST,
            keys.MEMORY,
            keys.FENCE,
        }


def test_late_admission_of_a_stalled_leader(stack: Stack, proxy: Proxy, witness: Witness, upgraded: Path) -> None:
    """T8, A1: a leader stalls while its admission of a node is under way; the next one fences the node, so that the
    late write is refused (409), takes the rollout over and ends it; the first, awake again, does nothing more.
    """
    first = stack.start("first", kubeconfig=stack.behind(proxy))
    nodes = stack.add(2)
    stack.all_done(*nodes)
    late = proxy.trouble("hold", lambda method, path, body: method == "PATCH" and b'"unschedulable":true' in body)
    stack.apply(upgraded)
    wait_for(lambda: late.met, "an admission is under way")
    assert keys.ADMITTING in stack.lease()["metadata"]["annotations"]
    first.pause()
    second = stack.start("second")
    wait_for(lambda: stack.leads(second), "the second leads")
    wait_for(lambda: keys.ADMITTING not in stack.lease()["metadata"].get("annotations", {}), "it has settled that", 30)
    late.release()
    wait_for(lambda: late.answers, "the late write has arrived")
    assert late.answers == [409]
    first.resume()
    stack.all_done(*nodes)
    wait_for(lambda: not stack.leads(first), "the first knows that it no longer leads")
    assert witness.most_cordoned() == 1
    assert witness.torn() == []
    assert not deleted(stack, [first])


def test_lost_answers_and_broken_watches(stack: Stack, proxy: Proxy, witness: Witness, upgraded: Path) -> None:
    """T6: writes that succeed and seem not to (no answer, a 500), and watches that break again and again: the rollout
    ends all the same, nothing is done twice.
    """
    program = stack.start(kubeconfig=stack.behind(proxy))
    nodes = stack.add(3, "free")
    stack.all_done(*nodes)
    writes = [
        proxy.trouble("lose", lambda method, _, body: method == "PATCH" and b'"unschedulable":true' in body),
        proxy.trouble("fail", lambda method, _, body: method == "PATCH" and b"Evicting" in body),
        proxy.trouble("lose", lambda method, _, body: method == "PATCH" and b"Acting" in body),
        proxy.trouble("lose", lambda method, path, _: method == "DELETE" and "/pods/" in path),
        proxy.trouble("fail", lambda method, path, body: method == "PATCH" and "/leases/" in path, times=1),
    ]
    stack.apply(upgraded)

    def over() -> bool:
        proxy.cut()
        return all(stack.done(machine) for machine in nodes)

    wait_for(over, "the rollout is over", 120, every=1)
    assert [trouble.met for trouble in writes] == [1] * len(writes)
    assert [trouble.answers[0] for trouble in writes] == [200] * len(writes)
    assert witness.torn() == []
    assert set(deleted(stack, [program]).values()) <= {1}


def test_outage_of_the_api_server(stack: Stack, upgraded: Path) -> None:
    """T6: the API server goes away in the middle of a rollout and comes back with an empty memory of what happened
    before: the program's watches are too old (410), it lists anew, leads again and ends the rollout.
    """
    program = stack.start("reconciler", "--log-level", "debug")
    nodes: list[Machine] = stack.add(2, "free")
    stack.all_done(*nodes)
    stack.apply(upgraded)
    wait_for(lambda: any(stack.phase(machine) == "Acting" for machine in nodes), "it is under way", 60, every=0.05)
    server = next(one for name, one in stack.plane.programs.items() if name == "kube-apiserver")
    server.kill()
    stack.plane.run("kube-apiserver").wait_until(stack.plane.serves, START_SECONDS)
    stack.all_done(*nodes)
    assert program.running
    assert set(deleted(stack, [program]).values()) <= {1}
    ended = [line for line in stack.log(program) if line["message"] == "watch ended"]
    assert 410 in {line["status"] for line in ended}
