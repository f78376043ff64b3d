"""The MIG manager's file, in which a name keeps its content for as long as a node may ask for it.

Solves: the manager reads its file again at each start, and cuts by what its node's label names then (reconciler.md M2,
M4). So a new image of the manager, a crash or a reboot after a merge that changes a layout would cut nodes that nobody
has emptied, and no node could be given back the layout that it had. The manager therefore reads a file that this
program writes. What is rendered stands in it under its own name where that is free, else as NAME-<8 of its digest>; a
node gets it by its label, in an operation. What a label or an open operation names stays as it is.

Rejected: contents in ConfigMaps of their own (the manager mounts one), rendered names with digests (the compiler knows
no node, and nothing would hold the old content for a reboot).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec

from ...api import keys
from ...api.node_policy import NodePolicy
from ...api.objects import ConfigMap, Node
from .actions import WriteLayouts
from .record import Memory, Operation, Unreadable, read
from .snapshot import Layouts, Snapshot
from .view import View

READ_WITHIN = timedelta(minutes=2)
"""By when a kubelet has handed a changed ConfigMap to a pod that runs already; pods that start later get it at once."""
LONGEST = 63
"""Letters of a label's value."""
DIGEST = 8


class _File(msgspec.Struct):
    layouts: dict[str, msgspec.Raw] = msgspec.field(name="mig-configs", default_factory=dict)


def read_layouts(config_map: ConfigMap) -> Layouts:
    """What is rendered and what was written into CONFIG_MAP; a file that can't be read is empty, and written anew."""
    data = config_map.data
    try:
        at = datetime.fromisoformat(config_map.annotations.get(keys.LAYOUTS_AT, ""))
    except ValueError:
        at = None
    try:
        digests = msgspec.json.decode(data.get(keys.LAYOUTS_DIGESTS) or "{}", type=dict[str, str])
    except msgspec.MsgspecError:
        digests = {}
    return Layouts(
        _contents(f'{{"mig-configs": {data.get(keys.LAYOUTS_WANTED) or "{}"}}}'),
        _contents(data.get(keys.LAYOUTS_FILE) or "{}"),
        at if at and at.tzinfo else None,
        config_map.metadata.resourceVersion,
        digests,
    )


def _contents(file: str) -> dict[str, str]:
    """The layouts of FILE, by name; none of one that can't be read. What nobody has looked into yet may be at fault,
    too: a number beyond all bounds, or a list in a thousand others."""
    try:
        found = msgspec.json.decode(file, type=_File).layouts
        encode = msgspec.json.Encoder(order="sorted").encode
        return {name: encode(msgspec.json.decode(raw)).decode() for name, raw in found.items()}
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}


def text(file: Mapping[str, str]) -> str:
    """FILE as the manager reads it: JSON, which is YAML, one layout a line."""
    entries = ",\n".join(f"{msgspec.json.encode(name).decode()}: {file[name]}" for name in sorted(file))
    return f'{{"version": "v1", "mig-configs": {{\n{entries}\n}}}}\n'


def named(known: Snapshot) -> Snapshot:
    """KNOWN with what the file is to hold, and with policies that name their layouts as the file does."""
    layouts = known.layouts
    if layouts is None:
        return known
    asked, all_read = _asked(known.nodes)
    names = {name: _name(known, layouts, name, asked, all_read=all_read) for name in layouts.wanted}
    own = {_own(layouts, name): content for name, content in layouts.wanted.items()}
    # Whoever replaces the object takes the file along: a name with a digest says which content it had.
    back = {name: content for name, content in own.items() if name in asked}
    file = {names[name]: content for name, content in layouts.wanted.items()}
    kept = {name: content for name, content in layouts.written.items() if not all_read or name in asked}
    policies = [_renamed(policy, names) for policy in known.policies]
    torn = frozenset(policy.uid for policy in known.policies if _torn(layouts, policy))
    return replace(known, policies=policies, layouts=replace(layouts, torn=torn, file={**kept, **back, **file}))


def _torn(layouts: Layouts, policy: NodePolicy) -> bool:
    """Whether POLICY and LAYOUTS are of two renders: a node would be cut by the one, and judged by the other."""
    mig = policy.spec.mig
    return mig is not None and layouts.digests.get(mig.config, mig.digest) != mig.digest


def _asked(nodes: Collection[Node]) -> tuple[Counter[str], bool]:
    """The names that nodes ask for, or may before long, with how many do; and whether that can be told of all."""
    asked: Counter[str] = Counter()
    all_read = True
    for node in nodes:
        try:
            operation = read(Operation, node.metadata.annotations.get(keys.OPERATION))
        except Unreadable:
            operation, all_read = None, False
        asked.update({node.metadata.labels.get(keys.MIG_CONFIG, ""), operation.target.mig if operation else ""} - {""})
    return asked, all_read


