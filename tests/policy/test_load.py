"""From files to a spec: what isn't a policy, which layers and defaults count, and what is done once for many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpustack.catalog import platforms, releases
from gpustack.model import InputError, Location
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading import load as load_module
from gpustack.policy.loading.layers import Part, merge
from gpustack.policy.loading.load import Memo, layers_of, load, policy_files, spec_key
from gpustack.text.read import read
from tests.policy.fleet import HEAD, PINS, Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """An empty fleet."""
    return Fleet(tmp_path)


# --- what a policy gives --------------------------------------------------------------------------------------------


def test_a_policy_becomes_a_full_spec(fleet: Fleet) -> None:
    """Name, display name, layers, documents and a spec in which the release's defaults stand."""
    fleet.layer("base", "  driver: {rdma: {enabled: true}}\n")
    found = fleet.load("  extends: [base]\n")
    assert (found.name, found.file, found.layers) == ("prod", "prod.yaml", ("base",))
    assert [document.file for document in found.documents] == ["prod.yaml", "layers/base.yaml"]
    assert isinstance(found.spec, ClusterPolicySpec)
    assert found.spec.driver.rdma.enabled is True
    assert found.spec.driver.version == "595.91.07"  # releases/v26.7.0.yaml
    assert found.spec.dcgmExporter.serviceMonitor.interval == "15s"
    assert "extends" not in found.merged.spec


def test_defaults_are_below_the_platform_that_below_layers_that_below_the_policy(fleet: Fleet) -> None:
    """Each writer of a value beats those before it, and `origin` names the one that won."""
    cluster = '  release: v26.7.0\n  cluster: {{kubernetesVersion: "1.34", platform: {}}}\n'
    where = ("toolkit", "enabled")
    for platform, layer, own, value, kind in (
        ("generic", "", "", True, "release"),
        ("eks-al2023", "", "", False, "platform"),  # platforms/eks-al2023.yaml: toolkit.enabled false
        ("eks-al2023", "  toolkit: {enabled: true}\n", "", True, "layer"),
        ("eks-al2023", "  toolkit: {enabled: true}\n", "  toolkit: {enabled: false}\n", False, "policy"),
    ):
        fleet.layer("base", layer)
        found = load(fleet.policy(f"  extends: [base]\n{own}", pins=cluster.format(platform)), root=fleet.folder)
        assert found.spec.toolkit.enabled is value
        origin = found.merged.origin(where)
        assert origin is not None
        assert origin.kind == kind


def test_release_platform_and_version_may_stand_in_a_layer(fleet: Fleet) -> None:
    """What picks the defaults is itself looked for in layers, and the policy's word counts more."""
    fleet.layer("base", '  release: v26.3.1\n  cluster: {kubernetesVersion: "1.33", platform: eks-al2023}\n')
    found = load(fleet.policy("  extends: [base]\n", pins=""), root=fleet.folder)
    assert found.spec.release == "v26.3.1"
    assert found.spec.driver.version == "580.126.20"  # releases/v26.3.1.yaml
    assert found.spec.driver.enabled is False
    own = load(fleet.policy("  extends: [base]\n", pins="  release: v26.7.0\n"), root=fleet.folder)
    assert own.spec.driver.version == "595.91.07"


def test_every_release_and_platform_makes_a_valid_spec(fleet: Fleet) -> None:
    """A policy of nothing but its pins loads for each release and for each platform of the catalogue."""
    for release in releases.names():
        for platform in platforms.names() if release == releases.latest() else ["generic"]:
            pins = f'  release: {release}\n  cluster: {{kubernetesVersion: "1.33", platform: {platform}}}\n'
            assert load(fleet.policy(pins=pins), root=fleet.folder).spec.release == release


