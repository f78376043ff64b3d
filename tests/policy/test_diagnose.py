"""What pydantic refuses, said to the person who wrote it: where, what is wanted, and what to write instead."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from gpustack.catalog import chart
from gpustack.model import Finding, InputError, Location
from gpustack.policy.language.spec import ClusterPolicySpec
from gpustack.policy.loading import defaults, derived, diagnose, suggest
from gpustack.policy.loading.layers import Part, merge
from gpustack.policy.loading.load import load
from gpustack.policy.loading.suggest import remedy
from tests.policy.fleet import BODY, HEAD, Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """An empty fleet."""
    return Fleet(tmp_path)


# --- unknown keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "path", "meant"),
    [
        ("drivr:", "drivr", "driver"),
        ("toolkit: {envs: null}", "toolkit.envs", "toolkit.env"),
        ("nodePools: [{name: a, gpuProdukt: ~}]", "nodePools[0].gpuProdukt", "nodePools[0].gpuProduct"),
    ],
)
def test_unknown_keys_without_a_value(body: str, path: str, meant: str, fleet: Fleet) -> None:
    """A key that the language doesn't have is one whatever it holds: null is absence of a value, not of a mistake."""
    found = fleet.mistake(f"  {body}\n")
    assert (found.rule, found.path) == ("GPU016", f"spec.{path}")
    assert f"spec.{meant}" in found.remedy
    assert found.location is not None
    assert found.location.line


@pytest.mark.parametrize("body", ["driver:", "toolkit: {env: }", "daemonsets: {labels: {team: }}"])
def test_known_keys_without_a_value(body: str, fleet: Fleet) -> None:
    """What the language has, and a key that is free, may have no value."""
    fleet.load(f"  {body}\n")


@pytest.mark.parametrize(
    ("body", "path", "meant"),
    [
        # a typing error, in the same section
        ("drivr: {enabled: true}", "drivr", "driver"),
        ("driver: {verison: x}", "driver.verison", "driver.version"),
        ("dcgm: {imagePullPolcy: Always}", "dcgm.imagePullPolcy", "dcgm.imagePullPolicy"),
        # another spelling
        ("driver: {Version: x}", "driver.Version", "driver.version"),
        ("driver: {use_precompiled: true}", "driver.use_precompiled", "driver.usePrecompiled"),
        ("nodepools: []", "nodepools", "nodePools"),
        # the right key in the wrong section
        ("rdma: {enabled: true}", "rdma", "driver.rdma"),
        ("driver: {rdmaEnabled: true}", "driver.rdmaEnabled", "driver.rdma.enabled"),
        ("driver.version: x", '["driver.version"]', "driver.version"),
        ("kubernetesVersion: x", "kubernetesVersion", "cluster.kubernetesVersion"),
        ("toolkit: {tolerations: []}", "toolkit.tolerations", "daemonsets.tolerations"),
        # a word of the right key, and the right key below what a pool has
        ("ccManager: {mode: 'on'}", "ccManager.mode", "ccManager.defaultMode"),
        ("operator: {class: x}", "operator.class", "operator.runtimeClass"),
        ("nodePools: [{name: a, gpu: NVIDIA-A10}]", "nodePools[0].gpu", "nodePools[0].gpuProduct"),
        ("nodePools: [{name: a, mig: {layout: {1g.5gb: 7}}}]", "nodePools[0].mig", "nodePools[].sharing.mig"),
        ("nodePools: [{name: a, windows: []}]", "nodePools[0].windows", "nodePools[].upgrade.windows"),
        ("driver: {use_ocp_driver_toolkit: true}", "driver.use_ocp_driver_toolkit", "operator.use_ocp_driver_toolkit"),
        # names of the chart's values (chart_names.yaml)
        ("driver: {nvidiaDriverCRD: {enabled: true}}", "driver.nvidiaDriverCRD", "driver.useNvidiaDriverCRD"),
        (
            "driver: {upgradePolicy: {gpuPodDeletion: {force: true}}}",
            "driver.upgradePolicy.gpuPodDeletion",
            "driver.upgradePolicy.podDeletion",
        ),
        ("draDriver: {}", "draDriver", "gpuCluster.draDriver"),
        ("node-feature-discovery: {}", "node-feature-discovery", "nfd"),
        (
            "drivers: [{name: a, repoConfig: {configMapName: x}}]",
            "drivers[0].repoConfig.configMapName",
            "drivers[0].repoConfig.name",
        ),
    ],
)
def test_unknown_keys_name_the_one_that_was_meant(body: str, path: str, meant: str, fleet: Fleet) -> None:
    """The key's own place, and the path that was meant: a typing error, another spelling or section, a chart's name."""
    found = fleet.mistake(f"  {body}\n")
    key = path.rpartition(".")[2] if '"' not in path else "driver.version"
    assert (found.rule, found.path.removeprefix("spec").removeprefix(".")) == ("GPU016", path)
    assert found.location == Location("prod.yaml", BODY, 3 + body.index(key), f"  {body}")
    assert found.path in found.what
    assert found.remedy.startswith(f"did you mean spec.{meant}")


