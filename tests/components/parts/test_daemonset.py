"""The rules for every DaemonSet (operator.md 5.1, 5.4, 5.5), as they come from the policy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpustack.cluster.resolve import resolve
from gpustack.components.parts.common_inputs import Common, image
from gpustack.components.parts.daemonset import daemonset, driver_install_dir, host_dev_char, host_root
from gpustack.components.parts.pod import Container, Env, Pod, Volume
from gpustack.model import Body, FindingsError
from gpustack.policy.language.images import SECTIONS, mirrored
from tests.components.common import common, spec

DIGEST = f"sha256:{'a' * 64}"


def pod(*volumes: Volume, env: Env | None = None) -> Pod:
    """A pod with a main and an init container that mount VOLUMES."""
    main, init = Container("main", "i", env=env or Env()), Container("init", "i")
    for volume in volumes:
        main.mount(volume, f"/{volume.name}")
    return Pod("account", {"own": "selector"}, [main], [init])


def made(changes: dict[str, Any] | None = None, inside: Pod | None = None, **how: Any) -> Body:
    """A DaemonSet called ds, with CHANGES to what steers all of them."""
    return daemonset(common(**(changes or {})), "ds", inside or pod(), **how)


def from_policy(**sections: Any) -> Body:
    """A DaemonSet as a policy's sections steer it."""
    return daemonset(Common.from_cluster(resolve(spec(**sections))), "ds", pod(), gpu_container="main")


def template(body: Body) -> Body:
    """The pod's spec."""
    found: Body = body["spec"]["template"]["spec"]
    return found


def test_labels_and_selector() -> None:
    """app=name on DaemonSet, selector and pod; more labels go where they are said to go."""
    body = made(labels={"l": "1"}, pod_labels={"p": "2"}, selector={"p": "2"})
    assert body["metadata"]["labels"] == {"app": "ds", "l": "1"}
    assert body["spec"]["selector"] == {"matchLabels": {"app": "ds", "p": "2"}}
    assert body["spec"]["template"]["metadata"]["labels"] == {"app": "ds", "p": "2"}
    assert made(app="other")["spec"]["selector"] == {"matchLabels": {"app": "other"}}


def test_labels_of_the_policy() -> None:
    """`daemonsets.labels`: on the pods all but app and part-of, on the DaemonSet all of them, app too; selectors
    stay as they are (5.1, case 27)."""
    labels = {"app": "mine", "app.kubernetes.io/part-of": "mine", "team": "ml"}
    body = made(
        {"labels": labels}, pod_labels={"app.kubernetes.io/part-of": "x"}, selector={"app.kubernetes.io/part-of": "x"}
    )
    assert body["metadata"]["labels"] == labels
    assert body["spec"]["template"]["metadata"]["labels"] == {
        "app": "ds",
        "app.kubernetes.io/part-of": "x",
        "team": "ml",
    }
    assert body["spec"]["selector"] == {"matchLabels": {"app": "ds", "app.kubernetes.io/part-of": "x"}}
    assert from_policy(daemonsets={"labels": labels})["metadata"]["labels"] == labels


def test_selector_matches_the_pods() -> None:
    """Whatever the labels, the API server finds every label of the selector on the pods."""
    part = {"app.kubernetes.io/part-of": "a"}
    for labels in ({}, {"app": "x", "app.kubernetes.io/part-of": "z"}):
        body = made({"labels": labels}, pod_labels=part, selector=part)
        wanted = body["spec"]["selector"]["matchLabels"]
        assert wanted == {"app": "ds", **part}
        assert wanted.items() <= body["spec"]["template"]["metadata"]["labels"].items()


def test_annotations() -> None:
    """`daemonsets.annotations` go to DaemonSet and pod, beside the component's own (5.1)."""
    body = made({"annotations": {"a": "b"}}, annotations={"c": "d"}, pod_annotations={"e": "f"})
    assert body["metadata"]["annotations"] == {"c": "d", "a": "b"}
    assert body["spec"]["template"]["metadata"]["annotations"] == {"e": "f", "a": "b"}
    assert "annotations" not in made()["metadata"]