@pytest.mark.parametrize(
    ("sharing", "value"),
    [
        ("{mig: {layout: {3g.40gb: 1, 2g.20gb: 2}}}", "mixed"),
        ("{mig: {layout: {3g.40gb: 2}}}", "single"),
        (
            "{mig: {devices: [{indices: [0], layout: {3g.40gb: 2}}, {indices: [1, 2, 3], layout: {1g.10gb: 7}}]}}",
            "mixed",
        ),
        (
            "{mig: {devices: [{indices: [0, 1], layout: {3g.40gb: 2}}, {indices: [2, 3], layout: {3g.40gb: 2}}]}}",
            "single",
        ),
        ("{mig: {devices: [{indices: [0, 1], layout: {3g.40gb: 2}}, {indices: [2, 3]}]}}", "mixed"),
        ("{mig: {devices: [{indices: [0, 1], layout: {3g.40gb: 2}}]}}", "mixed"),  # GPUs 2 and 3 stay whole
        ("{mig: {config: all-1g.10gb}}", "single"),
        ("{timeSlicing: {replicas: 2}}", "single"),
    ],
)
def test_mig_strategy_follows_from_the_pools(sharing: str, value: str, fleet: Fleet) -> None:
    """Where a node has instances of several profiles, or whole GPUs beside them, the strategy is mixed by default."""
    found = fleet.load(f"  nodePools: [{{name: a, gpusPerNode: 4, sharing: {sharing}}}]\n")
    assert found.spec.mig.strategy == value
    origin = found.merged.origin(("mig", "strategy"))
    assert origin is not None
    assert origin.kind == ("derived" if value == "mixed" else "release")
    if value == "mixed":
        assert "spec.nodePools[0].sharing.mig" in origin.file


def test_a_strategy_that_is_set_stays(fleet: Fleet) -> None:
    """A derived value is a default: what the user wrote wins."""
    pools = "  nodePools: [{name: a, sharing: {mig: {layout: {3g.40gb: 1, 2g.20gb: 2}}}}]\n"
    assert fleet.load("  mig: {strategy: single}\n" + pools).spec.mig.strategy == "single"


@pytest.mark.parametrize(
    "pools", ["3", "[1, x]", "[{sharing: 1}]", "[{name: a, sharing: {mig: {layout: 3, devices: 1}}}]"]
)
def test_derived_defaults_never_stumble_over_mistakes(pools: str, fleet: Fleet) -> None:
    """Rules see data that nobody has validated yet; what is wrong with it is said by the validation."""
    assert all(
        finding.rule in ("GPU016", "GPU017", "GPU018")
        for finding in fleet.refused(fleet.policy(f"  nodePools: {pools}\n"))
    )


# --- done once ------------------------------------------------------------------------------------------------------