NODES = "write it where nodes are described: spec.nodePools[].nodeSelector, or spec.drivers[].nodeSelector"


@pytest.mark.parametrize(
    ("body", "remedy"),
    [
        ("driver: {tolerations: [{key: a}]}", "did you mean spec.daemonsets.tolerations?"),
        ("devicePlugin: {priorityClassName: high}", "did you mean spec.daemonsets.priorityClassName?"),
        ("gpuCluster: {dcgm: {priorityClassName: high}}", "did you mean spec.gpuCluster.daemonsets.priorityClassName?"),
        ("nfd: {nodeSelector: {a: b}}", "did you mean spec.nfd.master.nodeSelector or spec.nfd.worker.nodeSelector?"),
        ("platform: openshift", "write spec.cluster.platform: openshift instead"),
        ("driver: {manager: {nodeSelector: {a: b}}}", NODES),
    ],
)
def test_settings_of_pods_and_of_nodes(body: str, remedy: str, fleet: Fleet) -> None:
    """Pods of NVIDIA's components are described by daemonsets alone (operator.md 5.1), those of NFD each by itself."""
    assert fleet.mistake(f"  {body}\n").remedy == remedy


@pytest.mark.parametrize("section", ["toolkit", "nfd", "reconciler"])
def test_accounts_are_nobodys(section: str, fleet: Fleet) -> None:
    """No component's ServiceAccount has a field; that of Flux is about something else."""
    assert "flux" not in fleet.mistake(f"  {section}: {{serviceAccount: x}}\n").remedy


def test_a_section_elsewhere_is_chosen_by_what_stands_below_it(fleet: Fleet) -> None:
    """`config` is the name of several sections; the one that has the keys which were written is meant."""
    assert "spec.dcgmExporter.hpcJobMapping" in fleet.mistake("  hpcJobMapping: {directory: /x}\n").remedy
    assert "migManager.gpuClientsConfig" in fleet.mistake("  mig: {gpuClientsConfig: {name: x}}\n").remedy


@pytest.mark.parametrize("key", ["image", "enabled", "xyz", "a"])
def test_a_key_that_could_mean_anything_lists_the_section(key: str, fleet: Fleet) -> None:
    """Where a guess would be as good as any other there is none, but the keys that the section has."""
    found = fleet.mistake(f"  mig: {{{key}: x}}\n")
    assert found.remedy == "spec.mig has strategy"


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        # where a default has items of another kind (each mistake is told once, at its place)
        ("daemonsets: {tolerations: [{name: a, key: a}]}", "effect, key, operator, tolerationSeconds, value"),
        ("kubevirt: {mediatedDevices: [{name: a, selector: b}]}", "externalResourceProvider, name, resourceName"),
    ],
)
def test_an_item_of_a_list_is_not_sent_to_another_list(body: str, keys: str, fleet: Fleet) -> None:
    """What is said of a toleration or a device is one of its own fields, and no field of another list's items."""
    assert any(each.remedy.endswith(f"has {keys}") for each in fleet.refused(fleet.policy(f"  {body}\n")))


@pytest.mark.parametrize("key", ["cleanupCRD", "upgradeCRD", "affinity", "logging"])
def test_values_about_the_operators_own_pod_are_to_be_deleted(key: str, fleet: Fleet) -> None:
    """There is no operator to configure; the message says what the chart did with the value."""
    found = fleet.mistake(f"  operator: {{{key}: x}}\n")
    assert found.remedy.startswith("delete it")


def test_values_of_a_bundling_chart_are_to_be_moved(fleet: Fleet) -> None:
    """An umbrella chart has the operator's values below its name."""
    assert "move" in fleet.mistake("  gpu-operator: {driver: {enabled: false}}\n").remedy


