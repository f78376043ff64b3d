"""The kinds of NVIDIA's DRA driver, group resource.nvidia.com, as JSON schemas written by hand.

Their API is in the driver's program, and no module of it alone is served. Source: the resource definitions that the
charts of the driver v0.5.0 and of the GPU operator v26.7.0 bring; gpustack/components/crds/ has them for the cluster.
"""

from __future__ import annotations

from tools.nfd_schemas import STRING, Schema, array, obj

INTEGER: Schema = {"type": "integer"}
READINESS: Schema = {"type": "string", "enum": ["NotReady", "Ready"]}
CHANNEL = obj(
    "resourceClaimTemplate",
    allocationMode={"type": "string", "enum": ["All", "Single"]},
    resourceClaimTemplate=obj("name", name=STRING),
)
MEMBER: dict[str, Schema] = {"ipAddress": STRING, "cliqueID": STRING, "index": INTEGER, "status": READINESS}

DRA: dict[tuple[str, str], Schema] = {
    ("resource.nvidia.com/v1beta1", "ComputeDomain"): obj(
        "spec",
        spec=obj("channel numNodes", channel=CHANNEL, numNodes=INTEGER),
        status=obj("status", status=READINESS, nodes=array(obj("cliqueID ipAddress name", name=STRING, **MEMBER))),
    ),
    ("resource.nvidia.com/v1beta1", "ComputeDomainClique"): obj(
        daemons=array(obj("cliqueID ipAddress nodeName", nodeName=STRING, **MEMBER)),
    ),
}
"""(apiVersion, kind) -> schema without metadata, which is that of every object.

A ComputeDomain without spec passes the API server; it could never do anything, so it is refused here.
"""
