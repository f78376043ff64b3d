"""The invariants of reconciler.md 6.5, as 6.8 sharpens them, that a single write can break. Each says what is wrong.

Those that need a whole pass or history are elsewhere: I5 and I10 in `History.settle`, I11 and I26 in `watcher`, I22 in
`History`, I9 and the rest of I6 and I8 in `podchecks`, I12 in test_sweep.py, I19 and I25 in test_model.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from gpustack.reconciler.shell.cluster import LEASES
from tests.reconciler.world.stack import STARTUP, base

from . import moment as m
from .moment import Moment

Check = Callable[[Moment], Iterator[str]]
OWN_ANNOTATIONS = {
    m.OP,
    m.LAST,
    m.MEMORY,
    m.CORDONED,
    m.REQUESTED,
    "gpustack.dev/fence",
    "gpustack.dev/retry",
    "nvidia.com/gpu-driver-upgrade-enabled",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "karpenter.sh/do-not-disrupt",
}
OWN_LABELS = {"gpustack.dev/phase", "nvidia.com/gpu.present", "nvidia.com/mig.config", "nvidia.com/mig.config.state"}
DRIVER_PAUSE, MIG_PAUSE = "paused-for-driver-upgrade", "paused-for-mig-change"
PAUSES = {DRIVER_PAUSE, MIG_PAUSE}


def i1_budget(now: Moment) -> Iterator[str]:
    """No write of ours takes the unavailable nodes of a pool, a zone or the fleet over the limit. An operation that
    somebody took out of the ledger counts while its node is cordoned."""
    before, after = m.operation(now.before), m.operation(now.after)
    if not m.disruptive(after) or m.disruptive(before) or m.cordoned(now.before) or now.known is None:
        return
    seen = {node.name: node for node in now.known.nodes}
    down, members = set(), set()
    for node in now.nodes():
        name, found = node["metadata"]["name"], seen.get(node["metadata"]["name"])
        members.add((name, now.owner_of(node), m.labels(node).get(m.ZONE, ""), m.labels(node).get(m.HOLD) == "true"))
        cordoned = found is not None and found.spec.unschedulable and m.CORDONED not in found.annotations
        others = cordoned or (found is not None and not found.ready)
        ledger = now.known.ledger
        begun = ledger is None or node["metadata"]["uid"] in ledger
        begun = begun or (m.cordoned(node) and not m.operation(node).get("unreadable"))
        if (m.disruptive(m.operation(node)) and begun) or others:
            down.add(name)
    uid, zone = after["policy"], m.labels(now.after).get(m.ZONE, "")
    policy = now.seen_policy(uid)
    if policy is None:
        return
    upgrade = policy.spec.upgrade
    pool = [each for each in members if each[1] == uid]
    limits = [
        ("pool", upgrade.maxUnavailable, pool),
        ("zone", upgrade.zoneMaxUnavailable, [each for each in pool if each[2] == zone]),
        ("fleet", policy.spec.fleet.maxUnavailable, [each for each in members if each[1]]),
    ]
    for what, limit, of in limits:
        if limit is None:
            continue
        total, out = sum(1 for each in of if not each[3]), sum(1 for each in of if each[0] in down)
        if out > m.limit_of(limit, total):
            yield f"{out} nodes of the {what} are unavailable, {m.limit_of(limit, total)} may be"


def i2_parallel(now: Moment) -> Iterator[str]:
    """Operations that hold a slot are never more than maxParallel by a write of ours, across kinds. One that began more
    than an hour ago may have lost it: its node can't get on by a fault of its own. One that somebody took out of the
    ledger counts for nobody."""
    if not now.opened:
        return
    uid = m.operation(now.after)["policy"]
    hour = now.world.server.now - timedelta(hours=1)
    begun = now.ledger()
    slots = [
        node
        for node in now.nodes()
        if m.in_slot(m.operation(node)) and m.started(node) > hour and node["metadata"]["uid"] in begun
    ]
    open_in = [now.owner_of(node) for node in slots]
    policy = now.seen_policy(uid)
    if policy is None:
        return
    for what, limit, count in (
        ("pool", policy.spec.upgrade.maxParallel, open_in.count(uid)),
        ("fleet", policy.spec.fleet.maxParallel, len(open_in)),
    ):
        if limit and count > limit:
            yield f"{count} operations of the {what} at once, {limit} may be"


def i3_foreign_cordon(now: Moment) -> Iterator[str]:
    """A node that others cordoned is never uncordoned by us, and never taken."""
    if m.cordoned(now.before) and not m.cordoned(now.after) and now.owner != "us":
        yield f"uncordoned, though {now.owner or 'nobody'} had cordoned it"
    if now.opened and now.owner == "others":
        yield "taken, though others had cordoned it"


def i4_owned_cordon(now: Moment) -> Iterator[str]:
    """A cordon of ours has its record and its mark, and goes with them.

    What somebody took away from them is not held against a write about something else: a new leader's fence, labels.
    """
    found, mark = m.operation(now.after), m.annotations_of(now.after).get(m.CORDONED)
    if found.get("unreadable"):
        return
    about = [
        (m.annotations_of(node).get(m.OP), m.annotations_of(node).get(m.CORDONED)) for node in (now.before, now.after)
    ]
    cordons = about[0] != about[1] or m.cordoned(now.before) != m.cordoned(now.after)
    if cordons and (mark or "") != (found.get("id", "") if found.get("cordon") else ""):
        yield f"the mark is {mark}, the record says {found.get('id')}, cordon {found.get('cordon', False)}"
    if cordons and not found and m.cordoned(now.after) and now.owner == "us":
        yield "no record, and still cordoned by us"
    before = m.operation(now.before), m.labels(now.before).get("gpustack.dev/phase", "")
    phase = m.labels(now.after).get("gpustack.dev/phase", "")
    if phase != found.get("phase", "") and before != (found, phase):
        yield "the label does not say the phase of the record"


def i6_only_in_acting(now: Moment) -> Iterator[str]:
    """mig.config is written in Acting alone."""
    key = "nvidia.com/mig.config"
    phase = m.operation(now.after).get("phase")
    if m.labels(now.before).get(key) != m.labels(now.after).get(key) and phase != "Acting":
        yield f"mig.config written in {phase}"


def i7_empty_before_acting(now: Moment) -> Iterator[str]:
    """Acting is entered only where no pod uses a GPU, or nothing will be installed anew."""
    before, after = m.operation(now.before), m.operation(now.after)
    enters = after.get("phase") == "Acting" and before.get("phase") not in {"Acting", "Verifying"}
    if enters and not after.get("restartOnly") and (pods := now.gpu_pods(now.name)):
        yield f"{pods[0]['metadata']['name']} uses a GPU"
    if enters and not {"install"} & set(after["acts"]) and not after.get("restartOnly") and now.empty_lists < 2:
        yield f"seen empty {now.empty_lists} times"


def i8_labels_kill(now: Moment) -> Iterator[str]:
    """The label that keeps a driver on a node is not taken away but by a change of mode or when the GPU is gone."""
    key = f"{m.DEPLOY}driver"
    taken = m.labels(now.before).get(key) == "true" != m.labels(now.after).get(key)
    if not taken or "mode" in m.operation(now.after).get("acts", ()) or m.labels(now.after).get(m.PCI) != "true":
        return
    policy = now.policy(now.owner_of(now.after))
    out = m.annotations_of(now.after).get("gpustack.dev/optout", "")
    if policy and "driver" in policy["spec"]["components"] and "driver" not in out:
        yield "the driver's label was taken away"


def _pauses(now: Moment) -> bool:
    """Whether the driver manager is at its pauses, in a pod that the pass saw, and not as a ready one of the past."""
    machine, pod = now.world.machines[now.name], now.world.operand("nvidia-driver-daemonset", now.name)
    seen = now.known.driver_pods.get(now.name, ()) if now.known else ()
    here = pod is not None and pod["metadata"]["uid"] == machine.driver.pod
    return here and machine.driver.stage == "pausing" and any(each.uid == machine.driver.pod for each in seen)


def i13_foreign_values(now: Moment) -> Iterator[str]:
    """What others wrote stays byte for byte; a pause is undone only where its party is idle and has been for long."""
    old, new = m.labels(now.before), m.labels(now.after)
    spec = {key for each in now.policies() for key in each["spec"].get("labels", ())}
    seen = now.known.policies if now.known else ()  # by a watch that hasn't caught up, say
    spec |= {key for each in seen for key in each.spec.labels}
    target = set(m.operation(now.after).get("target", {}).get("labels", {}))
    for key in old.keys() | new.keys():
        if old.get(key) == new.get(key) or key in OWN_LABELS | spec | target or key == m.UPSTREAM:
            continue
        if not key.startswith(m.DEPLOY):
            yield f"label {key} is not ours"
        elif old.get(key) in PAUSES and new.get(key) == "true":
            state = new.get("nvidia.com/mig.config.state")
            machine = now.world.machines[now.name]
            if old.get(key) == MIG_PAUSE and state in {"pending", "rebooting"} and machine.mig.stage:
                yield f"{key} was going to be set by the MIG manager"
            if old.get(key) == DRIVER_PAUSE and _pauses(now):
                yield f"{key} was going to be set by the driver manager"
        elif old.get(key) not in {None, "", "true"} or new.get(key) not in {None, "true"}:
            yield f"label {key} was {old.get(key)!r} and is {new.get(key)!r}"
    mine, yours = m.annotations_of(now.before), m.annotations_of(now.after)
    for key in mine.keys() | yours.keys():
        if mine.get(key) != yours.get(key) and key not in OWN_ANNOTATIONS and "gpu-driver-upgrade" not in key:
            yield f"annotation {key} is not ours"


def i13_foreign_taints(now: Moment) -> Iterator[str]:
    """Taints of others stay as they are; those with which the platform brings up nodes go."""
    old, new = ((of.get("spec") or {}).get("taints") or [] for of in (now.before, now.after))
    if new != old and new != [each for each in old if each["key"] != STARTUP["key"]]:
        yield f"taints were {old} and are {new}"


def i14_gates(now: Moment) -> Iterator[str]:
    """Nothing begins while paused or held, as the pass saw it."""
    if not now.opened or now.known is None:
        return
    found = m.operation(now.after)
    policy = next((each for each in now.known.policies if each.uid == found["policy"]), None)
    if now.known.paused or (policy and {m.PAUSED, m.HOLD} & policy.annotations.keys()):
        yield "begun while the fleet or the pool was paused"
    node = next((each for each in now.known.nodes if each.name == now.name), None)
    if node is not None and node.labels.get(m.HOLD) == "true":
        yield "begun on a node on hold"


def foreign_operator(now: Moment) -> Iterator[str]:
    """Nothing is written while the operator runs, as the pass saw it; a fence comes before a pass (A6)."""
    if now.known is not None and now.known.foreign and not now.fence_alone:
        yield f"written while {now.known.foreign} runs"


def i15_labels_stay(now: Moment) -> Iterator[str]:
    """Deploy labels are not removed while a pod uses a GPU or an operation is open, but by a change of mode."""
    old, new = m.labels(now.before), m.labels(now.after)
    removed = [key for key in old if key.startswith(m.DEPLOY) and old[key] == "true" and new.get(key) != "true"]
    if removed and "mode" not in m.operation(now.after).get("acts", ()):
        if m.operation(now.before):
            yield f"{removed[0]} removed in an operation"
        if pods := now.gpu_pods(now.name):
            yield f"{removed[0]} removed while {pods[0]['metadata']['name']} uses a GPU"


def i16_outage_of_nfd(now: Moment) -> Iterator[str]:
    """A GPU counts as gone only after the grace."""
    key = "nvidia.com/gpu.present"
    if m.labels(now.after).get(key) == "false" != m.labels(now.before).get(key):
        server, elapsed = now.gone_since or (now.world.server.now, now.world.elapsed)
        passed = max((now.world.server.now - server).total_seconds(), now.world.elapsed - elapsed)
        if passed < 900:
            yield f"the GPU was gone for {passed:.0f} s"


def i17_proof(now: Moment) -> Iterator[str]:
    """What is done is done: the geometry is there in truth, the driver is current and ready."""
    found, last = m.operation(now.before), m.annotations_of(now.after).get(m.LAST)
    if not found or m.operation(now.after) or not last or '"outcome":"done"' not in last:
        return
    if last == m.annotations_of(now.before).get(m.LAST):
        return  # that of the operation before: a record of which the ledger knows nothing went
    machine = now.world.machines[now.name]
    target = found.get("target", {})
    policy = now.seen_policy(found.get("policy", ""))
    dropped = found.get("phase") == "Quarantine" and policy is not None and policy.spec.mig is None
    wanted = "" if dropped else target.get("mig")  # nobody wants the layout any more that it has failed at
    offered = m.labels(now.before).get(f"{m.DEPLOY}device-plugin") == "true"  # else nothing tells what a reboot undid
    if offered and wanted and machine.geometry[0] != base(wanted):
        yield f"done with {wanted}, and the machine has {machine.geometry[0]}"
    # Whoever keeps the driver off a node wants none, or has one there that no pod of the stack tells of.
    kept_off = m.labels(now.before).get(f"{m.DEPLOY}driver", "") not in {"", "true", *PAUSES}
    wants = found["finish"].get("daemonSet") or (policy is not None and policy.spec.driver is not None)
    if not (machine.loaded or kept_off) and wants:
        yield "done, and no driver is loaded"


def i18_nothing_due(now: Moment) -> Iterator[str]:
    """An operation begins where something differs: driver template, MIG layout, mode, or a failure."""
    found = m.operation(now.after)
    if not now.opened or now.known is None:
        return
    if "driver" in found["acts"]:
        pods = now.known.driver_pods.get(now.name, ())
        if all(
            pod.labels.get("controller-revision-hash") == found.get("target", {}).get("revision", "") for pod in pods
        ) and not m.operation(now.before):
            yield "the driver is current"


def i28_shared(now: Moment) -> Iterator[str]:
    """Nothing begins on a node that another one holds for maintenance."""
    lease = now.world.server.find(LEASES, f"node-{now.name}", m.SHARED)
    if now.opened and lease and m.holds(lease, now.world.server.now) == "node-maintenance":
        yield "begun, though it is held for maintenance"
    kured = now.known.kured.annotations.get(m.LOCK) if now.known and now.known.kured else None
    if now.opened and now.known and m.locked(kured, now.name, now.known.now):
        yield "begun, though kured holds its lock"


def i29_images(now: Moment) -> Iterator[str]:
    """No node is taken for a new driver, nor emptied for it, whose images it has to wait for and hasn't got, as the
    pass saw it. A broken driver, or one that has failed, is not kept for them."""
    found, before = m.operation(now.after), m.operation(now.before)
    emptied = found.get("phase") == "Evicting" and before.get("phase") == "Held"
    again = found.get("acted") or (before and not emptied)
    if not (now.opened or emptied) or now.known is None or "driver" not in found["acts"] or again:
        return
    policy = now.seen_policy(found["policy"])
    prepull = policy.spec.upgrade.prepull if policy else None
    if policy is None or prepull is None or prepull.then == "begin" or policy.spec.driver is None:
        return
    wanted = policy.spec.driver.daemonSets[0].images
    pods = [pod for pod in now.known.pullers.get(now.name, ()) if pod.labels.get("gpustack.dev/images") == wanted]
    if not any(pod.ready for pod in pods):
        yield "taken or emptied before its next driver's images were there"


def i20_deadlines(now: Moment) -> Iterator[str]:
    """A deadline is set when a phase begins, and is not moved but by a clock that was put back."""
    old, new = m.operation(now.before), m.operation(now.after)
    if old.get("since") and datetime.fromisoformat(old["since"]) > now.world.server.now:
        return
    same = old and new and all(old.get(key) == new.get(key) for key in ("id", "phase", "step", "recordons", "target"))
    if same and old.get("deadline") != new.get("deadline") and new["phase"] != "Acting":
        yield f"the deadline of {new['phase']} was moved"


def i21_unreadable(now: Moment) -> Iterator[str]:
    """A node whose record can't be read is left alone; a fence against a late admission may come there (A1)."""
    if m.operation(now.before).get("unreadable") and not now.fence_alone:
        yield "written, though its record can't be read"