def test_equal_specs_are_validated_once(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters that differ in name, comments, order of keys and who says what share one validated spec."""
    calls = []
    validate = ClusterPolicySpec.model_validate

    def counted(data: Any, **more: Any) -> ClusterPolicySpec:
        calls.append(data)
        return validate(data, **more)

    monkeypatch.setattr(ClusterPolicySpec, "model_validate", counted)
    memo = Memo()
    fleet.layer("base", "  driver: {version: '1'}\n")
    bodies = [
        "  driver: {version: '1'}\n  cdi: {enabled: false}\n",
        "  cdi: {enabled: false}\n  driver: {version: '1'}\n",
    ]
    bodies += ["  extends: [base]\n  cdi: {enabled: false} # here\n"]
    paths = [fleet.policy(body, name=f"c{number}") for number, body in enumerate(bodies)]
    found = [load(path, root=fleet.folder, memo=memo) for path in paths]
    assert len(calls) == 1
    assert found[0].spec is found[1].spec is found[2].spec
    assert len({spec_key(one.merged) for one in found}) == 1
    assert [one.name for one in found] == ["c0", "c1", "c2"]


def test_different_specs_have_different_keys() -> None:
    """1, 1.0, true, "1" and the order of a list are told apart; the order of keys is not."""
    datas: list[dict[str, Any]] = [
        {"a": 1},
        {"a": 1.0},
        {"a": True},
        {"a": "1"},
        {"a": [1, 2]},
        {"a": [2, 1]},
        {"a": {}},
    ]
    keys = [spec_key(merge([Part("policy", "f", data)])) for data in datas]
    assert len(set(keys)) == len(datas)
    one = merge([Part("policy", "f", {"a": 1, "b": "ä"})])
    other = merge([Part("policy", "f", {"b": "ä", "a": 1})])
    assert spec_key(one) == spec_key(other)


def test_layers_are_read_once(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer of a thousand clusters is one file to read."""
    from gpustack.policy.loading import extends

    reads: list[str] = []
    real = read

    def counted(path: Path, display: str) -> Any:
        reads.append(display)
        return real(path, display)

    monkeypatch.setattr(extends, "read", counted)
    fleet.layer("base")
    memo = Memo()
    for number in range(3):
        load(fleet.policy("  extends: [base]\n", name=f"c{number}"), root=fleet.folder, memo=memo)
    assert reads == ["layers/base.yaml"]


def test_names_in_messages_are_relative_to_the_root(fleet: Fleet, tmp_path: Path) -> None:
    """Below the root a file is called by its path from there, elsewhere by its name; never by a whole path."""
    fleet.layer("base")
    path = fleet.policy("  extends: [base]\n")
    assert load(path, root=tmp_path.parent).file == f"{tmp_path.name}/prod.yaml"
    outside = load(path, root=tmp_path / "elsewhere")
    assert [document.file for document in outside.documents] == ["prod.yaml", "layers/base.yaml"]


# --- layers ---------------------------------------------------------------------------------------------------------


def test_layers_count_from_left_to_right_each_once(fleet: Fleet) -> None:
    """What a layer extends comes before it, later ones win, and a layer reached twice counts at the first place."""
    fleet.layer("base", "  driver: {version: base}\n")
    fleet.layer("left", "  extends: [base]\n  driver: {version: left}\n")
    fleet.layer("right", "  extends: [base]\n  toolkit: {version: right}\n")
    found = fleet.load("  extends: [left, right, left]\n")
    assert found.layers == ("base", "left", "right")
    assert found.spec.driver.version == "left"
    assert found.spec.toolkit.version == "right"
    assert fleet.load("  extends: [right, left]\n").layers == ("base", "right", "left")


def test_diamonds_on_diamonds_take_no_time(fleet: Fleet) -> None:
    """A layer is visited once, not once for each of the many ways to it."""
    for number in range(1, 40):
        for side in "ab":
            fleet.layer(f"{side}{number}", f"  extends: [a{number - 1}, b{number - 1}]\n" if number > 1 else "")
    assert len(fleet.load("  extends: [a39, b39]\n").layers) == 78


def test_a_cycle_is_printed(fleet: Fleet) -> None:
    """Layers that extend each other are refused with the whole circle, at the line that closes it."""
    fleet.layer("a", "  extends: [b]\n")
    fleet.layer("b", "  extends: [c]\n")
    fleet.layer("c", "  extends: [b]\n")
    found = fleet.mistake("  extends: [a]\n")
    assert found.rule == "GPU013"
    assert "b -> c -> b" in found.what
    assert found.location == Location("layers/c.yaml", 5, 13, "  extends: [b]")
    fleet.layer("self", "  extends: [self]\n")
    assert "self -> self" in fleet.mistake("  extends: [self]\n").what


def test_a_long_chain_of_layers(fleet: Fleet) -> None:
    """A chain may be longer than Python's stack is deep; the layer at its end comes first."""
    count = 3000
    for number in range(count):
        below = f"  extends: [l{number + 1}]\n" if number + 1 < count else "  driver: {rdma: {enabled: true}}\n"
        fleet.layer(f"l{number}", below)
    found = fleet.load("  extends: [l0]\n")
    assert found.layers == tuple(f"l{number}" for number in reversed(range(count)))
    assert found.spec.driver.rdma.enabled is True


def test_a_large_circle_is_cut(fleet: Fleet) -> None:
    """Of a circle of many layers, both ends are named at the line that closes it, and the others are counted."""
    for number in range(2000):
        fleet.layer(f"l{number}", f"  extends: [l{(number + 1) % 2000}]\n")
    found = fleet.mistake("  extends: [l0]\n")
    assert (found.rule, found.location) == ("GPU013", Location("layers/l1999.yaml", 5, 13, "  extends: [l0]"))
    assert "l0 -> l1 -> " in found.what
    assert found.what.endswith(" -> l1999 -> l0")
    assert "1989 more" in found.what
    assert len(found.what) < 300


def test_a_missing_layer_names_the_nearest(fleet: Fleet) -> None:
    """A typing error is answered with the layer that is there, at the word in the list."""
    fleet.layer("eks-common")
    found = fleet.mistake("  extends: [eks-comon]\n")
    assert (found.rule, found.location) == ("GPU013", Location("prod.yaml", 7, 13, "  extends: [eks-comon]"))
    assert "eks-common" in found.remedy
    assert "eks-common" in fleet.mistake("  extends: [zzz]\n").remedy
    fleet.file("layers/short.yml", "")
    assert "short.yml" in fleet.mistake("  extends: [short]\n").remedy


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "a/b", "..", ".", ".hidden", "a\\\\b", "a b", "", "base.", "a:b"]
)
def test_a_layer_is_never_a_path(name: str, fleet: Fleet) -> None:
    """A name that could lead out of the folder is refused without looking at any file."""
    fleet.file("secret.yaml", HEAD.format(kind="PolicyLayer", name="secret"))
    found = fleet.mistake(f'  extends: ["{name}"]\n')
    assert found.rule == "GPU013"
    assert "not a name of a layer" in found.what


