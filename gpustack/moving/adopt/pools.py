"""What nodes tell: pools, of those that are alike, with a label that tells them from the others; and the platform, with
what only OpenShift has: its version, and the images of its driver toolkit."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from gpustack.catalog import _data
from gpustack.live.state import labels
from gpustack.model import Body, Location

from ...api import keys
from .installation import Installation, Leaves, Said

NODES = Location("nodes")
HARDLY = (keys.FEATURES, keys.NVIDIA, "beta.kubernetes.io/", "kubernetes.io/", "topology.kubernetes.io/")
"""Label keys that nobody has chosen, or that NVIDIA's programs set."""
LIKELY = ("pool", "nodegroup", "node-group", "instance-type", "flavor")
"""What the keys of labels have in their names by which people tell nodes apart."""

KINDS = {"ClusterVersion", "ImageStream", "SecurityContextConstraints", "Subscription"}
TOOLKIT = "openshift.driver-toolkit.rhcos"
"""The label of a driver's DaemonSet that names the RHCOS version whose toolkit it builds with (operator.md 8.1)."""


def pools(installation: Installation, leaves: Leaves) -> Leaves:
    """The pools that the nodes of INSTALLATION are, else those that its drivers name; none where neither tells."""
    nodes = [node for node in installation.of_kind("Node") if has_gpu(node)]
    if not nodes:
        return of_drivers(installation, leaves)
    precompiled = any(path[-1] == "usePrecompiled" and said.value is True for path, said in leaves.items())
    groups: dict[tuple[Any, ...], list[Body]] = defaultdict(list)
    for node in nodes:
        facts = alike(node, kernel=precompiled)
        groups[tuple((key, str(value)) for key, value in facts.items())].append(node)
    made: Leaves = {}
    for index, members in enumerate(groups.values()):
        selector = label_of(members, nodes) if len(groups) > 1 else {}
        facts = alike(members[0], kernel=precompiled)
        name = next(iter(selector.values()), "") or facts.get("gpuProduct") or "gpus"
        pool = {"name": plain(str(name), index, made), "nodeSelector": selector, **facts, "count": len(members)}
        first = f"node {members[0]['metadata']['name']}" + (f" and {len(members) - 1} more" if len(members) > 1 else "")
        where = {"name": Location(first)}
        made |= {
            ("nodePools", index, key): Said(value, where.get(key, Location(""))) for key, value in pool.items() if value
        }
        if len(groups) > 1 and not selector:
            installation.tell("pool", f"spec.nodePools[{index}].nodeSelector", pool=pool["name"])
    return made


def platform(info: list[Body]) -> str:
    """The platform that each node tells by INFO, its nodeInfo; "" where one doesn't, or another."""
    rows = _data.read(Path(__file__).with_name("platforms.yaml")).items()
    told = {next((name for name, marks in rows if matching(marks, each)), "") for each in info}
    return str(told.pop()) if len(told) == 1 else ""


def matching(marks: Body, info: Body) -> bool:
    """Whether each of MARKS is found in its field of INFO."""
    return all(re.search(mark, str(info.get(key, ""))) for key, mark in marks.items())


def has_gpu(node: Body) -> bool:
    """Whether NODE has a GPU, as node feature discovery, the operator or the kubelet say."""
    own, capacity = labels(node), node.get("status", {}).get("capacity", {})
    marked = any(own.get(key) == "true" for key in (keys.PRESENT, "feature.node.kubernetes.io/pci-10de.present"))
    return marked or any(key.startswith(keys.NVIDIA) and str(count) != "0" for key, count in capacity.items())


def alike(node: Body, *, kernel: bool) -> dict[str, Any]:
    """What is the same for all nodes of a pool: KERNEL too, where precompiled drivers are chosen by it."""
    own, info = labels(node), node.get("status", {}).get("nodeInfo", {})
    name, version = (own.get(f"{keys.OS_RELEASE}{key}", "") for key in ("ID", "VERSION_ID"))
    if name == "rhcos" and (openshift := own.get(f"{keys.OS_RELEASE}OPENSHIFT_VERSION")):
        version = openshift
    image = re.match(r"([A-Za-z]+)\D*(\d+(?:\.\d+)?)", str(info.get("osImage", "")))
    system = name + version or (f"{image[1].lower()}{image[2]}" if image else "")
    product = own.get(keys.PRODUCT, "")
    count = own.get("nvidia.com/gpu.count", "") if "-MIG-" not in product else ""  # of slices there
    taints = [
        {key: taint[key] for key in ("key", "value", "effect") if taint.get(key)}
        for taint in node.get("spec", {}).get("taints") or []
        if not str(taint.get("key", "")).startswith("node.kubernetes.io/")
    ]
    arch = own.get(keys.ARCH, "")
    workload = own.get(keys.WORKLOAD, "")
    return {
        "os": system,
        "arch": arch if arch in {"amd64", "arm64"} else "",
        "kernel": (own.get(keys.KERNEL) or info.get("kernelVersion", "")) if kernel else "",
        "ostreeVersion": own.get(f"{keys.OS_RELEASE}OSTREE_VERSION", ""),
        "gpuProduct": re.sub(r"-(?:SHARED|MIG-.*)$", "", product),
        "gpusPerNode": int(count) if count.isdecimal() and count != "0" else 0,
        "workload": workload if workload in {"container", "vm-passthrough", "vm-vgpu"} else "",
        "taints": taints,
    }


