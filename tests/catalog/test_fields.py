"""The fields of the operator's custom resources."""

from __future__ import annotations

import pytest

from gpustack.catalog import _versions, fields
from gpustack.catalog.fields import FieldFacts, UnknownKind


@pytest.mark.parametrize(
    ("kind", "count", "leaves"), [("ClusterPolicy", 510, 391), ("NVIDIADriver", 160, 123), ("GPUCluster", 139, 104)]
)
def test_number_of_fields(kind: str, count: int, leaves: int) -> None:
    """All fields of the newest schemas are there."""
    assert len(fields.fields(kind)) == count
    assert len(fields.leaves(kind)) == leaves


@pytest.mark.parametrize(
    ("path", "facts"),
    [
        ("driver", FieldFacts("object")),
        ("driver.version", FieldFacts("string")),
        ("driver.kernelModuleType", FieldFacts("string", ("auto", "open", "proprietary"), "auto", "v25.3.0")),
        ("driver.upgradePolicy.maxUnavailable", FieldFacts("int-or-string", (), "25%")),
        ("ccManager.defaultMode", FieldFacts("string", ("on", "off", "devtools"))),
        ("cdi.enabled", FieldFacts("boolean", (), True)),
        ("hostPaths.kubeletRootDir", FieldFacts("string", (), "/var/lib/kubelet", "v26.7.0")),
        ("daemonsets.tolerations[].tolerationSeconds", FieldFacts("integer")),
    ],
)
def test_facts_of_a_field(path: str, facts: FieldFacts) -> None:
    """Type, enum, default and age of a field."""
    assert fields.fields("ClusterPolicy")[path] == facts


@pytest.mark.parametrize("kind", fields.kinds())
def test_every_field_has_its_parent(kind: str) -> None:
    """A field stands in a section that exists, after it, and is not older than it."""
    known = fields.fields(kind)
    seen: set[str] = set()
    for path, facts in known.items():
        parent = path.rpartition(".")[0]
        if parent:
            owner = known[parent.removesuffix("[]")]
            assert parent.removesuffix("[]") in seen, path
            assert owner.type == ("array" if parent.endswith("[]") else "object"), path
            assert _versions.key(facts.since or "v24.3.0") >= _versions.key(owner.since or "v24.3.0"), path
        seen.add(path)


@pytest.mark.parametrize("kind", fields.kinds())
def test_types_and_defaults_agree(kind: str) -> None:
    """Types are those that a schema has, and a default is of its field's type and in its enum."""
    python: dict[str, tuple[type, ...]] = {
        "string": (str,),
        "boolean": (bool,),
        "integer": (int,),
        "int-or-string": (int, str),
    }
    for path, facts in fields.fields(kind).items():
        assert facts.type in {"object", "array", *python}, path
        assert all(isinstance(value, str) for value in facts.enum), path
        if facts.default is not None:
            assert isinstance(facts.default, python[facts.type]), path
            assert not facts.enum or facts.default in facts.enum, path


def test_unknown_kind() -> None:
    """A misspelt kind names the one that was meant."""
    with pytest.raises(UnknownKind) as caught:
        fields.fields("Clusterpolicy")
    assert caught.value.nearest[0] == "ClusterPolicy"