def test_a_path_to_a_layer_is_answered_with_its_name(fleet: Fleet) -> None:
    """Who writes layers/base.yaml is told to write base."""
    assert fleet.mistake("  extends: [layers/base.yaml]\n").remedy == "write base"


def test_a_link_out_of_the_folder_is_refused(fleet: Fleet) -> None:
    """A layer that is a link to a file elsewhere is not followed; a link within the folder is."""
    fleet.file("secret.yaml", HEAD.format(kind="PolicyLayer", name="out"))
    (fleet.folder / "layers" / "out.yaml").symlink_to("../secret.yaml")
    assert "outside" in fleet.mistake("  extends: [out]\n").what
    fleet.file("layers/real.yaml", HEAD.format(kind="PolicyLayer", name="x").replace("metadata: {name: x}\n", ""))
    (fleet.folder / "layers" / "alias.yaml").symlink_to("real.yaml")
    assert fleet.load("  extends: [alias]\n").layers == ("alias",)
    (fleet.folder / "layers" / "gone.yaml").symlink_to("nothing")
    assert "link to nothing" in fleet.mistake("  extends: [gone]\n").remedy


def test_a_layer_is_called_like_its_file(fleet: Fleet) -> None:
    """metadata.name of a layer is its file's name or absent; anything else is refused at the name."""
    fleet.file("layers/base.yaml", HEAD.format(kind="PolicyLayer", name="other"))
    found = fleet.mistake("  extends: [base]\n")
    assert (found.rule, found.location) == ("GPU013", Location("layers/base.yaml", 3, 18, "metadata: {name: other}"))
    assert "base" in found.remedy
    fleet.file("layers/base.yaml", "apiVersion: gpustack.dev/v1alpha1\nkind: PolicyLayer\n")
    assert fleet.load("  extends: [base]\n").layers == ("base",)


def test_a_policy_is_no_layer(fleet: Fleet) -> None:
    """A cluster's policy among the layers is refused in its own file."""
    fleet.file("layers/base.yaml", HEAD.format(kind="ClusterPolicy", name="base"))
    found = fleet.mistake("  extends: [base]\n")
    assert (found.rule, found.location) == ("GPU012", Location("layers/base.yaml", 2, 7, "kind: ClusterPolicy"))
    assert "PolicyLayer" in found.remedy


