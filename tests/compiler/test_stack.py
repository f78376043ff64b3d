"""A stack: pure, cached component by component, refused as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpustack.checks.rule import all_rules
from gpustack.compiler import cache, stack, synth, validate
from gpustack.compiler.cache import Store
from gpustack.compiler.stack import Stack, compile_stack, stored_stack
from gpustack.model import Finding, FindingsError, MissingToolError
from gpustack.policy.language.spec import ClusterPolicySpec
from tests.components.common import spec
from tests.project import REFUSED, SMALL, WARNED

SALT, KEY = "s" * 64, "k" * 64
VALIDATOR = "operands/daemonset-nvidia-operator-validator.yaml"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "cache", SALT)


def small(**sections: Any) -> ClusterPolicySpec:
    """A small spec with SECTIONS over it."""
    return spec(**{**SMALL, **sections})


def files(found: Stack) -> dict[str, str]:
    """The text of each file by its path."""
    return {file.path: file.text for file in found.files}


@pytest.fixture
def synthesised(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The components that each synthesis was asked for."""
    calls: list[list[str]] = []
    real = synth.synthesise

    def spy(planned: Any) -> Any:
        calls.append([entry.id for entry, _ in planned])
        return real(planned)

    monkeypatch.setattr(synth, "synthesise", spy)
    return calls


def test_stack(store: Store) -> None:
    """All files of all components come in the order of their paths; the findings of the rules come along."""
    found = compile_stack(small(**WARNED), KEY, store)
    assert [file.path for file in found.files] == sorted(files(found))
    assert VALIDATOR in files(found)
    assert "GPU473" in {finding.rule for finding in found.findings}
    assert (found.key, found.minor) == (KEY, "1.34")


def test_kept_and_found_again(store: Store, synthesised: list[list[str]]) -> None:
    """What was compiled once is taken from the store, here and in another process: files, findings and all."""
    wanted = small(**WARNED)
    first = compile_stack(wanted, KEY, store)
    assert len(synthesised) == 1
    for seen in (store, Store(store.root, SALT)):
        assert stored_stack(KEY, seen) == first
        assert compile_stack(wanted, KEY, seen) == first
    assert len(synthesised) == 1
    assert stored_stack("o" * 64, store) is None


def test_only_new_components_are_synthesised(store: Store, synthesised: list[list[str]]) -> None:
    """A stack that differs from a known one in one component costs that component; the files are those of a stack that
    was compiled alone."""
    compile_stack(small(), "a" * 64, store)
    changed = compile_stack(small(operator={"runtimeClass": "mine"}, psa={"enabled": True}), "b" * 64, store)
    assert "nfd" not in synthesised[1]
    assert "namespace" in synthesised[1]
    third = compile_stack(small(psa={"enabled": True}), "c" * 64, store)
    assert len(synthesised) == 2, "its components are those of a and b"
    assert files(third)["base/namespace-gpu-operator.yaml"] == files(changed)["base/namespace-gpu-operator.yaml"]
    alone = compile_stack(small(psa={"enabled": True}), "c" * 64, Store(store.root.parent / "alone", SALT))
    assert files(alone) == files(third)


def test_version_and_namespace_are_part_of_a_component(store: Store, synthesised: list[list[str]]) -> None:
    """The same inputs for another Kubernetes are validated for it, and another namespace is another set of files."""
    compile_stack(small(), "a" * 64, store)
    compile_stack(small(cluster={"kubernetesVersion": "1.31"}), "b" * 64, store)
    compile_stack(small(cluster={"kubernetesVersion": "1.34", "namespace": "mine"}), "c" * 64, store)
    assert synthesised[0] == synthesised[1] == synthesised[2]
    compile_stack(small(cluster={"kubernetesVersion": "1.34.9"}), "d" * 64, store)
    assert len(synthesised) == 3, "a patch version changes no schema"


def test_lost_component(store: Store, synthesised: list[list[str]]) -> None:
    """A stack whose component the disk has lost is no stack; compiling it again synthesises what is lost, alone."""
    first = compile_stack(small(), KEY, store)
    entry = store.get("stack", KEY)
    assert entry is not None
    key = entry["components"][0]
    (store.root / SALT[:32] / "component" / key[:2] / key[2:]).unlink()
    seen = Store(store.root, SALT)
    assert stored_stack(KEY, seen) is None
    assert compile_stack(small(), KEY, seen) == first
    assert len(synthesised[1]) == 1


def test_store_that_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    """With a disk that can't be written and a memory that is full, every file is there all the same."""
    whole = compile_stack(small(), KEY, store)
    monkeypatch.setattr(cache, "MEMORY_BYTES", 100)
    (tmp_path / "file").write_text("")
    poor = Store(tmp_path / "file", SALT)
    assert compile_stack(small(), KEY, poor) == whole
    assert stored_stack(KEY, poor) is None


def refused(wanted: ClusterPolicySpec, store: Store) -> list[Finding]:
    """The findings with which a spec is refused; it is not in the store afterwards."""
    with pytest.raises(FindingsError) as caught:
        compile_stack(wanted, KEY, store)
    assert stored_stack(KEY, store) is None
    return caught.value.findings


CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def test_errors_of_rules_stop_early(store: Store, synthesised: list[list[str]]) -> None:
    """A spec that a rule refuses is not synthesised at all."""
    found = refused(small(**REFUSED), store)
    assert [finding.rule for finding in found] == ["GPU102"]
    assert synthesised == []