@pytest.mark.parametrize(
    ("policy", "rolling", "driver"),
    [
        ({}, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}, "OnDelete"),
        (
            {"rollingUpdate": {"maxUnavailable": "3"}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 3}},
            "OnDelete",
        ),
        (
            {"rollingUpdate": {"maxUnavailable": "25%"}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
            "OnDelete",
        ),
        ({"updateStrategy": "OnDelete"}, {"type": "OnDelete"}, "OnDelete"),
    ],
)
def test_update_strategy(policy: dict[str, Any], rolling: Body, driver: str) -> None:
    """RollingUpdate with the policy's number (an integer) or percentage (text), OnDelete for all where it says so, and
    for the driver always (5.1, cases 27, 28)."""
    steering = Common.from_cluster(resolve(spec(daemonsets=policy)))
    assert daemonset(steering, "ds", pod())["spec"]["updateStrategy"] == rolling
    assert daemonset(steering, "ds", pod(), update="on-delete")["spec"]["updateStrategy"] == {"type": driver}


def test_priority_and_tolerations() -> None:
    """Defaults, and the policy's in place of them: a list of tolerations replaces the default (5.1)."""
    body = template(from_policy())
    assert body["priorityClassName"] == "system-node-critical"
    assert body["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    other = [{"operator": "Exists"}]
    body = template(from_policy(daemonsets={"priorityClassName": "mine", "tolerations": other}))
    assert (body["priorityClassName"], body["tolerations"]) == ("mine", other)


def test_pod_security_context() -> None:
    """`podSecurityContext` is the pods' of all DaemonSets (5.1, case 60); nothing is said where it isn't given."""
    assert "securityContext" not in template(from_policy())
    body = template(from_policy(daemonsets={"podSecurityContext": {"runAsUser": 0, "seLinuxOptions": {"level": "s0"}}}))
    assert body["securityContext"] == {"runAsUser": 0, "seLinuxOptions": {"level": "s0"}}


def test_deploy_label() -> None:
    """Pods run where the node label of their component is true, beside the selector of their own."""
    assert template(made(deploy="x"))["nodeSelector"] == {"nvidia.com/gpu.deploy.x": "true", "own": "selector"}
    assert template(made())["nodeSelector"] == {"own": "selector"}


@pytest.mark.parametrize(
    ("cdi", "runtime", "nri", "expected"),
    [
        (True, "containerd", False, "nvidia"),
        (True, "crio", False, "nvidia"),
        (False, "containerd", False, "nvidia"),
        (False, "docker", False, "nvidia"),
        (False, "crio", False, None),
        (True, "containerd", True, None),
    ],
)
def test_runtime_class(cdi: bool, runtime: str, nri: bool, expected: str | None) -> None:
    """Pods that use a GPU get the RuntimeClass but under CRI-O without CDI and with the NRI plugin, which asks by an
    annotation instead (5.5); other pods never do."""
    steering = {"cdi": cdi, "runtime": runtime, "nri": nri}
    body = made(steering, gpu_container="main")
    assert template(body).get("runtimeClassName") == expected
    annotation = {"nvidia.cdi.k8s.io/container.main": "management.nvidia.com/gpu=all"} if nri else {}
    assert body["spec"]["template"]["metadata"].get("annotations", {}) == annotation
    other = made(steering)
    assert "runtimeClassName" not in template(other)
    assert "annotations" not in other["spec"]["template"]["metadata"]
    assert template(made({"runtime_class": "mine"}, gpu_container="main"))["runtimeClassName"] == "mine"


def test_config_digest_rolls_pods() -> None:
    """What a pod's configuration holds is an annotation of its template, so that a change of it restarts the pods."""
    inside = pod()
    inside.config_digest = "abc"
    body = made(inside=inside, gpu_container="main")
    assert body["spec"]["template"]["metadata"]["annotations"] == {"gpustack.dev/config": "abc"}


def env_of(body: Body, name: str) -> dict[str, str]:
    """The environment of container NAME."""
    spec = template(body)
    (found,) = (each for each in [*spec["initContainers"], *spec["containers"]] if each["name"] == name)
    return {entry["name"]: entry["value"] for entry in found.get("env", [])}


def test_root_fs() -> None:
    """Where the node's root is elsewhere, the volume host-root leads there and every container of such a pod knows
    (5.4); pods without that volume don't."""
    steering = common(root_fs="/host/root/")
    body = daemonset(steering, "ds", pod(host_root(steering)))
    assert env_of(body, "main") == env_of(body, "init") == {"HOST_ROOT": "/host/root/"}
    assert template(body)["volumes"] == [{"name": "host-root", "hostPath": {"path": "/host/root/"}}]
    other = daemonset(steering, "ds", pod(Volume.host("x", "/")))
    assert env_of(other, "main") == {}
    plain = daemonset(common(), "ds", pod(host_root(common())))
    assert (env_of(plain, "main"), template(plain)["volumes"][0]["hostPath"]["path"]) == ({}, "/")


def test_host_paths() -> None:
    """/dev/char is below the node's root; the driver's folder is the policy's (5.4)."""
    assert host_dev_char(common()).source == {"hostPath": {"path": "/dev/char"}}
    assert host_dev_char(common(root_fs="/r")).source == {"hostPath": {"path": "/r/dev/char"}}
    assert driver_install_dir(common(driver_dir="/d")).source == {
        "hostPath": {"path": "/d", "type": "DirectoryOrCreate"}
    }
    found = Common.from_cluster(
        resolve(spec(hostPaths={"rootFS": "/r", "driverInstallDir": "/d"}, toolkit={"installDir": "/t"}))
    )
    assert (found.root_fs, found.driver_dir, found.install_dir) == ("/r", "/d", "/t")
    absent = Common.from_cluster(
        resolve(spec(hostPaths={"rootFS": "", "driverInstallDir": ""}, toolkit={"installDir": ""}))
    )
    assert (absent.root_fs, absent.driver_dir, absent.install_dir) == ("/", "/run/nvidia/driver", "/usr/local/nvidia")


@pytest.mark.parametrize(
    ("cluster", "pools", "expected"),
    [
        ("", [], "containerd"),
        ("containerd://1.7.27", [], "containerd"),
        ("cri-o://1.31", [], "crio"),
        ("docker", [], "docker"),
        ("cri-o", ["docker", "cri-o://1.31"], "crio"),
        ("docker", ["cri-o", "containerd"], "containerd"),
        ("containerd://2.1.4", ["", "cri-o://1.35.2"], "containerd"),
        ("", ["cri-o", ""], "containerd"),
        ("cri-o", ["", "docker"], "docker"),
    ],
)
def test_runtime(cluster: str, pools: list[str], expected: str) -> None:
    """A pool's runtime counts before the cluster's, which the other pools have; one containerd node is enough for
    containerd, otherwise the last counts, and none is containerd (operator.md 3, case 46)."""
    nodes = [
        {"name": f"p{number}", "os": "ubuntu22.04"} | ({"containerRuntime": name} if name else {})
        for number, name in enumerate(pools)
    ]
    wanted = {"containerRuntime": cluster} if cluster else {}
    assert Common.from_cluster(resolve(spec(cluster=wanted, nodePools=nodes))).runtime == expected


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"repository": "r", "image": "i", "version": "v1"}, "r/i:v1"),
        ({"repository": "r", "image": "i", "version": DIGEST}, f"r/i@{DIGEST}"),
        ({"repository": "", "version": "", "image": "r.example/i:v2"}, "r.example/i:v2"),
        ({"repository": "", "version": "", "image": f"r.example/i@{DIGEST}"}, f"r.example/i@{DIGEST}"),
    ],
)
def test_images(section: dict[str, str], expected: str) -> None:
    """The rule for every image (operator.md 4): three parts, a digest behind @, or a whole reference in `image`; an OS
    suffix goes behind a tag and never behind a digest (case 67)."""
    policy = spec(gfd=section)
    assert image(policy, policy.gfd, "gfd") == expected
    suffixed = image(policy, policy.gfd, "gfd", suffix="ubuntu22.04")
    assert suffixed == (expected if DIGEST in expected else f"{expected}-ubuntu22.04")