def test_the_chart_s_names_lead_to_fields_that_exist() -> None:
    """Every name on the right of the table is a field of the language, and none on the left is; but that in a values
    file operator.annotations are the operator's own pod's, and in a ClusterPolicy its components'."""
    paths = set(suggest.all_paths(ClusterPolicySpec))
    inside = {path.removeprefix("drivers[].") for path in paths if path.startswith("drivers[].")}
    assert chart.renamed()
    assert set(chart.renamed().values()) <= paths
    assert set(chart.renamed("drivers").values()) <= inside
    assert not set(chart.renamed()) & paths
    assert not set(chart.renamed("drivers")) & inside
    assert set(chart.dropped()) & paths == {"operator.annotations"}


def test_paths_of_the_language_are_found_by_walking_the_models() -> None:
    """Sections, lists of sections and fields below optional sections are all there; free maps end a path."""
    paths = suggest.all_paths(ClusterPolicySpec)
    for path in (
        "driver.rdma.enabled",
        "nodePools[].sharing.mig.layout",
        "gpuCluster.draDriver.version",
        "extraObjects",
    ):
        assert path in paths
    assert not any(path.startswith(("extraObjects[]", "nodePools[].nodeSelector.")) for path in paths)
    assert set(suggest.keys_at(ClusterPolicySpec, ("nodePools", 3, "sharing"))) == {"timeSlicing", "mps", "mig"}
    assert list(suggest.keys_at(ClusterPolicySpec, ("nodePools", "x"))) == []
    assert list(suggest.keys_at(ClusterPolicySpec, ("daemonsets", "labels"))) == []


# --- wrong types ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "column", "what", "remedy"),
    [
        ('driver: {enabled: "true"}', 21, 'the text "true"', "did you mean true (no quotes)?"),
        ("driver: {enabled: 'False'}", 21, 'the text "False"', "did you mean false (no quotes)?"),
        ("driver: {enabled: yes}", 21, 'the text "yes"', "did you mean true?"),
        ("driver: {enabled: off}", 21, 'the text "off"', "did you mean false?"),
        ("driver: {enabled: 1}", 21, "the number 1", "did you mean true?"),
        ("driver: {enabled: maybe}", 21, 'the text "maybe"', "write true or false"),
        ("driver: {enabled: []}", 12, "a list", "write true or false"),
        ("driver: {version: 595}", 21, "the number 595", 'put it in quotes: "595"'),
        ("driver: {version: 1.30}", 21, "the number 1.30", 'put it in quotes: "1.30"'),
        ("driver: {version: 0x1F}", 21, "the number 0x1F", 'put it in quotes: "0x1F"'),
        ("driver: {version: true}", 21, "the boolean true", 'put it in quotes: "true"'),
        (
            "nodePools: [{name: a, os: {a: b}}]",
            25,
            "a mapping",
            "write a text; it has the key a below it: check the indentation",
        ),
        ('nodePools: [{name: a, gpusPerNode: "8"}]', 38, 'the text "8"', "did you mean 8 (no quotes)?"),
        ("nodePools: [{name: a, gpusPerNode: 8.0}]", 38, "the number 8.0", "did you mean 8?"),
        ("nodePools: [{name: a, gpusPerNode: 8.5}]", 38, "the number 8.5", "write a whole number"),
        ("nodePools: [{name: a, gpusPerNode: true}]", 38, "the boolean true", "write a whole number"),
        ("nodePools: {name: a}", 3, "a mapping", "put a dash before each item"),
        ("nodePools: training", 14, 'the text "training"', "did you mean [training]?"),
        ("nodePools: [training]", 15, 'the text "training"', "write its fields below it, indented, without dashes"),
        ("daemonsets: {labels: {a: 1}}", 28, "the number 1", 'put it in quotes: "1"'),
        ("daemonsets: {labels: [a]}", 16, "a list", "write its fields below it, indented, without dashes"),
        ("driver: {args: [1]}", 19, "the number 1", 'put it in quotes: "1"'),
    ],
)
def test_wrong_types_say_what_to_write(body: str, column: int, what: str, remedy: str, fleet: Fleet) -> None:
    """The value as it was written, what it is, and the value that was meant, at its own place."""
    found = fleet.mistake(f"  {body}\n")
    assert found.rule == "GPU017"
    assert found.location == Location("prod.yaml", BODY, column, f"  {body}")
    assert what in found.what
    assert found.remedy == remedy