@pytest.mark.parametrize(
    ("extends", "column", "word"),
    [("base", 12, "[base]"), ("{a: b}", 3, "[base]"), ("[base, 1]", 19, "quotes"), ("3", 12, "[base]")],
)
def test_extends_is_a_list_of_names(extends: str, column: int, word: str, fleet: Fleet) -> None:
    """Anything but a list of texts is refused with the form to write."""
    fleet.layer("base")
    found = fleet.mistake(f"  extends: {extends}\n")
    assert found.rule == "GPU017"
    assert found.location is not None
    assert (found.location.line, found.location.column) in {(7, column), (7, 12)}
    assert word in found.remedy


def test_layers_of_names_files_that_are_gone_too(fleet: Fleet) -> None:
    """To know what a change concerns: all layers of a policy, also deleted and broken ones, and never an error."""
    fleet.layer("a", "  extends: [b, gone]\n")
    fleet.file("layers/b.yaml", "broken: [")
    names = [path.stem for path in layers_of(fleet.policy("  extends: [a, ../x, 3]\n"))]
    assert sorted(names) == ["a", "b", "gone"]
    assert layers_of(fleet.folder / "nothing.yaml") == []
    assert layers_of(fleet.file("odd.yaml", "spec: {extends: 3}")) == []


# --- what is missing ------------------------------------------------------------------------------------------------


def test_a_policy_pins_its_release(fleet: Fleet, newest: str) -> None:
    """No release is an error with the line to add, not the newest one: an update of gpustack changes no cluster."""
    (found,) = fleet.refused(fleet.policy(pins='  cluster: {kubernetesVersion: "1.34"}\n'))
    assert (found.rule, found.path, found.location) == ("GPU014", "spec.release", Location("prod.yaml", 4, 1, "spec:"))
    assert f"`release: {newest}`" in found.remedy


def test_a_policy_says_its_kubernetes_version(fleet: Fleet) -> None:
    """No version is an error at the cluster section, and one that is not supported says which are."""
    (found,) = fleet.refused(fleet.policy(pins="  release: v26.7.0\n  cluster: {platform: generic}\n"))
    assert (found.rule, found.path) == ("GPU014", "spec.cluster.kubernetesVersion")
    assert found.location == Location("prod.yaml", 6, 3, "  cluster: {platform: generic}")
    (found,) = fleet.refused(fleet.policy(pins='  release: v26.7.0\n  cluster: {kubernetesVersion: "1.12"}\n'))
    assert found.location == Location("prod.yaml", 6, 32, '  cluster: {kubernetesVersion: "1.12"}')
    assert "1.29" in found.why


def test_unknown_releases_and_platforms_name_the_nearest(fleet: Fleet) -> None:
    """A typing error in either is answered with what the catalogue has, both at once, beside other mistakes."""
    pins = '  release: v26.7.1\n  cluster: {kubernetesVersion: "1.34", platform: eks-al203}\n'
    release, platform, other = fleet.refused(fleet.policy("  drivr: {}\n", pins=pins))
    assert release.location == Location("prod.yaml", 5, 12, "  release: v26.7.1")
    assert "v26.7.0" in release.remedy
    assert platform.location is not None
    assert (platform.location.line, platform.location.column) == (6, 50)
    assert "eks-al2023" in platform.remedy
    assert "spec.driver" in other.remedy


def test_a_policy_has_a_name(fleet: Fleet) -> None:
    """Without metadata.name there is no folder to render into; the file's own name is proposed."""
    for metadata, line in (("", 1), ("metadata: {}\n", 3), ("metadata:\n", 3)):
        text = HEAD.format(kind="ClusterPolicy", name="x").replace("metadata: {name: x}\n", metadata) + PINS
        (found,) = fleet.refused(fleet.file("eu-1.yaml", text))
        assert (found.rule, found.path) == ("GPU017", "metadata.name")
        assert found.location is not None
        assert found.location.line == line
        assert "eu-1" in found.remedy


@pytest.mark.parametrize("name", ["../evil", "a/b", "A", "..", ".index", "a_b", "x" * 64, '""'])
def test_names_of_clusters_are_names_of_folders(name: str, fleet: Fleet) -> None:
    """A name that could lead out of dist/, or that Kubernetes would refuse, is refused at the name."""
    (found,) = fleet.refused(fleet.file("f.yaml", HEAD.format(kind="ClusterPolicy", name=name) + PINS))
    assert (found.rule, found.path) == ("GPU018", "metadata.name")
    assert found.location is not None
    assert (found.location.line, found.location.column) == (3, 18)