def _own(layouts: Layouts, name: str) -> str:
    """The name that no other content of the layout NAME has, nor any other layout that is rendered."""
    digest = hashlib.sha256(layouts.wanted[name].encode()).hexdigest()
    digits = DIGEST
    while (own := f"{name[: LONGEST - digits - 1]}-{digest[:digits]}") in layouts.wanted and digits < len(digest) // 2:
        digits *= 2
    return own


def _name(known: Snapshot, layouts: Layouts, name: str, asked: Counter[str], *, all_read: bool) -> str:
    """The name under which the file has the wanted content of NAME."""
    content = layouts.wanted[name]
    own = _own(layouts, name)
    held = layouts.written.get(name) if not all_read or name in asked else None
    lost = held is None and asked[own] > asked[name]  # of more nodes than one that asks for what it likes
    if held != content and (layouts.written.get(own) == content or lost):
        return own
    free = held is None and not _other_content(known, name)
    return name if free or held == content else own


def _other_content(known: Snapshot, name: str) -> bool:
    """Whether a node has NAME as its label, and was cut by another content of it: of a file that is gone. Where the map
    comes for the first time in the middle of a roll-out of that layout, nodes that have the new content already are cut
    once more, by its name with a digest: NAME can't stay with them. Of the old content there is no copy to write under
    it, and nodes that have that would be cut by the new one whenever their manager starts."""
    migs = (policy.spec.mig for policy in known.policies)
    digests = {mig.digest for mig in migs if mig and mig.config == name}
    return any(_proved_otherwise(node, name, digests) for node in known.nodes) if digests - {""} else False


def _proved_otherwise(node: Node, name: str, digests: Collection[str]) -> bool:
    if node.metadata.labels.get(keys.MIG_CONFIG) != name:
        return False
    try:
        memory = read(Memory, node.metadata.annotations.get(keys.MEMORY))
    except Unreadable:
        return True
    return memory is not None and memory.mig == name and memory.mig_digest not in {"", *digests}


def _renamed(policy: NodePolicy, names: Mapping[str, str]) -> NodePolicy:
    spec, mig = policy.spec, policy.spec.mig
    config = names.get(mig.config, mig.config) if mig else ""
    default = names.get(spec.migDefault, spec.migDefault)
    if default == spec.migDefault and (mig is None or config == mig.config):
        return policy
    made = msgspec.structs.replace(mig, config=config) if mig else None
    return msgspec.structs.replace(policy, spec=msgspec.structs.replace(spec, mig=made, migDefault=default))


def due_write(known: Snapshot) -> WriteLayouts | None:
    """The write that brings the file to what it is to hold; None where it does."""
    layouts = known.layouts
    if layouts is None:
        return None
    # A time to come was noted by a clock that was wrong: nothing would begin before it.
    new = layouts.at is not None and layouts.at > known.now + READ_WITHIN
    if layouts.file == layouts.written and not new:
        return None
    new = new or any(layouts.written.get(name) != content for name, content in layouts.file.items())
    at = known.now.astimezone(UTC).isoformat() if new else ""
    return WriteLayouts(known.namespace, layouts.version, text(layouts.file), at)


def unread(known: Snapshot, view: View, name: str) -> str:
    """Why the MIG manager of the node can't know the layout NAME yet; "" where it does, or nobody can tell."""
    layouts, managers = known.layouts, known.mig_managers.get(view.name, ())
    mounted = {volume.configMap.name for pod in managers for volume in pod.spec.volumes if volume.configMap}
    if layouts and name and keys.LAYOUTS in mounted and view.policy and view.policy.uid in layouts.torn:
        return f"NodePolicy {view.policy.name} and ConfigMap {keys.LAYOUTS} are of two renders: one is not synced yet"
    if layouts is None or name not in layouts.file:
        if not name or keys.LAYOUTS not in mounted:
            return ""
        return f"its MIG manager reads ConfigMap {keys.LAYOUTS}, which has no layout {name}: it is not synced, or gone"
    if layouts.written.get(name) != layouts.file[name]:
        refused = known.refused.get(keys.LAYOUTS, "")
        what = f"the layout {name} is being written for the MIG managers (ConfigMap {keys.LAYOUTS})"
        return f"{what}: {refused}" if refused else what
    at = layouts.at
    if at is None or known.now >= at + READ_WITHIN:
        return ""
    made = (pod.metadata.creationTimestamp for pod in managers)
    if all(since is not None and since > at for since in made):
        return ""
    return f"its kubelet hands the layout {name} to the MIG manager by {at + READ_WITHIN:%H:%M:%SZ}"