@pytest.mark.parametrize("missing", [["version"], ["repository"], ["repository", "version", "image"]])
def test_images_that_are_not_whole(missing: list[str]) -> None:
    """An image that lacks a part is an error at the part (case 74)."""
    policy = spec(gfd=dict.fromkeys(missing, ""))
    with pytest.raises(FindingsError) as caught:
        image(policy, policy.gfd, "gfd")
    (finding,) = caught.value.findings
    assert finding.path in {f"spec.gfd.{part}" for part in missing}
    assert finding.remedy


@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.parametrize("reference", ["program", "r.example/program", "localhost:5000/program"])
def test_images_without_a_tag(name: str, reference: str) -> None:
    """`image` alone needs a tag or a digest, whichever section it is in; a registry's port is none. Runtimes would pull
    :latest.
    """
    section = SimpleNamespace(repository=None, image=reference, version="")
    with pytest.raises(FindingsError) as caught:
        image(spec(), section, name)
    (finding,) = caught.value.findings
    assert (finding.rule, finding.path) == ("GPU040", f"spec.{name}.image")
    assert reference in finding.remedy


@pytest.mark.parametrize(
    ("section", "remedy"),
    [
        ({"image": "program:v1"}, "image: program, version: v1"),
        ({"image": f"program@{DIGEST}"}, f"image: program, version: {DIGEST}"),
        ({"repository": "r.example", "image": "program:v1"}, "image: program, version: v1"),
        ({"image": "r.example/program:v1", "version": "v2"}, "repository: r.example, image: program, version: v1"),
        ({"image": "r.example/program"}, "repository: r.example, image: program"),
        ({"image": "localhost:5000/program"}, "repository: localhost:5000, image: program"),
    ],
)
def test_images_that_are_named_twice(section: dict[str, str], remedy: str) -> None:
    """A registry or tag in `image`, beside repository and version, makes a reference that no image has; it is refused
    with the same image in parts."""
    policy = spec(gfd=section)
    with pytest.raises(FindingsError) as caught:
        image(policy, policy.gfd, "gfd")
    (finding,) = caught.value.findings
    assert (finding.rule, finding.path) == ("GPU045", "spec.gfd.image")
    assert f"({remedy})" in finding.remedy


