"""The kinds of OpenShift that gpustack renders or that people bring along, as JSON schemas written by hand.

No Go module that is served has them in a form that controller-gen can read alone. Sources: the API of
security.openshift.io/v1 (SecurityContextConstraints) and nfd.openshift.io/v1 (NodeFeatureDiscovery), as of OpenShift
4.22; 4.14 knows a subset.

Fields of SecurityContextConstraints that the API requires and lets be null are not required here: rendered objects hold
no null, and OpenShift's admission fills them in.
"""

from __future__ import annotations

from tools.nfd_schemas import STRING, STRINGS, Schema, array, obj

BOOLEAN: Schema = {"type": "boolean"}
INTEGER: Schema = {"type": "integer"}
LIST = array(STRING)


def one_of(values: str) -> Schema:
    """Return one of the words in VALUES."""
    return {"type": "string", "enum": values.split()}


RANGES = array(obj(min=INTEGER, max=INTEGER))
SELINUX = obj(level=STRING, role=STRING, type=STRING, user=STRING)
FLAGS = (
    "allowHostDirVolumePlugin allowHostIPC allowHostNetwork allowHostPID allowHostPorts allowPrivilegeEscalation "
    "allowPrivilegedContainer defaultAllowPrivilegeEscalation readOnlyRootFilesystem"
)
LISTS = (
    "allowedCapabilities allowedUnsafeSysctls defaultAddCapabilities forbiddenSysctls groups requiredDropCapabilities "
    "seccompProfiles users volumes"
)
SCC = obj(
    "",
    **dict.fromkeys(FLAGS.split(), BOOLEAN),
    **dict.fromkeys(LISTS.split(), LIST),
    allowedFlexVolumes=array(obj("driver", driver=STRING)),
    fsGroup=obj(type=one_of("MustRunAs RunAsAny"), ranges=RANGES),
    priority=INTEGER,
    runAsUser=obj(
        type=one_of("MustRunAs MustRunAsNonRoot MustRunAsRange RunAsAny"),
        uid=INTEGER,
        uidRangeMin=INTEGER,
        uidRangeMax=INTEGER,
    ),
    seLinuxContext=obj(type=one_of("MustRunAs RunAsAny"), seLinuxOptions=SELINUX),
    supplementalGroups=obj(type=one_of("MustRunAs RunAsAny"), ranges=RANGES),
)

TOLERATIONS = array(obj(key=STRING, operator=STRING, value=STRING, effect=STRING, tolerationSeconds=INTEGER))
ENV = array(obj("name", name=STRING, value=STRING))
OPERAND = obj(
    image=STRING,
    imagePullPolicy=one_of("Always IfNotPresent Never"),
    servicePort=INTEGER,
    masterEnvs=ENV,
    masterTolerations=TOLERATIONS,
    workerEnvs=ENV,
    workerNodeSelector=STRINGS,
    workerPriorityClassName=STRING,
    workerTolerations=TOLERATIONS,
    gcNodeSelector=STRINGS,
    gcTolerations=TOLERATIONS,
)
NFD_INSTANCE = obj(
    enableTaints=BOOLEAN,
    extraLabelNs=LIST,
    instance=STRING,
    labelWhiteList=STRING,
    operand=OPERAND,
    prunerOnDelete=BOOLEAN,
    resourceLabels=LIST,
    topologyUpdater=BOOLEAN,
    workerConfig=obj("configData", configData=STRING),
)

OPENSHIFT: dict[tuple[str, str], Schema] = {
    ("security.openshift.io/v1", "SecurityContextConstraints"): SCC,
    ("nfd.openshift.io/v1", "NodeFeatureDiscovery"): obj("spec", spec=NFD_INSTANCE),
}
"""(apiVersion, kind) -> schema without metadata, which is that of every object."""