def i23_breaker(now: Moment) -> Iterator[str]:
    """Nothing begins while the breaker is open, but what is for a fault."""
    if not now.opened or now.known is None or m.operation(now.after)["acts"] == ["health"]:
        return
    policy = next((each for each in now.known.policies if each.uid == m.operation(now.after)["policy"]), None)
    current = now.policy(policy.uid) if policy else None
    still = (((current or {}).get("status") or {}).get("breaker") or {}).get("open")
    if policy and policy.status.breaker.open and still:
        yield "begun while the breaker is open"


def i24_new_node(now: Moment) -> Iterator[str]:
    """What was proved is remembered of this machine and of no other of its name."""
    text = m.annotations_of(now.after).get(m.MEMORY)
    uid = f'"uid":"{now.after["metadata"]["uid"]}"'
    if text and text != m.annotations_of(now.before).get(m.MEMORY) and uid not in text:
        yield "remembers another node"


def _faulty(now: Moment, name: str) -> bool:
    """Whether the pass saw a fault of the node that something is done about."""
    kinds = {"GpuFatal", "GpuLost", "GpuBad"}
    found = next((each for each in now.known.nodes if each.name == name), None) if now.known else None
    return found is not None and any(
        each.type in kinds
        and each.status == "True"
        and (each.type != "GpuFatal" or (each.lastHeartbeatTime is not None and each.lastHeartbeatTime.year > 2020))
        for each in found.status.conditions
    )