def test_errors_of_all_components(store: Store) -> None:
    """Objects that the API server would refuse are all reported, of whatever component; and again the next time."""
    broken = [{**CONFIG_MAP, "dat": {}}, {**POD, "spec": {"containers": [{"image": "x"}]}}]
    for _ in range(2):
        found = refused(small(extraObjects=broken), store)
        assert [finding.rule for finding in found] == ["GPU901"] * 2
        assert "ConfigMap" in found[0].what
        assert "Pod" in found[1].what


def test_errors_of_inputs_are_told_once(store: Store) -> None:
    """What several components find wrong with one image is one finding."""
    found = refused(small(validator={"version": ""}, gfd={"enabled": True}, toolkit={"enabled": True}), store)
    assert [(finding.rule, finding.path) for finding in found] == [(found[0].rule, "spec.validator.version")]


def test_missing_references(store: Store) -> None:
    """A stack that names what isn't there is refused, although every object alone is fine."""
    pod = {
        **POD,
        "spec": {"containers": [{"name": "x", "image": "x", "envFrom": [{"configMapRef": {"name": "none"}}]}]},
    }
    (finding,) = refused(small(extraObjects=[pod]), store)
    assert (finding.rule, finding.what) == ("GPU201", "ConfigMap 'none' does not exist")
    there = [{"kind": "ConfigMap", "name": "none"}]
    assert compile_stack(small(extraObjects=[pod], references=there), KEY, store).files


def test_two_objects_of_one_name(store: Store) -> None:
    """Two objects with one name in one namespace are refused, the user's own or one of ours, also in different
    stages."""
    twice = small(extraObjects=[CONFIG_MAP, {**CONFIG_MAP, "metadata": {"name": "c", "namespace": "gpu-operator"}}])
    (finding,) = refused(twice, store)
    assert (finding.rule, finding.path) == ("GPU204", "spec.extraObjects[1]")
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "nvidia-operator-validator", "labels": {"a": "b"}},
    }
    (finding,) = refused(small(extraObjects=[account]), store)
    assert (finding.rule, finding.what) == ("GPU204", "two objects are called serviceaccount nvidia-operator-validator")


def test_rules_see_every_spec(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings and notes of all rules are kept with the stack, in the order of the rules."""
    found = compile_stack(small(**WARNED, cdi={"enabled": True, "default": True}), KEY, store)
    order = [rule.id for rule in all_rules()]
    assert [finding.rule for finding in found.findings] == sorted((f.rule for f in found.findings), key=order.index)
    assert {"GPU104", "GPU105", "GPU473"} <= {finding.rule for finding in found.findings}


@pytest.mark.parametrize("error", [FileNotFoundError(2, "no", "/no/node"), RuntimeError("ENOSPC: no space left")])
def test_node_that_fails(store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Whatever keeps Node from running is a missing tool, with Node's words."""
    import builtins

    real = builtins.__import__

    def failing(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:  # noqa: A002
        if fromlist and "synthesise" in fromlist:
            raise error
        return real(name, globals, locals, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", failing)
    with pytest.raises(MissingToolError, match=str(error.args[-1])):
        compile_stack(small(), KEY, store)


def test_conflict_names() -> None:
    """The finding names kind and name, whatever stage the file is in."""
    assert stack.conflict("operands/daemonset-a-b.yaml").what == "two objects are called daemonset a-b"


def refusals(store: Store, **sections: Any) -> list[tuple[str, str]]:
    """Rule and place of each error that a small spec with SECTIONS is refused with."""
    with pytest.raises(FindingsError) as caught:
        compile_stack(small(**sections), KEY, store)
    return [(finding.rule, finding.path) for finding in caught.value.findings]


def extra(kind: str, version: str = "v1", **content: Any) -> dict[str, Any]:
    """An object of extraObjects."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **content}


def test_what_a_schema_refuses_has_a_place(store: Store) -> None:
    """GPU901 and GPU902 name the entry of extraObjects and the place in it."""
    objects = [
        extra("ConfigMap", data={"a": "b"}),
        extra("ConfigMap", data={"a": 1}) | {"metadata": {"name": "b"}},
        extra("Pod", spec={"containers": [{"name": "a", "image": "a/b:1", "imagge": "x"}]}),
        extra("Widget", "example.com/v1"),
    ]
    assert sorted(refusals(store, extraObjects=objects)) == [
        ("GPU901", "spec.extraObjects[1].data.a"),
        ("GPU901", "spec.extraObjects[2].spec.containers[0].imagge"),
        ("GPU902", "spec.extraObjects[3].kind"),
    ]


def test_a_component_that_a_schema_refuses_has_a_place(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong in an object of ours is shown at the section that renders it, and at the policy where none does."""
    monkeypatch.setattr(validate, "validate", lambda *_: [Finding("GPU901", "error", "bad", "spec.template")])
    found = {path for _, path in refusals(store, gfd={"enabled": True})}
    assert {"spec.gfd", "spec.validator", "spec"} <= found
    assert not any("template" in path for path in found)


def test_one_name_in_two_api_groups(store: Store) -> None:
    """Kinds of one name in two API groups don't clash in the construct tree: the one without a schema is told."""
    objects = [
        *(extra("Service", version, spec={"ports": [{"port": 1}]}) for version in ("v1", "serving.knative.dev/v1")),
        *(extra("Ingress", version) for version in ("networking.k8s.io/v1", "config.openshift.io/v1")),
    ]
    found = refusals(store, extraObjects=objects)
    assert found == [("GPU902", "spec.extraObjects[1].kind"), ("GPU902", "spec.extraObjects[3].kind")]
