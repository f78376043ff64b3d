"""What the program costs the API server and its machine. For 1,000 nodes: `python -m tests.bench.reconciler_soak`."""

from __future__ import annotations

import sys
import time
import urllib.request
from pathlib import Path

from tests.control_plane.cluster import wait_for
from tests.control_plane.objects import pod
from tests.control_plane.reconciler.proxy import Proxy
from tests.control_plane.reconciler.stack import Stack

NODES, PODS = 4, 6
PER_NODE = 40
"""Requests of a rollout: six writes, four Events, and the pods of the node every second that it is being emptied."""
MEGABYTES = 150


def asked(proxy: Proxy) -> list[tuple[str, str]]:
    """The requests so far, without renewals of the Lease and watches."""
    return [(method, path) for method, path in proxy.requests if "/leases" not in path and "watch=" not in path]


def test_requests_and_memory(stack: Stack, proxy: Proxy, upgraded: Path) -> None:
    """T19, I26, A9: a cluster in which nothing happens costs no request but the Lease's, however many pods there are;
    a rollout costs a bounded number a node, and pods are only ever listed by node; nodes without an open operation
    have no series of their own.
    """
    program = stack.start(kubeconfig=stack.behind(proxy))
    nodes = stack.add(NODES, "free")
    for machine in nodes:
        for number in range(PODS):
            stack.api.create(pod(f"{machine.name}-{number}", "default", nodeName=machine.name))
    stack.all_done(*nodes)
    wait_for(lambda: stack.policy("free")["status"].get("current") == NODES, "the status counts them")
    time.sleep(2)
    proxy.requests.clear()
    time.sleep(5)  # that nothing is asked can't be waited for
    assert asked(proxy) == []
    assert proxy.requests
    stack.apply(upgraded)
    stack.all_done(*nodes)
    found = asked(proxy)
    assert NODES < len(found) <= NODES * PER_NODE
    lists = [path for method, path in found if method == "GET" and path.startswith("/api/v1/pods")]
    assert lists
    assert all("spec.nodeName" in path for path in lists)
    wait_for(lambda: stack.policy("free")["status"].get("current") == NODES, "the status counts them")
    time.sleep(1)
    page = urllib.request.urlopen(f"http://127.0.0.1:{stack.ports['reconciler']}/metrics").read().decode()
    assert 'gpustack_reconciler_nodes{policy="free",state="current"} 4' in page
    assert "gpustack_reconciler_node_phase_since_seconds{" not in page
    if sys.platform == "linux":
        status = Path(f"/proc/{program.process.pid}/status").read_text(encoding="utf-8")
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        assert peak < MEGABYTES * 1024
