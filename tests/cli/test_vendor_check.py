"""vendor-check: nothing that a chart of the operator brings is overlooked, and what the catalogue knows is quiet.

The chart is made here of what the catalogue says of a release, with what a newer one might bring.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpustack.catalog import fields, releases
from gpustack.review import vendor
from tests.project import Project

BASE = releases.latest()


def schema(kind: str) -> dict[str, Any]:
    """The fields of KIND as a CRD says them."""
    root: dict[str, Any] = {"type": "object"}
    for path, facts in fields.fields(kind).items():
        node = root
        for step in path.replace("[]", ".[]").split("."):
            if step == "[]":
                node = node.setdefault("items", {})
            else:
                node = node.setdefault("properties", {}).setdefault(step, {})
        if facts.type != "int-or-string":
            node["type"] = facts.type
    return root


def crd(kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A definition of KIND."""
    version = {"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}}
    return {"spec": {"names": {"kind": kind}, "versions": [version]}}


def values() -> dict[str, Any]:
    """What a values file says to have the catalogue's defaults."""
    known = releases.release(BASE)
    said = known.default_spec()
    cluster = {key: dict(value) if isinstance(value, Mapping) else value for key, value in known.gpu_cluster.items()}
    said["draDriver"] = cluster.pop("draDriver")
    said |= {"gpuCluster": cluster} if cluster else {}
    said["driver"]["nvidiaDriverCRD"] = {"enabled": said["driver"].pop("useNvidiaDriverCRD")}
    for section in ("validator", "nodeStatusExporter"):  # their images are of the chart's own version
        del said[section]["version"]
    return said


def packed(version: str = BASE, said: Mapping[str, Any] | None = None, template: str = "", **kinds: Any) -> bytes:
    """A chart of VERSION with the values SAID, a TEMPLATE, and the schemas of KINDS over the catalogue's."""
    return archive(contents(version, said, template, **kinds))


def contents(
    version: str = BASE, said: Mapping[str, Any] | None = None, template: str = "", **kinds: Any
) -> dict[str, str]:
    """The files of that chart."""
    head = {
        "version": version,
        "dependencies": [
            {"name": "node-feature-discovery", "version": releases.release(BASE).nfd_version.removeprefix("v")}
        ],
    }
    files = {"Chart.yaml": yaml.safe_dump(head), "values.yaml": yaml.safe_dump(said or values())}
    schemas = {kind: kinds.get(kind) or schema(kind) for kind in fields.kinds()}
    files |= {f"crds/{kind}.yaml": yaml.safe_dump(crd(kind, spec)) for kind, spec in schemas.items()}
    files["templates/clusterpolicy.yaml"] = "a: {{ .Values.driver.enabled }}\n" + template
    return {**files, "charts/node-feature-discovery/Chart.yaml": "name: node-feature-discovery\n"}


def archive(files: Mapping[str, str]) -> bytes:
    """FILES as `helm package` packs them."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"gpu-operator/{name}")
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def test_what_is_known_is_quiet() -> None:
    """The chart of a release that the catalogue has differs in nothing."""
    found = vendor.compared(vendor.opened(packed()), BASE)
    assert (found.images, found.defaults, found.unknown, found.nfd) == ((), (), (), ())
    assert not found.any


def test_what_a_release_brings() -> None:
    """Another image, a new one, a default that flips, one that goes, a field, a type, a value that a template reads:
    each is told, with what it was.
    """
    said = values()
    said["toolkit"]["version"] = "v9.9.9"
    said["newThing"] = {"repository": "nvcr.io/nvidia", "image": "new-thing", "version": "v1", "enabled": True}
    said["cdi"]["enabled"] = False
    del said["daemonsets"]["priorityClassName"]
    policy = schema("ClusterPolicy")
    policy["properties"]["newThing"] = {"type": "object", "properties": {"enabled": {"type": "boolean"}}}
    policy["properties"]["psa"]["properties"]["enabled"]["type"] = "string"
    chart = packed("v27.1.0", said, "b: {{ .Values.newThing.enabled }} {{ .Values.odd.one }}", ClusterPolicy=policy)
    found = vendor.compared(vendor.opened(chart), BASE)
    images = {change.path: (change.before, change.after) for change in found.images}
    assert images["newThing"] == (None, "nvcr.io/nvidia/new-thing:v1")
    assert images["toolkit"][1] == "nvcr.io/nvidia/k8s/container-toolkit:v9.9.9"
    assert ("cdi.enabled", True, False) in [(each.path, each.before, each.after) for each in found.defaults]
    assert ("newThing.enabled", None, True) in [(each.path, each.before, each.after) for each in found.defaults]
    told = {change.path: (change.before, change.after) for change in found.fields["ClusterPolicy"]}
    assert told == {
        "newThing": (None, "object"),
        "newThing.enabled": (None, "boolean"),
        "psa.enabled": ("boolean", "string"),
    }
    assert found.unknown == ("newThing.enabled", "odd.one")


def test_it_becomes_data() -> None:
    """The printed file, read as a release's, gives the chart's images and defaults."""
    said = values()
    said["toolkit"] |= {"version": "v9.9.9", "repository": "nvcr.io/other"}
    said["cdi"]["enabled"] = False
    found = vendor.compared(vendor.opened(packed("v27.1.0", said)), BASE)
    data = yaml.safe_load(vendor.as_data(found))
    assert data["base"] == BASE
    assert data["images"]["toolkit"] == {"repository": "nvcr.io/other", "version": "v9.9.9"}
    assert data["images"]["gpu-operator"] == {"version": "v27.1.0"}
    assert data["defaults"] == {"cdi": {"enabled": False}}


def test_the_verb(project: Project, tmp_path: Path) -> None:
    """Exit 0 and a line where all is known, 1 and what differs else; a file that is no chart is refused."""
    chart = tmp_path / "gpu-operator.tgz"
    chart.write_bytes(packed())
    ran = project.run("vendor-check", chart)
    assert (ran.code, ran.out) == (0, f"{BASE}: the catalogue's {BASE} has all of it\n")
    chart.write_bytes(packed("v27.1.0", template="{{ .Values.odd }}"))
    ran = project.run("vendor-check", chart)
    assert ran.code == 1
    assert f"  validator: nvcr.io/nvidia/gpu-operator:{BASE} -> nvcr.io/nvidia/gpu-operator:v27.1.0\n" in ran.out
    assert ran.out.endswith("no name here stands for:\n  odd\n")
    assert project.run("vendor-check", chart, "--format", "json").json["unknown"] == ["odd"]


@pytest.mark.parametrize("content", [b"", b"x" * 100, packed()[:300]])
def test_what_is_no_chart(project: Project, tmp_path: Path, content: bytes) -> None:
    """Told with the file's name, and no traceback."""
    chart = tmp_path / "x.tgz"
    chart.write_bytes(content)
    ran = project.run("vendor-check", chart)
    assert (ran.code, "GPU987" in ran.err, str(chart) in ran.err) == (4, True, True)


LACKS: dict[str, tuple[str, str]] = {
    "no CRDs": ("crds/", "the definition of ClusterPolicy in crds"),
    "one CRD less": ("crds/ClusterPolicy", "the definition of ClusterPolicy in crds"),
    "no NFD": ("charts/", "charts/node-feature-discovery"),
    "no templates": ("templates/", "templates"),
}


@pytest.mark.parametrize("case", LACKS)
def test_a_part_that_is_missing(project: Project, tmp_path: Path, case: str) -> None:
    """A chart without a part has not all of it: that is told in each form, with exit 1."""
    begins, part = LACKS[case]
    chart = tmp_path / "x.tgz"
    chart.write_bytes(archive({name: text for name, text in contents().items() if not name.startswith(begins)}))
    ran = project.run("vendor-check", chart)
    assert ran.code == 1
    assert f"The archive lacks:\n  {part}\n" in ran.out
    assert part in project.run("vendor-check", chart, "--format", "json").json["missing"]
    assert f"# The archive lacks {part}.\n" in project.run("vendor-check", chart, "--format", "data").out


def test_a_chart_that_an_older_release_lacks() -> None:
    """A definition that the base has no field of isn't missing; a chart that no longer brings NFD is a change."""
    files = {name: text for name, text in contents().items() if name != "crds/GPUCluster.yaml"}
    assert vendor.compared(vendor.opened(archive(files)), "v26.3.3").missing == ()
    files = contents() | {"Chart.yaml": yaml.safe_dump({"version": BASE})}
    (change,) = vendor.compared(vendor.opened(archive(files)), BASE).nfd
    assert (change.before, change.after) == (releases.release(BASE).nfd_version, None)


BROKEN: dict[str, tuple[str, str | None, str]] = {
    "no Chart.yaml": ("Chart.yaml", None, "it has no gpu-operator/Chart.yaml"),
    "no values": ("values.yaml", None, "it has no gpu-operator/values.yaml"),
    "no YAML": ("values.yaml", "a: [1\nb: }", "its values.yaml:2:2 isn't YAML"),
    "a CRD that is no YAML": ("crds/ClusterPolicy.yaml", "{", "its crds/ClusterPolicy.yaml:1:2 isn't YAML"),
    "control characters": ("values.yaml", "a: \x00", "its values.yaml isn't YAML"),
    "a day that isn't": ("values.yaml", "a: 2026-13-41", "its values.yaml isn't YAML"),
    "nothing": ("values.yaml", "", "its values.yaml holds no mapping, or several"),
    "a list": ("Chart.yaml", "[]", "its Chart.yaml holds no mapping, or several"),
    "no version": ("Chart.yaml", "a: b", "its Chart.yaml doesn't say what that of a chart of the GPU operator says"),
    "a dependency": ("Chart.yaml", "{version: v1, dependencies: [1]}", "its Chart.yaml doesn't say"),
    "no definition": ("crds/ClusterPolicy.yaml", "a: b", "its crds/ClusterPolicy.yaml doesn't say"),
    "no version of it": (
        "crds/ClusterPolicy.yaml",
        "spec: {names: {kind: ClusterPolicy}, versions: []}",
        "its crds/ClusterPolicy.yaml doesn't say",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_is_said_in_words(project: Project, tmp_path: Path, case: str) -> None:
    """With the file of the chart, its line and column where there is one, and no word of Python."""
    name, text, told = BROKEN[case]
    files = {**contents(), name: text}
    chart = tmp_path / "x.tgz"
    chart.write_bytes(archive({key: value for key, value in files.items() if value is not None}))
    ran = project.run("vendor-check", chart)
    assert (ran.code, f"can't be read: {told}" in ran.err) == (4, True), ran.err
    assert not re.search(r"Error|<|object at", ran.err)