def test_a_name_that_is_a_number_is_quoted(fleet: Fleet) -> None:
    """name: 42 is answered with the quotes it needs, as it was written."""
    (found,) = fleet.refused(fleet.file("f.yaml", HEAD.format(kind="ClusterPolicy", name="42") + PINS))
    assert (found.rule, found.remedy) == ("GPU017", 'put it in quotes: "42"')


def test_mistakes_around_the_spec_are_reported_with_those_in_it(fleet: Fleet) -> None:
    """Unknown keys beside the spec, in metadata and in the spec come together, in the order of the lines."""
    text = HEAD.format(kind="ClusterPolicy", name="a").replace("name: a", "name: a, namespace: ")
    found = fleet.refused(fleet.file("f.yaml", f"{text}{PINS}  drivr: {{}}\ndriver: {{}}\nstatus: {{}}\n"))
    assert [one.path for one in found] == ["metadata.namespace", "spec.drivr", "driver", "status"]
    assert [one.location.line for one in found if one.location] == [3, 7, 8, 9]
    assert "below spec" in found[2].remedy


# --- what is not a policy ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what", "remedy", "line"),
    [
        ("apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nspec: {}\n", "NVIDIA's GPU operator", "spec.release", 1),
        ("apiVersion: nvidia.com/v1alpha1\nkind: NVIDIADriver\nspec: {}\n", "NVIDIADriver", "spec.drivers", 1),
        ("apiVersion: nvidia.com/v1alpha1\nkind: GPUCluster\nspec: {}\n", "GPUCluster", "spec.gpuCluster", 1),
        ("# values\ndriver:\n  enabled: false\ntoolkit: {}\n", "Helm chart", "indent everything below `spec:`", 2),
        ("nfd: {enabled: false}\n", "Helm chart", "`spec:`", 1),
        ("global: {}\ngpu-operator:\n  driver: {enabled: false}\n", "Helm chart", "below gpu-operator", 2),
        ("apiVersion: v1\nkind: List\nitems: [{kind: ClusterPolicy}]\n", "list of objects", "items", 2),
        ("apiVersion: nvidia.com/v1\nkind: ClusterPolicyList\nitems: []\n", "list of objects", "items", 2),
        ("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {}\n", "HelmRelease", "spec.values", 2),
        ("apiVersion: argoproj.io/v1alpha1\nkind: Application\n", "Application", "values", 2),
        ("apiVersion: v1\nkind: ConfigMap\n", "ConfigMap", "extraObjects", 2),
        ("apiVersion: apps/v1\nkind: DaemonSet\n", "DaemonSet", "gpustack.dev/v1alpha1", 2),
        ("version: v1\nsharing: {timeSlicing: {}}\n", "device plugin", "nodePools[].sharing", 2),
        ("version: v1\nmig-configs: {}\n", "MIG manager", "sharing.mig", 2),
        ("apiVersion: gpustack.dev/v1\nkind: ClusterPolicy\n", "no version", "gpustack.dev/v1alpha1", 1),
        ("apiVersion: gpustack.dev/v1alpha1\nkind: Clusterpolicy\n", "no kind", "kind: ClusterPolicy", 2),
        ("apiVersion: gpustack.dev/v1alpha1\nkind: [a, b]\n", "no kind", "kind: ClusterPolicy", 2),
        ("apiVersion: gpustack.dev/v1alpha1\nspec: {}\n", "no kind", "kind: ClusterPolicy", 1),
        ("kind: ClusterPolicy\nspec: {}\n", "no apiVersion", "gpustack.dev/v1alpha1", 1),
        ("apiVersion: 1\nkind: ClusterPolicy\n", "apiVersion 1", "gpustack.dev/v1alpha1", 1),
        ("ApiVersion: gpustack.dev/v1alpha1\nspec: {}\n", "ApiVersion", "apiVersion", 1),
        ("foo: 1\n", "neither", "gpustack.dev/v1alpha1", 1),
        ("{}\n", "neither", "gpustack.dev/v1alpha1", 1),
        ("apiVersion: gpustack.dev/v1alpha1\nkind: PolicyLayer\n", "a layer", "layers/", 2),
    ],
)  # fmt: skip
def test_what_is_no_policy_is_recognised(text: str, what: str, remedy: str, line: int, fleet: Fleet) -> None:
    """An object of the operator, a values file and the like are called what they are, with the way to a policy."""
    (found,) = fleet.refused(fleet.file("f.yaml", text))
    assert found.rule == "GPU012"
    assert what in found.what
    assert remedy in found.remedy
    assert found.location is not None
    assert found.location.line == line


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("", "no spec"),
        ("spec:\n", "no spec"),
        ("spec: [a]\n", "mapping"),
        ("spec: x\n", "mapping"),
        ("spce: {}\n", "spce"),
    ],
)
def test_a_policy_has_a_spec(spec: str, word: str, fleet: Fleet) -> None:
    """A policy without a spec, or with something else in its place, is one finding and not a dozen that follow."""
    text = HEAD.format(kind="ClusterPolicy", name="a").replace("spec:\n", spec)
    (found,) = fleet.refused(fleet.file("f.yaml", text))
    assert word in found.what


