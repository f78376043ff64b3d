"""The NodeReadinessRule of the Node Readiness Controller and OpenShift's MachineConfig, as JSON schemas written by
hand: no module of their API alone is served.

Sources: the type NodeReadinessRuleSpec of readiness.node.x-k8s.io/v1alpha1
(api/v1alpha1/nodereadinessrule_types.go), and MachineConfigSpec of machineconfiguration.openshift.io/v1
(openshift/api), with Ignition 3.2 in it as its specification says.
"""

from __future__ import annotations

from tools.nfd_schemas import STRING, STRINGS, Schema, array, obj
from tools.openshift_schemas import BOOLEAN, INTEGER, one_of

EFFECTS = one_of("NoSchedule PreferNoSchedule NoExecute")
SELECTOR = obj(
    matchLabels=STRINGS,
    matchExpressions=array(obj("key operator", key=STRING, operator=STRING, values=array(STRING))),
)
READINESS: dict[tuple[str, str], Schema] = {
    ("readiness.node.x-k8s.io/v1alpha1", "NodeReadinessRule"): obj(
        "spec",
        spec=obj(
            "conditions taint nodeSelector",
            conditions={
                **array(obj("type requiredStatus", type=STRING, requiredStatus=one_of("True False Unknown"))),
                "minItems": 1,
                "maxItems": 32,
            },
            enforcementMode=one_of("bootstrap-only continuous"),
            taint=obj("key effect", key=STRING, value=STRING, effect=EFFECTS),
            nodeSelector=SELECTOR,
            dryRun=BOOLEAN,
        ),
    )
}
FILE = obj("path", path=STRING, mode=INTEGER, overwrite=BOOLEAN, contents=obj("source", source=STRING))
UNIT = obj("name", name=STRING, enabled=BOOLEAN, mask=BOOLEAN, contents=STRING)
IGNITION = obj(
    "ignition",
    ignition=obj("version", version=one_of("3.2.0 3.3.0 3.4.0")),
    storage=obj(files=array(FILE)),
    systemd=obj(units=array(UNIT)),
)
MACHINE_CONFIGS: dict[tuple[str, str], Schema] = {
    ("machineconfiguration.openshift.io/v1", "MachineConfig"): obj(
        "spec",
        spec=obj(
            config=IGNITION,
            kernelArguments=array(STRING),
            kernelType=one_of("default realtime 64k-pages"),
            extensions=array(STRING),
            fips=BOOLEAN,
            osImageURL=STRING,
        ),
    )
}
"""(apiVersion, kind) -> schema without metadata, which is that of every object."""
