"""What accounts may do, by the data file of all rights."""

from __future__ import annotations

import pytest

from gpustack.catalog import _data
from gpustack.catalog.traits import Traits
from gpustack.components.parts.kube import RIGHTS, rights
from tests.components.common import common

RULES = [
    (name, rule) for name, places in _data.read(RIGHTS).items() for rules in places.values() for rule in rules if rule
]


def test_nobody_may_do_everything() -> None:
    """No rule has a wildcard, and none gives the power to give rights, or to act as another."""
    for name, (group, resources, verbs, *_) in RULES:
        assert "*" not in group + resources + verbs, name
        assert not {"escalate", "bind", "impersonate"} & set(verbs.split()), name


def test_secrets_are_read_by_whom_the_operator_lets() -> None:
    """Secrets may be read by the Kata manager alone, which pulls images by itself, and changed by nobody
    (operator-releases.md 6.13)."""
    reads = {name: set(verbs.split()) for name, (_, resources, verbs, *_) in RULES if "secrets" in resources.split()}
    assert reads == {"nvidia-kata-manager": {"get", "list", "watch"}}


def test_a_rule_is_there_under_its_conditions() -> None:
    """A condition is a trait of the release, the platform, or what the component says; "!" is its opposite."""
    told = {"evicts": False, "configured": True}
    plain = rights("nvidia-driver", common(), **told)["cluster"]
    evicting = rights("nvidia-driver", common(openshift=True), evicts=True)["cluster"]
    more = [rule["resources"] for rule in evicting if rule not in plain]
    assert more == [["clusterversions"], ["pods/eviction"]]
    old = common(traits=Traits(exporter_without_pods=False))
    assert [rule["resources"] for rule in rights("nvidia-dcgm-exporter", old)["role"]] == [["configmaps", "pods"]]
    assert [rule["resources"] for rule in rights("nvidia-dcgm-exporter", common())["role"]] == [["configmaps"]]


def test_a_condition_that_nobody_answers_is_an_error() -> None:
    """A right is never given, nor withheld, because a word in the file is misspelt."""
    with pytest.raises(KeyError):
        rights("nvidia-driver", common())


def test_a_rule_may_be_about_one_object() -> None:
    """The reconciler changes its own Lease and the ConfigMap of layouts, and no other."""
    granted = rights("gpustack-reconciler", deletes=False, layouts="layouts", lease="lease")
    named = {tuple(rule["resources"]): rule["resourceNames"] for rule in granted["role"] if "resourceNames" in rule}
    assert named == {("configmaps",): ["layouts"], ("leases",): ["lease"]}


@pytest.mark.parametrize(("domains", "verbs"), [(False, ["get"]), (True, ["get", "update", "patch"])])
def test_a_condition_that_is_negated_holds_where_the_other_does_not(*, domains: bool, verbs: list[str]) -> None:
    """The kubelet plugin changes its node for compute domains alone: of two rules about nodes it has one."""
    granted = rights("nvidia-dra-driver-kubeletplugin", domains=domains)["cluster"]
    assert [rule["verbs"] for rule in granted if rule["resources"] == ["nodes"]] == [verbs]