def _out(now: Moment, node: m.Document) -> bool:
    """Whether a node is out of service for a fault. An operation that somebody took out of the ledger counts while its
    node is cordoned: any kubelet can write a record, and without a cordon pods come to the node."""
    operation, ledger = m.operation(node), now.known.ledger if now.known else None
    entry = (ledger or {}).get(node["metadata"]["uid"])
    begun = ledger is None or (entry is not None and entry.lists(operation.get("id", "")))
    return operation.get("acts") == ["health"] and (begun or m.cordoned(node))


def i28_faults(now: Moment) -> Iterator[str]:
    """For a fault nodes are taken that tell of one, no more than the limit, and none where too many tell of one or
    faults are only reported. Only what is fatal empties a node that is in use."""
    before, after = m.operation(now.before), m.operation(now.after)
    if after.get("acts") != ["health"] or now.known is None:
        return
    taken = [node for node in now.nodes() if _out(now, node)]
    if before.get("acts") != ["health"]:
        policy = now.seen_policy(after["policy"])
        section = policy.spec.health if policy else None
        if section is None or (section.reportOnlyUntil and section.reportOnlyUntil > now.known.now):
            yield "taken, though faults are only reported"
        if not _faulty(now, now.name):
            yield "taken, and no condition tells of a fault"
        most = min(section.maxNodes, m.limit_of(section.maxShare, len(list(now.nodes())))) if section else 0
        if len(taken) > most:
            yield f"{len(taken)} nodes are out of service for faults, {most} may be"
    policy = now.seen_policy(after["policy"])
    if now.opened and policy and policy.spec.health:
        told = [node.name for node in now.known.nodes if _faulty(now, node.name)]
        if len(told) > max(m.limit_of(policy.spec.health.breakerShare, len(now.known.nodes)), 1):
            yield f"{len(told)} of {len(now.known.nodes)} nodes tell of a fault, and one was taken"
    if after["phase"] == "Evicting" != before.get("phase") and not _faulty(now, now.name):
        yield "emptied, and no condition tells of a fault"
    if after["phase"] == "Evicting" and after["target"].get("health") != "drain":
        yield "emptied for what is not fatal"


NODE_CHECKS: tuple[Check, ...] = (
    i1_budget,
    i2_parallel,
    i3_foreign_cordon,
    i4_owned_cordon,
    i6_only_in_acting,
    i7_empty_before_acting,
    i8_labels_kill,
    i13_foreign_values,
    i13_foreign_taints,
    i14_gates,
    foreign_operator,
    i15_labels_stay,
    i16_outage_of_nfd,
    i17_proof,
    i18_nothing_due,
    i20_deadlines,
    i28_shared,
    i29_images,
    i21_unreadable,
    i23_breaker,
    i24_new_node,
    i28_faults,
)
"""Checks of our writes on nodes."""