def test_a_section_that_is_a_value_is_told_to_have_fields(fleet: Fleet) -> None:
    """`driver: true` meets a section of the defaults: the policy is wrong, and its other mistakes are told too."""
    found, other = fleet.refused(fleet.policy("  driver: true\n  drivr: 1\n"))
    assert found.location == Location("prod.yaml", BODY, 3, "  driver: true")
    assert "spec.driver must be a mapping" in found.what
    assert found.why == "it is a mapping by default (own default)"
    assert found.remedy == "did you mean {enabled: true}?"
    assert other.path == "spec.drivr"
    assert "fields below it" in fleet.mistake("  driver: [a]\n").remedy
    assert "fields below it" in fleet.mistake("  nfd: [a]\n").remedy


# --- wrong values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "column", "what", "remedy"),
    [
        ("mig: {strategy: Mixed}", 19, "one of none, single, mixed", "did you mean mixed?"),
        ("mig: {strategy: mixd}", 19, "one of none, single, mixed", "did you mean mixed?"),
        ("mig: {strategy: xyz}", 19, 'the text "xyz"', "write one of none, single, mixed"),
        (
            "nodePools: [{name: a, gpusPerNode: 0}]",
            38,
            "at least 1, not the number 0",
            "write a number that is at least 1",
        ),
        ("nodePools: [{name: a, upgrade: {windows: [{start: '1:00', hours: 1}]}}]", 53, "'1:00'", ""),
        ("driver: {repository: https://x}", 24, "image repository", "leave out the scheme"),
        ('daemonsets: {labels: {"a b": x}}', 25, "the key of", ""),
    ],
)
def test_wrong_values_say_what_is_allowed(body: str, column: int, what: str, remedy: str, fleet: Fleet) -> None:
    """A value that is none of a few names the nearest; a bound or a form is said; a rule's own remedy is passed on."""
    found = fleet.mistake(f"  {body}\n")
    assert found.rule == "GPU018"
    assert found.location == Location("prod.yaml", BODY, column, f"  {body}")
    assert what in found.what
    assert found.remedy == remedy if remedy else found.remedy


def test_a_missing_field_is_told_at_its_section(fleet: Fleet) -> None:
    """What has no default and is not there is told where it would stand."""
    found = fleet.mistake("  nodePools:\n  - os: ubuntu22.04\n")
    assert (found.rule, found.path) == ("GPU017", "spec.nodePools[0].name")
    assert found.location == Location("prod.yaml", BODY + 1, 5, "  - os: ubuntu22.04")
    assert "add name" in found.remedy


def test_a_rule_over_a_section_is_told_at_its_key(fleet: Fleet) -> None:
    """What two fields of a section say together is told at the section, wherever its parts come from."""
    fleet.layer("base", "  nodePools:\n  - name: a\n    sharing: {mps: {replicas: 2}}\n")
    found = fleet.mistake("  extends: [base]\n  nodePools:\n  - name: a\n    sharing: {timeSlicing: {replicas: 2}}\n")
    assert (found.rule, found.path) == ("GPU018", "spec.nodePools[0].sharing")
    assert found.location == Location("prod.yaml", BODY + 3, 5, "    sharing: {timeSlicing: {replicas: 2}}")


# --- where ----------------------------------------------------------------------------------------------------------


def test_a_mistake_in_a_layer_is_told_in_the_layer(fleet: Fleet) -> None:
    """The file and line are those of the layer that says it, also for an item that moved in a merged list."""
    fleet.layer("base", "  nodePools:\n  - name: b\n    gpuProduct: 22\n")
    found = fleet.mistake("  extends: [base]\n  nodePools: [{name: a}, {name: b, arch: arm64}]\n")
    assert found.location == Location("layers/base.yaml", 7, 17, "    gpuProduct: 22")
    assert found.remedy == 'put it in quotes: "22"'


def test_a_layer_that_is_overridden_is_not_blamed(fleet: Fleet) -> None:
    """Only what counts is validated: a value that the policy replaces is nobody's mistake."""
    fleet.layer("base", "  driver: {version: 595}\n")
    assert fleet.load("  extends: [base]\n  driver: {version: '595'}\n").spec.driver.version == "595"


