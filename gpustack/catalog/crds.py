"""The CustomResourceDefinitions that gpustack can bring along, by full name.

`cluster.crds` says for each whether the render owns it or finds it in the cluster. The definitions themselves lie with
the components that need them (components/crds/); a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpustack.catalog._lookup import UnknownName, nearest

NFD, DRA = "node feature discovery", "the DRA driver, for compute domains"
CRDS: Mapping[str, str] = {
    "clusterpolicies.nvidia.com": "programs that read the operator's ClusterPolicy",
    "computedomaincliques.resource.nvidia.com": DRA,
    "computedomains.resource.nvidia.com": DRA,
    "nodefeaturegroups.nfd.k8s-sigs.io": NFD,
    "nodefeaturerules.nfd.k8s-sigs.io": NFD,
    "nodefeatures.nfd.k8s-sigs.io": NFD,
    "nodepolicies.gpustack.dev": "the reconciler",
}
"""Name -> who needs it."""


class UnknownCRD(UnknownName):
    what = "CRD"


def known(name: str) -> str:
    """Who needs the CRD called NAME; UnknownCRD names the nearest ones."""
    if name not in CRDS:
        raise UnknownCRD(name, nearest(name, CRDS))
    return CRDS[name]
