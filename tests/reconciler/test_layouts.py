"""The file of the MIG managers: a name keeps its content as long as a node may ask for it (reconciler.md M2, M4, M12).

What is expected comes from what the manager does: it cuts by the label of its node, at each change and at each start.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from gpustack.api import keys
from gpustack.api.objects import ConfigMap, Metadata
from gpustack.reconciler.core import engine, layouts
from gpustack.reconciler.core.actions import WriteLayouts
from gpustack.reconciler.core.snapshot import Layouts, Snapshot
from gpustack.reconciler.core.view import views
from gpustack.reconciler.shell.cluster import CONFIG_MAPS, NODES, POLICIES
from tests.reconciler.memory import drive
from tests.reconciler.model import moment as m
from tests.reconciler.model.history import History
from tests.reconciler.world.machine import reboot
from tests.reconciler.world.stack import MIG_MANAGER, NAMESPACE

POOL = "gpus"


def cut(history: History) -> dict[str, tuple[str, str]]:
    """What each machine's GPUs are cut into."""
    return {name: machine.geometry for name, machine in history.world.machines.items()}


def named(history: History) -> set[str]:
    """The layouts that the nodes' labels name."""
    return {history.world.labels(name)[keys.MIG_CONFIG] for name in history.world.machines}


def file(history: History) -> dict[str, Any]:
    """The layouts that a manager reads."""
    data = history.world.server.get(CONFIG_MAPS, keys.LAYOUTS, NAMESPACE)["data"]
    found: dict[str, Any] = json.loads(data[keys.LAYOUTS_FILE])["mig-configs"]
    return found


def halves(window: bool = False) -> History:
    """Two nodes that are cut into halves, by a first content of that name; a WINDOW keeps them from what comes next."""
    history = History(2, kept=True)
    history.mig(1)
    history.settle()
    assert cut(history) == {"n0": ("halves", "1"), "n1": ("halves", "1")}
    history.want.window = window
    history.content(1)
    return history


@pytest.mark.parametrize("what", ["pod", "reboot"])
def test_no_start_of_a_manager_cuts_what_was_not_commanded(what: str) -> None:
    """Another content waits for its window; a manager that starts meanwhile cuts as before, after a reboot too."""
    history = halves(window=True)
    history.workload(0)
    history.go(0)
    for name, machine in history.world.machines.items():
        if what == "pod":
            history.world.delete_operand(MIG_MANAGER, name)
        else:
            reboot(history.world, machine)
    for _ in range(8):
        history.go(0)
    assert cut(history) == {"n0": ("halves", "1"), "n1": ("halves", "1")}
    assert named(history) == {"halves"}
    assert {history.world.labels(name)[keys.MIG_STATE] for name in history.world.machines} == {"success"}


def test_nodes_get_another_content_by_another_name() -> None:
    """One after another; the old content goes once no label names it, and the new one keeps its name."""
    history = halves()
    history.settle()
    assert cut(history) == {"n0": ("halves", "2"), "n1": ("halves", "2")}
    (name,) = named(history)
    assert name.startswith("halves-")
    assert set(file(history)) == {"all-disabled", "small", name}
    before = history.world.server.version
    for _ in range(3):
        history.once()
        history.world.tick(60)
    assert named(history) == {name}
    assert not [each for each in history.world.server.writes if each.kind == "configmaps" and each.after is None]
    assert history.world.server.get(NODES, "n0")["metadata"]["resourceVersion"] <= str(before)


def test_a_way_back_is_under_the_first_name() -> None:
    """A commit that is taken back while nodes still have the old content commands nothing anew on those."""
    history = halves(window=True)
    history.go(0)
    assert len(file(history)) == 4
    history.content(0)
    history.go(0)
    assert set(file(history)) == {"all-disabled", "small", "halves"}
    assert cut(history) == {"n0": ("halves", "1"), "n1": ("halves", "1")}


def test_a_file_that_is_gone_takes_no_content_along() -> None:
    """Whatever replaces the object empties it: where nodes were cut by another content of a name, the name isn't
    written again, so a manager that starts finds no such layout and cuts nothing."""
    history = halves(window=True)
    history.go(0)
    history.world.server.edit(CONFIG_MAPS, keys.LAYOUTS, {"data": {keys.LAYOUTS_FILE: None}}, NAMESPACE)
    history.go(0)
    assert "halves" not in file(history)
    for name in history.world.machines:
        history.world.delete_operand(MIG_MANAGER, name)
    for _ in range(4):
        history.go(0)
    assert cut(history) == {"n0": ("halves", "1"), "n1": ("halves", "1")}
    history.settle()
    assert cut(history) == {"n0": ("halves", "2"), "n1": ("halves", "2")}