def label_of(members: list[Body], nodes: list[Body]) -> dict[str, str]:
    """A label that all MEMBERS have, and none of the other NODES with GPUs; {} where there is none."""
    shared = set.intersection(*(set(labels(node).items()) for node in members))
    others = [labels(node) for node in nodes if node not in members]
    telling = [(key, value) for key, value in shared if value and all(each.get(key) != value for each in others)]
    chosen = [pair for pair in telling if not pair[0].startswith(HARDLY) or "instance-type" in pair[0]]
    ranked = sorted(chosen, key=lambda pair: (not any(word in pair[0] for word in LIKELY), pair))
    return dict(ranked[:1])


def of_drivers(installation: Installation, leaves: Leaves) -> Leaves:
    """A pool for the nodes of each of `drivers`, whose operating system is to be said."""
    count = len({path[1] for path in leaves if path[0] == "drivers"})
    made: Leaves = {}
    for index in range(count):
        selector = {
            path[3]: said
            for path, said in leaves.items()
            if path[:3] == ("drivers", index, "nodeSelector") and len(path) > 3
        }
        if selector:
            name = leaves["drivers", index, "name"]
            made["nodePools", len({path[1] for path in made}), "name"] = name
            position = len({path[1] for path in made}) - 1
            made |= {("nodePools", position, "nodeSelector", key): said for key, said in selector.items()}
    return made


def plain(text: str, index: int, made: Leaves) -> str:
    """TEXT as the name of a pool that no other in MADE has."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50].strip("-") or "gpus"
    taken = {said.value for path, said in made.items() if path[-1] == "name"}
    return f"{name}-{index + 1}" if name in taken else name


def on_openshift(installation: Installation, leaves: Leaves) -> bool:
    """Whether INSTALLATION is on OpenShift: an input says so, or there is what no other platform has."""
    toolkit = any(path[-1] == "use_ocp_driver_toolkit" and said.value is True for path, said in leaves.items())
    systems = [labels(node).get(f"{keys.OS_RELEASE}ID", "") for node in installation.of_kind("Node")]
    systems += [str(said.value) for path, said in leaves.items() if path[0] == "nodePools" and path[-1] == "os"]
    marks = (installation.openshift, toolkit, any(each.startswith("rhcos") for each in systems))
    return any(marks) or any(True for _ in installation.of_kind(*KINDS))


def openshift(installation: Installation) -> Leaves:
    """The section `cluster` of an OpenShift cluster; what nothing tells is asked for."""
    at = ("cluster", "openshift")
    made: Leaves = {("cluster", "platform"): Said("openshift", Location(""))}
    versions = [
        body.get("status", {}).get("desired", {}).get("version") for body in installation.of_kind("ClusterVersion")
    ]
    versions += [labels(node).get(f"{keys.OS_RELEASE}VERSION_ID") for node in installation.of_kind("Node")]
    version = next((str(each) for each in versions if each), "")
    images: dict[str, str] = {}
    for body in installation.of_kind("DaemonSet"):
        own = labels(body)
        containers = body.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
        if TOOLKIT in own and f"{TOOLKIT}-image-missing" not in own:
            images.update((own[TOOLKIT], each["image"]) for each in containers if "driver-toolkit" in each["name"])
    for body in installation.of_kind("ImageStream"):
        for tag in body.get("spec", {}).get("tags", []) if body["metadata"]["name"] == "driver-toolkit" else []:
            images[tag["name"]] = str(tag.get("from", {}).get("name", ""))
    if version:
        made[*at, "version"] = Said(version, Location(""))
    else:
        installation.tell("openshift", "spec.cluster.openshift.version")
    if images:
        made[*at, "driverToolkitImages"] = Said(images, Location(""))
    return made
