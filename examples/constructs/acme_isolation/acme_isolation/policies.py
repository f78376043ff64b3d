"""A set of NetworkPolicies, as one of gpustack's own components would make it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from gpustack.components.component import Component
from gpustack.model import Body, Stage

from . import Isolation


class IsolationPolicies(Component[Any]):
    """For each namespace one NetworkPolicy that lets in its own pods and those of the namespaces allowed."""

    stage: ClassVar[Stage] = "base"

    def manifests(self, inputs: Isolation) -> Iterator[Body]:
        for namespace in inputs.namespaces:
            others = [
                {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}} for name in inputs.allowed
            ]
            yield {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": "isolated", "namespace": namespace},
                "spec": {
                    "podSelector": {},
                    "policyTypes": ["Ingress"],
                    "ingress": [{"from": [{"podSelector": {}}, *others]}],
                },
            }