def test_a_layout_is_commanded_once_managers_can_read_it() -> None:
    """Kubelets refresh a mounted file late: a command before that fails, and uses up a restart (M5, M14)."""
    history = halves()
    history.once()
    assert keys.LAYOUTS_AT in history.world.server.get(CONFIG_MAPS, keys.LAYOUTS, NAMESPACE)["metadata"]["annotations"]
    history.once()
    waits = [wait for wait in history.replica.decided.waits if wait.kind == "layout"]
    assert {wait.node for wait in waits} == {"n0", "n1"}
    assert "its kubelet hands the layout halves-" in waits[0].message
    history.settle()
    restarts = [each for each in history.world.server.writes if each.kind == "pods" and MIG_MANAGER in each.name]
    assert restarts == []


def test_without_an_answer_nothing_begins() -> None:
    """Where the file can't be written, nodes say so and keep what they have."""
    history = halves()
    known = seen_now(history)
    drafted = layouts.named(replace(known, layouts=replace(seen(known), written={})))
    policy = drafted.policies[0]
    assert policy.spec.mig is not None
    view = views(drafted)[0]
    assert "is being written" in layouts.unread(drafted, view, policy.spec.mig.config)


def seen_now(history: History) -> Snapshot:
    """What a pass would know."""
    sources = history.replica.runner.sources
    drive(sources.refresh())
    return sources.base()


def seen(known: Snapshot) -> Layouts:
    """The file of KNOWN."""
    assert known.layouts is not None
    return known.layouts


def test_a_plan_sees_the_file_as_the_next_pass_leaves_it() -> None:
    """What is planned before a merge doesn't wait for a file that nobody has written yet."""
    history = halves()
    known = seen_now(history)
    assert any(isinstance(each, WriteLayouts) for each in engine.decide(known).actions)
    later = engine.foreseen(known)
    assert not any(isinstance(each, WriteLayouts) for each in engine.decide(later).actions)
    assert not [wait for wait in engine.decide(later).waits if wait.kind == "layout"]


@pytest.mark.parametrize("name", ["x" * 63, "halves"])
def test_names_are_values_of_labels(name: str) -> None:
    """63 letters at most, with the digest."""
    history = halves()
    known = seen_now(history)
    found = Layouts({name: '["b"]'}, {name: '["a"]'})
    nodes = [replace_label(node, name) for node in known.nodes]
    kept = seen(layouts.named(replace(known, layouts=found, nodes=nodes))).file
    other = next(each for each in kept if each != name)
    assert len(other) <= 63
    assert kept == {name: '["a"]', other: '["b"]'}


def replace_label(node: Any, name: str) -> Any:
    """NODE with the layout NAME."""
    labels = {**node.metadata.labels, keys.MIG_CONFIG: name}
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=labels))


NUMBER = '{"mig-configs": {"a": 1e999}}'
DEEP = f'{{"mig-configs": {{"a": {"[" * 5000}{"]" * 5000}}}}}'


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mig-configs": []}', "version: v1", NUMBER, DEEP])
def test_a_file_that_cannot_be_read_is_written_anew(text: str) -> None:
    """Somebody's edit by hand is no reason to stop."""
    data = {keys.LAYOUTS_WANTED: '{"a": [{"devices": "all", "mig-enabled": false}]}', keys.LAYOUTS_FILE: text}
    found = layouts.read_layouts(ConfigMap(metadata=Metadata(name=keys.LAYOUTS), data=data))
    assert found.written == {}
    assert found.wanted == {"a": '[{"devices":"all","mig-enabled":false}]'}


def test_the_file_is_what_the_manager_reads() -> None:
    """A document with version and mig-configs (M19), one layout a line; what is read of it is what was written."""
    text = layouts.text({"b": '[{"devices":"all"}]', "a": "[]"})
    assert json.loads(text) == {"version": "v1", "mig-configs": {"a": [], "b": [{"devices": "all"}]}}
    assert text.index('"a"') < text.index('"b"')
    read = layouts.read_layouts(ConfigMap(metadata=Metadata(name=keys.LAYOUTS), data={keys.LAYOUTS_FILE: text}))
    assert read.written == {"b": '[{"devices":"all"}]', "a": "[]"}