# --- many policies --------------------------------------------------------------------------------------------------


def test_policies_are_the_yaml_files_of_a_folder(fleet: Fleet) -> None:
    """Sorted, both endings, without hidden files, folders, other files and what lies in layers/."""
    fleet.layer("base")
    for name in ("b", "a", ".hidden"):
        fleet.policy(name=name)
    fleet.file("c.yml", HEAD.format(kind="ClusterPolicy", name="c") + PINS)
    fleet.file("README.md", "x")
    (fleet.folder / "d.yaml").mkdir()
    assert [path.name for path in policy_files(fleet.folder, "policies")] == ["a.yaml", "b.yaml", "c.yml"]


def test_files_that_cant_be_read_are_left_to_loading(fleet: Fleet) -> None:
    """One broken file does not hide the others, and is not skipped either."""
    fleet.policy(name="a")
    fleet.file("b.yaml", "x: [")
    fleet.file("c.yaml", "kind: PolicyLayer\nmetadata: {name: a}\n")
    assert [path.name for path in policy_files(fleet.folder, "policies")] == ["a.yaml", "b.yaml", "c.yaml"]


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    """A missing policies/ is an error; an empty one is not a policy."""
    with pytest.raises(InputError) as caught:
        policy_files(tmp_path / "policies", "policies")
    assert caught.value.findings[0].remedy
    assert caught.value.findings[0].location == Location("policies")
    (tmp_path / "empty").mkdir()
    assert policy_files(tmp_path / "empty", "empty") == []


def test_a_valid_policy_imports_no_diagnostics(fleet: Fleet) -> None:
    """What only mistakes need is not loaded for a good policy."""
    import subprocess
    import sys

    path = fleet.policy("  extends: [base]\n")
    fleet.layer("base")
    code = (
        "import sys, pathlib; from gpustack.policy.loading.load import load;"
        f"load(pathlib.Path({str(path)!r}), root=pathlib.Path('.'));"
        "names = {'diagnose', 'suggest', 'syntax', 'foreign', 'explain'};"
        "print(*(name for name in names if f'gpustack.policy.{name}' in sys.modules), 'ruamel.yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_loading_shares_what_it_read(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one memo, each policy is read once."""
    reads: list[str] = []
    real = read

    def counted(path: Path, display: str) -> Any:
        reads.append(display)
        return real(path, display)

    monkeypatch.setattr(load_module, "read", counted)
    memo = Memo()
    fleet.policy()
    for path in policy_files(fleet.folder, "policies") * 2:
        load(path, root=fleet.folder, memo=memo)
    assert reads == ["prod.yaml"]