def test_paths_below_a_registry_of_ones_own() -> None:
    """A mirror may hold the images of a registry below its name."""
    policy = spec(gfd={"repository": "mirror.example", "image": "nvcr.io/nvidia/plugin", "version": "v1"})
    assert image(policy, policy.gfd, "gfd") == "mirror.example/nvcr.io/nvidia/plugin:v1"


def test_mirrors() -> None:
    """The longest prefix of whole parts that matches is replaced, slashes at ends don't matter, and nothing else is."""
    mirrors = {"nvcr.io": "m/a", "nvcr.io/nvidia/": "m/b/", "nvcr.io/nvidia/k8s": "m/c"}
    assert mirrored("nvcr.io/nvidia/k8s/dcgm:1", mirrors) == "m/c/dcgm:1"
    assert mirrored("nvcr.io/nvidia/k8s-device-plugin:1", mirrors) == "m/b/k8s-device-plugin:1"
    assert mirrored("nvcr.io/other:1", mirrors) == "m/a/other:1"
    assert mirrored("nvcr.io.example/x:1", mirrors) == "nvcr.io.example/x:1"
    policy = spec(cluster={"registryMap": {"nvcr.io": "mirror.example"}})
    assert image(policy, policy.gfd, "gfd") == "mirror.example/nvidia/k8s-device-plugin:v0.20.0"
