"""What pods are made of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.components.parts.pod import Container, Env, Pod, Volume, exec_probe, references, sparse

NAMES = st.sampled_from(["A", "B", "C", "D"])
PAIRS = st.lists(st.tuples(NAMES, st.text(max_size=3))).map(tuple)


def values(env: Env) -> dict[str, Any]:
    """The variables as (name, value) in order."""
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in env.body()}


@given(PAIRS, PAIRS, PAIRS)
def test_policy_env_wins(
    first: tuple[tuple[str, str], ...], policy: tuple[tuple[str, str], ...], later: tuple[tuple[str, str], ...]
) -> None:
    """The policy's env wins over what the component sets before and after (operator.md 5.2); among equals the later
    call wins; each name stands once."""
    env = Env().update(first).policy(policy).update(later)
    assert values(env) == {**dict(first), **dict(later), **dict(policy)}
    assert len(env.body()) == len({entry["name"] for entry in env.body()})
    for name in "ABCD":
        assert env.get(name) == values(env).get(name)


def test_env_values() -> None:
    """Booleans and numbers become the text that programs read; empty text stays; a field of the pod is taken from
    it."""
    env = Env({"A": "x"}).set("B", True).set("C", False).set("D", 7).set("E", "").field("F", "spec.nodeName")
    assert values(env) == {
        "A": "x",
        "B": "true",
        "C": "false",
        "D": "7",
        "E": "",
        "F": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
    }
    assert (env.get("F"), env.get("G")) == (None, None)
    assert values(env.policy((("F", "mine"),)))["F"] == "mine"


def test_sparse() -> None:
    """What is None or empty is left out; False and 0 say something."""
    assert sparse(a=None, b="", c=[], d={}, e=False, f=0, g=[0], h="x") == {"e": False, "f": 0, "g": [0], "h": "x"}


def test_volumes() -> None:
    """Each kind of volume, with what is given and no more."""
    assert Volume.host("v", "/x").body() == {"name": "v", "hostPath": {"path": "/x"}}
    assert Volume.host("v", "/x", "Directory").body()["hostPath"] == {"path": "/x", "type": "Directory"}
    assert Volume.empty_dir("v").body() == {"name": "v", "emptyDir": {}}
    assert Volume.config_map("v", "c").body() == {"name": "v", "configMap": {"name": "c"}}
    assert Volume.config_map("v", "c", items={"k": "p"}, mode=0o700).body()["configMap"] == {
        "name": "c",
        "items": [{"key": "k", "path": "p"}],
        "defaultMode": 448,
    }
    assert Volume.secret("v", "s", items={"k": "p"}).body() == {
        "name": "v",
        "secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]},
    }


def test_container() -> None:
    """A container has what it was given, without None and without empty fields."""
    bare = Container("c", "i").body()
    assert bare == {"name": "c", "image": "i"}
    full = Container("c", "i", "Always", command=["x"], args=["y"], env=Env({"A": "b"}), pre_stop=["stop"])
    full.ports, full.env_from = [{"containerPort": 1}], [{"secretRef": {"name": "s"}}]
    full.resources, full.security = {"limits": {"cpu": "1"}}, {"privileged": True}
    full.startup, full.liveness = exec_probe(["a"]), {"tcpSocket": {"port": 1}}
    full.readiness = {"httpGet": {"path": "/h", "port": 2}, "periodSeconds": 3}
    assert full.body() == {
        "name": "c",
        "image": "i",
        "imagePullPolicy": "Always",
        "command": ["x"],
        "args": ["y"],
        "env": [{"name": "A", "value": "b"}],
        "envFrom": [{"secretRef": {"name": "s"}}],
        "ports": [{"containerPort": 1}],
        "resources": {"limits": {"cpu": "1"}},
        "securityContext": {"privileged": True},
        "startupProbe": {"exec": {"command": ["a"]}},
        "livenessProbe": {"tcpSocket": {"port": 1}},
        "readinessProbe": {"httpGet": {"path": "/h", "port": 2}, "periodSeconds": 3},
        "lifecycle": {"preStop": {"exec": {"command": ["stop"]}}},
    }


def test_mounts() -> None:
    """A mount says only what differs from the default, in the order in which it was made."""
    container = Container("c", "i").mount(Volume.empty_dir("a"), "/a")
    container.mount(Volume.host("b", "/b"), "/b", read_only=True, propagation="HostToContainer", sub_path="s")
    assert container.body()["volumeMounts"] == [
        {"name": "a", "mountPath": "/a"},
        {"name": "b", "mountPath": "/b", "readOnly": True, "mountPropagation": "HostToContainer", "subPath": "s"},
    ]


def test_pod_collects_volumes() -> None:
    """Each volume once: the declared ones in their order, mounted or not, then what containers mount beside."""
    shared = Volume.host("b", "/b")
    main = Container("m", "i").mount(shared, "/b").mount(Volume.host("c", "/c"), "/c")
    init = Container("n", "i").mount(shared, "/x").mount(Volume.host("a", "/a"), "/a")
    pod = Pod("account", {}, [main], [init], declared=[Volume.host("z", "/z"), Volume.host("c", "/c")])
    body = pod.body()
    assert [volume["name"] for volume in body["volumes"]] == ["z", "c", "b", "a"]
    assert [container["name"] for container in body["initContainers"]] == ["n"]


def test_one_name_for_two_volumes() -> None:
    """Two sources under one name are a defect of a component, found where it is made."""
    main = Container("m", "i").mount(Volume.host("a", "/a"), "/a").mount(Volume.host("a", "/b"), "/b")
    with pytest.raises(ValueError, match="volume a has two sources"):
        Pod("account", {}, [main]).body()


def test_pod_fields() -> None:
    """Namespaces of the host are said where they are used; a host network brings its DNS policy along; PID sharing of
    the containers is moot where the pod has the host's (operator.md 5.1, 7.4)."""
    bare = Pod("account", {"a": "b"}, [Container("m", "i")]).body()
    assert bare == {
        "serviceAccountName": "account",
        "nodeSelector": {"a": "b"},
        "containers": [{"name": "m", "image": "i"}],
    }
    full = Pod("account", {}, [Container("m", "i")], host_pid=True, host_ipc=True, host_network=True)
    full.share_process_namespace, full.pull_secrets, full.grace_period = True, ["s", "t", "s"], 0
    full.automount_token = False
    body = full.body()
    assert {key: body[key] for key in ("hostPID", "hostIPC", "hostNetwork", "dnsPolicy")} == {
        "hostPID": True,
        "hostIPC": True,
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
    }
    assert "shareProcessNamespace" not in body
    assert body["imagePullSecrets"] == [{"name": "s"}, {"name": "t"}]
    assert (body["terminationGracePeriodSeconds"], body["automountServiceAccountToken"]) == (0, False)
    full.host_pid = False
    assert full.body()["shareProcessNamespace"] is True


def test_references() -> None:
    """The first of equal names stays, where it was."""
    assert references(["b", "a", "b", "c", "a"]) == [{"name": "b"}, {"name": "a"}, {"name": "c"}]


def test_variables_keep_the_operators_order() -> None:
    """Template, then what host paths add, then what is appended, then the policy's; an old one keeps its place."""
    env = (
        Env({"A": "1"}).field("B", "spec.nodeName").appended().set("D", 1).set("A", 2).policy((("E", "1"), ("D", "2")))
    )
    env.of_host("C", "/sysroot")
    assert [entry["name"] for entry in env.body()] == ["A", "B", "C", "D", "E"]
    assert [entry["name"] for entry in env.of_host("A", "/").body()] == ["A", "B", "C", "D", "E"]