def test_a_clock_that_goes_back_does_not_hold_up_for_long() -> None:
    """The note of when a content was written is a time like any other: an unreadable one counts as long ago, and one
    that is years ahead is written anew."""
    metadata = Metadata(name=keys.LAYOUTS, annotations={keys.LAYOUTS_AT: "yesterday"})
    assert layouts.read_layouts(ConfigMap(metadata=metadata)).at is None
    history = halves()
    history.once()
    ahead = {"metadata": {"annotations": {keys.LAYOUTS_AT: "2099-01-01T00:00:00+00:00"}}}
    history.world.server.edit(CONFIG_MAPS, keys.LAYOUTS, ahead, NAMESPACE)
    history.settle()
    assert cut(history) == {"n0": ("halves", "2"), "n1": ("halves", "2")}


def test_whoever_replaces_the_object_recuts_nobody() -> None:
    """An engine that deletes and makes it anew takes the file along. Nodes that were cut under a name with a digest
    keep it, and get its content back, whatever one of them says of itself and whichever record can't be read."""
    history = halves()
    history.settle()
    (name,) = named(history)
    for _ in range(2):
        history.world.server.edit(CONFIG_MAPS, keys.LAYOUTS, {"data": {keys.LAYOUTS_FILE: None}}, NAMESPACE)
        for _ in range(30):
            history.once()
            assert not any(operates(history, node) for node in ("n0", "n1"))
            history.world.tick(30)
        assert set(file(history)) == {"all-disabled", "small", name}
        history.world.annotate("n1", {m.OP: "{"})
    assert named(history) == {name}


def operates(history: History, node: str) -> bool:
    """Whether an operation is open on NODE that can be read."""
    return m.annotations_of(history.world.node(node)).get(m.OP, "{") != "{"


def waits_for_ten_minutes(history: History) -> str:
    """Nothing begins on either node in ten minutes; why not."""
    for _ in range(20):
        history.once()
        assert not any(operates(history, node) for node in ("n0", "n1"))
        history.world.tick(30)
    waits = [wait for wait in history.replica.decided.waits if wait.kind == "layout"]
    assert {wait.node for wait in waits} == {"n0", "n1"}
    return waits[0].message


@pytest.mark.parametrize("gone", ["object", "wanted"])
def test_no_layout_is_commanded_that_a_manager_does_not_know(gone: str) -> None:
    """Where the object is gone, or doesn't have the layout yet, nothing begins on a node whose manager reads it: the
    command would fail, after the node was emptied."""
    history = halves()
    history.settle()
    if gone == "object":
        history.world.server.remove(CONFIG_MAPS, keys.LAYOUTS, NAMESPACE)
    else:
        history.world.server.edit(POLICIES, POOL, {"spec": {"mig": {"config": "quarters"}}})
    assert "it is not synced, or gone" in waits_for_ten_minutes(history)


@pytest.mark.parametrize("first", ["ConfigMap", "NodePolicy"])
def test_layouts_and_policy_come_one_after_the_other(first: str) -> None:
    """Nothing begins while the two are of two renders, however long that lasts: a node would be emptied twice, and be
    judged by the number of GPUs of another content."""
    history = halves()
    history.settle()
    history.want.content = history.world.content = "3"
    if first == "ConfigMap":
        history.world.keep_layouts()
    else:
        history.world.set_policy(POOL, **history.want.options())
    why = waits_for_ten_minutes(history)
    assert "NodePolicy gpus and ConfigMap gpustack-mig-layouts are of two renders" in why
    history.sync(0)
    history.settle()
    assert cut(history) == {"n0": ("halves", "3"), "n1": ("halves", "3")}


def test_a_layout_that_is_called_like_another_ones_digest() -> None:
    """Whoever writes layouts may choose such a name: the digest has more digits then, and each keeps its content."""
    history = halves()
    known = seen_now(history)
    plain = seen(layouts.named(replace(known, layouts=Layouts({"halves": '["new"]'}, {"halves": '["old"]'})))).file
    (taken,) = plain.keys() - {"halves"}
    wanted = {"halves": '["new"]', taken: '["other"]'}
    file = seen(layouts.named(replace(known, layouts=Layouts(wanted, {"halves": '["old"]'})))).file
    assert file[taken] == '["other"]'
    (longer,) = file.keys() - {"halves", taken}
    assert longer.startswith(taken)
    assert file[longer] == '["new"]'