def test_a_default_that_is_wrong_says_whose_it_is(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that the user never wrote is told at the line that brought it in, with its origin."""
    part = defaults._release_part("v26.7.0")
    broken = dataclasses.replace(part, data={**part.data, "mig": {"strategy": 3, "stratgy": 1}})
    monkeypatch.setattr(defaults, "_release_part", lambda name: broken)
    for found in fleet.refused(fleet.policy()):
        assert found.location == Location("prod.yaml", 5, 12, "  release: v26.7.0")
        assert "release v26.7.0" in found.why


def test_a_derived_value_that_is_wrong_says_from_what(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A derived default is told at what it was derived from."""
    rule = lambda spec: iter([derived.Derived(("mig", "strategy"), 3, ("nodePools", 0))])  # noqa: E731
    monkeypatch.setattr(defaults, "DERIVED", (rule,))
    found = fleet.mistake("  nodePools:\n  - name: a\n")
    assert found.location == Location("prod.yaml", BODY + 1, 5, "  - name: a")
    assert "derived from spec.nodePools[0]" in found.why


def test_positions_survive_every_style(fleet: Fleet) -> None:
    """CRLF, a byte order mark, anchors, merge keys and quoted keys: the place is still the value's."""
    head = fleet.policy().read_text().replace("\n", "\r\n")
    body = '  driver: &d {"version": 595}\r\n  toolkit:\r\n    <<: *d\r\n    enabled: true\r\n'
    first, second = fleet.refused(fleet.file("f.yaml", "\ufeff" + head + body))
    assert first.location == Location("f.yaml", BODY, 26, '  driver: &d {"version": 595}')
    assert second.path == "spec.toolkit.version"
    assert second.location == first.location


def test_all_mistakes_come_at_once_in_the_order_of_the_lines(fleet: Fleet) -> None:
    """The policy's mistakes first, by line, then those of each layer; each place once."""
    fleet.layer("one", "  mig: {strategy: x}\n")
    fleet.layer("two", "  cdi: {enabled: x}\n")
    body = "  extends: [one, two]\n  toolkit: {version: 1, enabld: true}\n  nodePools: [{name: A}]\n"
    body += "  driver: {enabled: x}\n"
    found = fleet.refused(fleet.policy(body))
    places = [(one.location.file, one.location.line) for one in found if one.location]
    policy, first, second = "prod.yaml", "layers/one.yaml", "layers/two.yaml"
    assert places == [(policy, 8), (policy, 8), (policy, 9), (policy, 10), (first, 5), (second, 5)]
    assert len({one.path for one in found}) == len(found)


def test_there_is_an_end_to_mistakes(fleet: Fleet) -> None:
    """A file with a hundred thousand unknown keys is answered within seconds, with as many as anybody reads."""
    found = fleet.refused(fleet.policy("  driver:\n" + "".join(f"    k{number}: 1\n" for number in range(20_000))))
    assert len(found) == diagnose.MOST


# --- models that the language does not have yet ---------------------------------------------------------------------


class Inner(BaseModel, extra="forbid", strict=True):
    """A section."""

    size: int = 0
    depth: int = 0


class Other(BaseModel, extra="forbid", strict=True):
    """A section with the same name for something else."""

    colour: str = ""


class Holder(BaseModel, extra="forbid", strict=True):
    """Has a section of each."""

    box: Inner = Inner()


class Shelf(BaseModel, extra="forbid", strict=True):
    """Has the other section, and a list."""

    box: Other = Other()
    many: list[Inner] = []


class Root(BaseModel, extra="forbid", strict=True):
    """A language with unions and with one name in many places."""

    left: Holder = Holder()
    right: Shelf = Shelf()
    choice: int | Inner | list[Inner] | None = None
    many: Other = Other()


def told(data: dict[str, Any]) -> list[Finding]:
    """What is said about DATA as a Root."""
    with pytest.raises(ValidationError) as caught:
        Root.model_validate(data)
    return diagnose.diagnose(caught.value, merge([Part("policy", "f", data)]), Root)


def test_a_union_is_one_mistake() -> None:
    """Of the alternatives of a field, the one that came furthest is told, and the data's own path."""
    (found,) = told({"choice": {"size": "x"}})
    assert (found.path, found.rule) == ("spec.choice.size", "GPU017")
    (found,) = told({"choice": {"sise": 1}})
    assert (found.path, found.rule) == ("spec.choice.sise", "GPU016")
    (found,) = told({"choice": [{"size": 1}, {"size": "x"}]})
    assert found.path == "spec.choice[1].size"
    (found,) = told({"choice": "x"})
    assert found.path == "spec.choice"


def test_the_keys_below_tell_which_section_is_meant() -> None:
    """Of sections of one name, the one that has the keys that were written; else the nearer, else the more general."""
    assert suggest.remedy(Root, ("box",), {"size": 1, "depth": 2}) == "did you mean spec.left.box?"
    assert suggest.remedy(Root, ("box",), {"colour": "x"}) == "did you mean spec.right.box?"
    assert suggest.remedy(Root, ("box",), {}) == "did you mean spec.left.box or spec.right.box?"
    assert suggest.remedy(Root, ("right", "many", 0, "colour")) == "did you mean spec.right.box.colour?"
    assert suggest.remedy(Root, ("left", "colour")) == "did you mean spec.many.colour?"
    assert suggest.remedy(Root, ("many", "size")) == "did you mean spec.choice.size?"


# --- anything at all ------------------------------------------------------------------------------------------------

WORDS = st.sampled_from("driver enabled version rdma env name nodePools sharing mig layout labels count x".split())
VALUES = st.recursive(
    st.sampled_from(["true", "'true'", "1", "1.30", "x", "''", "~", "-1"]),
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(WORDS, inner, max_size=3).map(
            lambda d: "{" + ", ".join(f"{k}: {v}" for k, v in d.items()) + "}"
        )
    ),
    max_leaves=6,
)
SECTIONS = sorted(ClusterPolicySpec.model_fields.keys() - {"release"})


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spec=st.dictionaries(st.sampled_from(SECTIONS), VALUES, min_size=1, max_size=3))
def test_random_specs_end_in_a_spec_or_in_findings(spec: dict[str, str], tmp_path: Path) -> None:
    """Whatever stands in a spec, it is valid or refused with places and remedies; nothing else is ever raised."""
    spec.setdefault("cluster", '{kubernetesVersion: "1.34"}')
    lines = "".join(f"  {key}: {value}\n" for key, value in spec.items())
    path = tmp_path / "p.yaml"
    path.write_text(f"{HEAD.format(kind='ClusterPolicy', name='a')}  release: v26.7.0\n{lines}")
    try:
        load(path, root=tmp_path)
    except InputError as error:
        for found in error.findings:
            assert found.remedy
            assert found.location is not None
            assert found.location.line is not None
            line = path.read_text().split("\n")[found.location.line - 1]
            hidden = found.path.startswith("spec.secrets") and found.location.text is None
            assert hidden or line == found.location.text


