"""The policy models: every field of the operator, nothing that it lacks, and mistakes refused where they are."""

from __future__ import annotations

import copy
import pathlib
import pickle
import subprocess
import sys
import types
import typing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gpustack.catalog import fields as catalog
from gpustack.catalog import releases
from gpustack.policy.help.describe import descriptions, models, nested, summary
from gpustack.policy.help.schema import shape
from gpustack.policy.language.base import Section
from gpustack.policy.language.forms import form
from gpustack.policy.language.spec import ClusterPolicy, ClusterPolicySpec, PolicyLayer
from gpustack.policy.language.types import HOST_PATH, QUANTITY
from tests.policy.mistakes import COMBINATIONS, MISTAKES, pool

SMALLEST: dict[str, Any] = {"release": "v26.7.0", "cluster": {"kubernetesVersion": "1.34"}}
REPOSITORY = pathlib.Path(__file__).parents[2]

# What the chart has and the custom resource has not (DESIGN 3: inline configurations under the chart's keys).
FROM_THE_CHART = {
    f"{section}.{key}"
    for section in (
        "dcgmExporter.config",
        "devicePlugin.config",
        "migManager.config",
        "migManager.gpuClientsConfig",
        "vgpuDeviceManager.config",
    )
    for key in ("create", "data")
}
OF_OURS = {
    *(
        "release",
        "defaults",
        "compat",
        "cluster",
        "nodePools",
        "nfd",
        "extraObjects",
        "constructs",
        "references",
        "drivers",
        "gpuCluster",
        "computeDomains",
    ),
    "driver.hostVersion",
    *("reconciler", "guards", "gitops", "alerts", "dashboards", "tenancy", "kubevirt", "carried", "secrets", "verify"),
}


def spec(**sections: Any) -> ClusterPolicySpec:
    """The smallest spec with SECTIONS besides."""
    cluster = sections.pop("cluster", {})
    return ClusterPolicySpec.model_validate({**SMALLEST, **sections, "cluster": {**SMALLEST["cluster"], **cluster}})


def policy(name: str) -> dict[str, Any]:
    """The smallest policy of a cluster called NAME."""
    return {
        "apiVersion": "gpustack.dev/v1alpha1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": SMALLEST,
    }


def plain(annotation: Any) -> Any:
    """ANNOTATION without `| None` and without what `Annotated` adds."""
    while True:
        if typing.get_origin(annotation) is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif typing.get_origin(annotation) in (typing.Union, types.UnionType) and type(None) in typing.get_args(
            annotation
        ):
            rest = [option for option in typing.get_args(annotation) if option is not type(None)]
            annotation = typing.Union[tuple(rest)]  # noqa: UP007  # a union of a tuple has no other spelling
        else:
            return annotation


