"""What a cluster is to be, as data: the nodes of each pool, and the objects that are rendered.

Solves: `verify` runs on a person's machine, which has the policy, and as a CronJob in the cluster, which has neither
that nor its language. Both hold the cluster against this, so that they can't find different things; the CronJob reads
it from a ConfigMap (components/verify/).
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ..model import Body


class Kind(NamedTuple):
    """Objects that are listed together: as in apiVersion and kind, in a namespace ("" for those of the cluster)."""

    api_version: str
    kind: str
    namespace: str = ""

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def plural(self) -> str:
        """As in the address of the API: by the rule that Kubernetes' own generators name resources by."""
        name = self.kind.lower()
        if name.endswith(("constraints", "rules")):  # SecurityContextConstraints, ClusterRules
            return name
        if name.endswith("y"):
            return f"{name[:-1]}ies"
        return f"{name}es" if name.endswith(("s", "x", "ch")) else f"{name}s"


def kind_of(body: Body) -> Kind:
    """Where BODY would be listed."""
    return Kind(str(body.get("apiVersion")), str(body.get("kind")), str(body["metadata"].get("namespace") or ""))


def wanted(rendered: Iterable[Body], namespace: str) -> list[Kind]:
    """The kinds to list: nodes, what tells how the stack in NAMESPACE does, those of what is RENDERED; no Secrets."""
    own = [
        Kind("v1", "Node"),
        Kind("v1", "Pod", namespace),
        Kind("apps/v1", "Deployment", namespace),
        Kind("apps/v1", "ControllerRevision", namespace),
    ]
    return [each for each in dict.fromkeys([*own, *map(kind_of, rendered)]) if each.kind != "Secret"]


class Nodes(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The nodes of a pool, which the policy describes at `path`: their number, where it is said, the labels by which
    they are selected and those that they get, their taints as key and effect, those that come off once a node works
    (with the path of each), what each offers by resource (-1: some), whether GPUs are `cut`, and the driver: the
    numbers of its version, as far as they are said, and whether nodes bring it."""

    name: str
    path: str
    selection: dict[str, str] = {}
    labels: dict[str, str] = {}
    least: int | None = None
    most: int | None = None
    product: str = ""
    taints: list[tuple[str, str]] = []
    startup: list[tuple[str, str, str]] = []
    offers: dict[str, int] = {}
    cut: bool = False
    driver: list[int] = []
    version: str = ""
    brought: bool = False
    driver_path: str = ""


class Expectation(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What a cluster is to be: its stack's namespace, its minor version of Kubernetes, its pools, what is rendered."""

    namespace: str
    kubernetes: str = ""
    pools: list[Nodes] = []
    rendered: list[Body] = []

    @property
    def kinds(self) -> list[Kind]:
        """What to list of the cluster."""
        return wanted(self.rendered, self.namespace)