@pytest.mark.parametrize(
    ("path", "value", "wanted", "never"),
    [
        (("driver", "nodeSelector"), {"a": "b"}, "spec.nodePools[].nodeSelector", "reconciler"),
        (("operator", "nodeSelector"), {"a": "b"}, "operator's own pod", "reconciler"),
        (("manager",), {"enabled": True}, "spec.driver.manager", "ccManager?"),
        (("cert-manager",), {"enabled": True}, "spec has", "ccManager?"),
        (("platform",), {"openshift": False}, "delete it", "cluster.openshift"),
        (("platform",), {"openshift": True}, "spec.cluster.platform: openshift", "cluster.openshift"),
    ],
)
def test_remedies_that_are_not_refused(path: tuple[str, ...], value: object, wanted: str, never: str) -> None:
    """A suggestion is about the same thing, and what it says can be written."""
    text = remedy(ClusterPolicySpec, path, value)
    assert wanted in text
    assert never not in text


@pytest.mark.parametrize(
    ("body", "path", "what", "remedy"),
    [
        (
            "tenancy: {tenants: [{name: a, pools: {p: {share: 25}}}]}",
            "tenancy.tenants[0].pools.p.share",
            "1% to 100%",
            "25%",
        ),
        ("reconciler: {health: {maxShare: 5}}", "reconciler.health.maxShare", "1% to 100%", "write 5%"),
        ("driver: {env: [{name: A, value: 1.50}]}", "driver.env[0].value", "must be a text", '"1.50"'),
        ("reconciler: {prepull: {maxUnavailable: 0}}", "reconciler.prepull.maxUnavailable", "a number from 1", ""),
        (
            'reconciler: {prepull: {maxUnavailable: "3"}}',
            "reconciler.prepull.maxUnavailable",
            "",
            "leave out the quotes",
        ),
        (
            "tenancy: {tenants: [{name: a}, {name: b, namespace: a}]}",
            "tenancy.tenants[1].namespace",
            "namespace a",
            "a namespace",
        ),
        (
            "tenancy: {tenants: [{name: b, namespace: a}, {name: a}]}",
            "tenancy.tenants[1].name",
            "namespace a",
            "a namespace",
        ),
    ],
)
def test_what_is_said_to_do_does(body: str, path: str, what: str, remedy: str, fleet: Fleet) -> None:
    """Quotes are advised only where the text would be taken, and a name is blamed only where it is the name."""
    found = fleet.mistake(f"  {body}\n")
    assert found.path == f"spec.{path}"
    assert what in found.what
    assert remedy in found.remedy