def kind(model: type[Section], path: str) -> tuple[str, tuple[Any, ...]]:
    """The API's word for the type of the field at PATH ("env[].name") of MODEL, and its allowed values."""
    annotation: Any = model
    for step in path.split("."):
        name = step.removesuffix("[]")
        annotation = plain(plain(annotation).model_fields[name].annotation)
        if step.endswith("[]"):
            annotation = typing.get_args(annotation)[0]
    found = shape(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        return "string", typing.get_args(annotation)
    if found.get("anyOf"):
        return "int-or-string", ()
    return found.get("type", "object"), ()


def paths(model: type[Section], prefix: str = "") -> typing.Iterator[str]:
    """All paths below MODEL, in the catalogue's spelling."""
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        listed = typing.get_origin(plain(field.annotation)) is list
        for inner in nested(field.annotation):
            yield from paths(inner, f"{prefix}{name}{'[]' if listed else ''}.")


@pytest.mark.parametrize(
    ("custom_resource", "count", "below"),
    [("ClusterPolicy", 391, ""), ("NVIDIADriver", 123, "drivers[]."), ("GPUCluster", 104, "gpuCluster.")],
)
def test_fields_of_the_operator(custom_resource: str, count: int, below: str) -> None:
    """Every field of the operator's API is there, of the same type and with the same values allowed."""
    leaves = catalog.leaves(custom_resource)
    assert len(leaves) == count
    wrong = {}
    for path in leaves:
        facts = catalog.fields(custom_resource)[path]
        found, values = kind(ClusterPolicySpec, below + path)
        if found != facts.type or not set(facts.enum) <= set(values or facts.enum):
            wrong[path] = (found, values, facts)
    assert not wrong


def test_no_field_that_the_operator_lacks() -> None:
    """A section of the operator's has no field that does nothing there, but for the chart's inline configurations."""
    known = set(catalog.fields("ClusterPolicy")) | FROM_THE_CHART | OF_OURS
    surplus = {path for path in paths(ClusterPolicySpec) if path.partition(".")[0].removesuffix("[]") not in OF_OURS}
    assert surplus - known == set()


def test_no_default_is_made_by_a_type() -> None:
    """pydantic reads a factory's signature for each field: that of `list` or `dict` is a text, which it would parse."""
    fields = [field for model in models(ClusterPolicy) for field in model.model_fields.values()]
    assert len(fields) > 500
    assert not [field for field in fields if isinstance(field.default_factory, type)]


@pytest.mark.parametrize("name", releases.names())
def test_defaults_of_each_release(name: str) -> None:
    """What the chart of each release writes, empty texts included, is a valid spec that comes out as it went in."""
    defaults = releases.release(name).default_spec()
    given_spec = {**SMALLEST, "release": name, **defaults}
    assert ClusterPolicySpec.model_validate(given_spec).model_dump(exclude_unset=True) == given_spec


@pytest.mark.parametrize("root", [ClusterPolicySpec, PolicyLayer])
def test_descriptions(root: type[Section]) -> None:
    """Every model and field is described, and every field that may be absent says what that means."""
    for model in models(root):
        assert summary(model).endswith("."), model
        texts = descriptions(model)
        for name, field in model.model_fields.items():
            assert texts[name].endswith("."), (model, name)
            is_section = isinstance(field.annotation, type) and issubclass(field.annotation, Section)
            says = "Absent" in texts[name] or "no default" in texts[name]
            assert says or is_section or field.is_required(), (model, name)


def test_names_of_models() -> None:
    """No two models have the same name: the schema and the docs call them by it."""
    names = [model.__name__ for model in models(ClusterPolicy)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("sections", "place", "word"), MISTAKES + COMBINATIONS)
def test_mistakes(sections: dict[str, Any], place: tuple[str | int, ...], word: str) -> None:
    """A typical mistake is refused, once, at its own place and in words that name it."""
    with pytest.raises(ValidationError) as caught:
        spec(**sections)
    (error,) = caught.value.errors()
    assert error["loc"] == place
    assert word in error["msg"]


@pytest.mark.parametrize(
    ("sections", "remedy"),
    [
        ({"driver": {"resources": {"limits": {"memory": "4GB"}}}}, "leave out the B"),
        ({"driver": {"resources": {"limits": {"cpu": 0.5}}}}, 'in quotes: "0.5"'),
        ({"dcgmExporter": {"serviceMonitor": {"interval": "15"}}}, "15s"),
        ({"driver": {"upgradePolicy": {"maxUnavailable": "1"}}}, "leave out the quotes"),
        ({"driver": {"repository": "https://a.b/c"}}, "leave out the scheme"),
        ({"release": "26.7.0"}, "put a v before it"),
        (pool(sharing={"timeSlicing": {"replicas": 1}}), "leave out"),
        (pool(sharing={"mig": {"layout": {"all-1g.10gb": 1}}}), "mig: {config: ...}"),
        (pool(sharing={"mps": {"replicas": 2}, "mig": {"config": "a"}}), "timeSlicing"),
    ],
)
def test_remedies(sections: dict[str, Any], remedy: str) -> None:
    """For mistakes that people make often, the error carries what to write instead."""
    with pytest.raises(ValidationError) as caught:
        spec(**sections)
    assert remedy in caught.value.errors()[0]["ctx"]["remedy"]


@pytest.mark.parametrize(
    ("given_null", "absent"),
    [
        ({"driver": None}, {}),
        ({"gpuCluster": None, "extraObjects": None}, {}),
        ({"driver": {"env": None, "enabled": None, "rdma": None}}, {"driver": {}}),
        ({"daemonsets": {"labels": {"a": None, "b": "c"}}}, {"daemonsets": {"labels": {"b": "c"}}}),
        ({"driver": {"env": [{"name": "A", "value": None}]}}, {"driver": {"env": [{"name": "A"}]}}),
        (
            pool(sharing={"mps": None, "mig": {"layout": {"1g.5gb": 7, "2g.10gb": None}}}),
            pool(sharing={"mig": {"layout": {"1g.5gb": 7}}}),
        ),
        (pool(count=None, nodeSelector=None), pool()),
    ],
)
def test_null_is_absence(given_null: dict[str, Any], absent: dict[str, Any]) -> None:
    """null counts as absent, wherever it stands."""
    before = copy.deepcopy(given_null)
    assert spec(**given_null) == spec(**absent)
    assert given_null == before


def test_absent_sections() -> None:
    """An absent section can be read like an empty one; where presence has a meaning, absent is None."""
    found = spec()
    assert found.driver.rdma.enabled is None
    assert found.driver.env == []
    assert found.daemonsets.labels == {}
    presence = [found.driver.resources, found.driver.startupProbe, found.gpuCluster, found.cluster.openshift]
    assert presence == [None, None, None, None]
    assert found.cluster.namespace == "gpu-operator"
    assert found.model_dump(exclude_unset=True) == SMALLEST


def test_frozen() -> None:
    """A spec can't be changed by accident."""
    with pytest.raises(ValidationError, match="frozen"):
        setattr(spec().driver, "enabled", True)  # noqa: B010  # mypy knows, too, that it is frozen


def test_pickled() -> None:
    """A spec travels to another process and back."""
    found = spec(
        driver={"env": [{"name": "A", "value": "b"}]}, **pool(count=3, sharing={"mig": {"config": "all-1g.5gb"}})
    )
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301  # our own bytes


def test_sharing() -> None:
    """Exclusive is what you get when nothing is said; time-slicing goes with MIG instances."""
    (exclusive,) = spec(**pool()).nodePools
    assert exclusive.sharing.exclusive
    (mixed,) = spec(
        **pool(sharing={"mig": {"layout": {"3g.40gb": 1, "2g.20gb": 2}}, "timeSlicing": {"replicas": 2}})
    ).nodePools
    assert not mixed.sharing.exclusive
    assert mixed.sharing.mig is not None
    assert mixed.sharing.mig.layout == {"3g.40gb": 1, "2g.20gb": 2}
    (groups,) = spec(
        **pool(sharing={"mig": {"devices": [{"indices": [0], "layout": {"7g.80gb": 1}}, {"indices": [1]}]}})
    ).nodePools
    assert groups.sharing.mig is not None
    assert [group.layout for group in groups.sharing.mig.devices] == [{"7g.80gb": 1}, None]


def test_count() -> None:
    """A number of nodes is both bounds, so that specs which mean the same are equal."""
    assert spec(**pool(count=3)) == spec(**pool(count={"min": 3, "max": 3}))
    (found,) = spec(**pool(count={"min": 0, "max": 8})).nodePools
    assert found.count is not None
    assert (found.count.min, found.count.max) == (0, 8)


@pytest.mark.parametrize("missing", ["release", "cluster"])
def test_required(missing: str) -> None:
    """A cluster's spec says its release and its version of Kubernetes; a layer need not."""
    some = {key: value for key, value in SMALLEST.items() if key != missing}
    with pytest.raises(ValidationError, match="Field required"):
        ClusterPolicySpec.model_validate(some)
    layer = {"apiVersion": "gpustack.dev/v1alpha1", "kind": "PolicyLayer", "spec": some}
    assert PolicyLayer.model_validate(layer).spec.model_dump(exclude_unset=True) == some


def test_metrics_as_text() -> None:
    """The list of metrics can be the text that the chart takes, or stand under its key."""
    as_text = spec(dcgmExporter={"config": {"data": "DCGM_FI_DEV_GPU_TEMP, gauge, t"}})
    assert as_text == spec(dcgmExporter={"config": {"data": {"dcgm-metrics.csv": "DCGM_FI_DEV_GPU_TEMP, gauge, t"}}})


def test_from_json() -> None:
    """A spec read from JSON is the one that it was written from."""
    found = spec(**pool(count=3, sharing={"mps": {"replicas": 2}}), driver={"resources": {"limits": {"cpu": 1}}})
    assert ClusterPolicySpec.model_validate_json(found.model_dump_json()) == found


def test_extra_objects() -> None:
    """Manifests stay as they are, without their nulls."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": None}, "data": {"k": "null"}}
    found = spec(extraObjects=[body]).extraObjects
    assert found == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "null"}}]


@pytest.mark.parametrize("name", ["prod-eu-1", "01-defaults", "a", "prod.eu-1", "a" * 63])
def test_cluster_names(name: str) -> None:
    """Names of clusters as people give them are taken."""
    assert ClusterPolicy.model_validate(policy(name)).metadata.name == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../a", "a/b", "a\\b", "A", "a_b", "-a", "a-", "a..b", "a\n", ".a", "a" * 64]
)
def test_cluster_names_as_paths(name: str) -> None:
    """A cluster's name can't lead out of dist/, hide there or be taken for another."""
    with pytest.raises(ValidationError, match="cluster name"):
        ClusterPolicy.model_validate(policy(name))


@given(st.text(alphabet="abA-./\\~_ \n\x00", max_size=70))
def test_cluster_name_is_one_folder(name: str) -> None:
    """Whatever is taken for a cluster's name is the name of one folder."""
    try:
        form("cluster_name").check(name)
    except ValueError:
        return
    assert pathlib.PurePosixPath(name).name == pathlib.PureWindowsPath(name).name == name
    assert not name.startswith(".")
    assert len(name) <= 63


def test_texts_as_long_as_they_say() -> None:
    """A text has an end where its refusal says so, and not before: scripts that a policy carries are long."""
    longest = form("text").longest
    assert form("text").check("x" * longest)
    with pytest.raises(ValueError, match=f"{longest} characters at most"):
        form("text").check("x" * (longest + 1))


@given(st.lists(st.sampled_from(["/", "..", ".", "a", "...", "\n", "\x00", ":", "~"]), max_size=8).map("".join))
def test_host_path_stays_below_the_root(path: str) -> None:
    """Whatever is taken for a path on the node is absolute, never goes up and has no control character."""
    try:
        HOST_PATH.check(path)
    except ValueError:
        return
    assert path.startswith("/")
    assert ".." not in path.split("/")
    assert not set("\n\x00:") & set(path)


@pytest.mark.parametrize(
    "text", ["500m", "2", "0.5", "1.", ".5", "1Gi", "128974848", "129e6", "129M", "1E", "1e3", "100u", "1Ki"]
)
def test_quantities(text: str) -> None:
    """Every way to write a quantity that Kubernetes documents is taken."""
    assert QUANTITY.check(text) == text


@pytest.mark.parametrize("text", ["", "1 Gi", "1GB", "1gi", "1K", "Gi", "1,5", "0x10", "1Gi\n", "1e", "\u0661"])
def test_no_quantities(text: str) -> None:
    """What Kubernetes refuses as a quantity is refused."""
    # 1K is the odd one out: the decimal kilo is a small k.
    with pytest.raises(ValueError, match="quantity"):
        QUANTITY.check(text)


def test_package_is_lazy() -> None:
    """Importing the package loads no model and not even pydantic; a name that is asked for is there all the same."""
    code = (
        "import sys, gpustack.policy; assert 'pydantic' not in sys.modules;"
        "from gpustack.policy import ClusterPolicySpec; assert not ClusterPolicySpec.__pydantic_complete__;"
        "ClusterPolicySpec.model_validate({'release': 'v26.7.0', 'cluster': {'kubernetesVersion': '1.34'}})"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)
