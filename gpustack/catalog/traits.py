"""What differs between releases, other than images and defaults: one name per difference.

Each says since which release it holds, once. A component asks for a trait where it renders the difference, so a new
release is a data file and, where it changes behaviour, one trait here and one place in one component.
Source: operator-releases.md 1 lists all differences.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from . import _versions


def since(release: str) -> bool:
    """A trait that releases have from RELEASE on. Its type is that of the field, as with `dataclasses.field` itself."""
    return field(default=True, metadata={"since": release})


@dataclass(frozen=True, slots=True)
class Traits:
    """True: as in the newest release. False: as it was before."""

    peermem_validation: bool = since("v26.3.0")
    """The validator has a stand-alone check of nvidia-peermem."""
    features_in_driver_validation: bool = since("v26.3.0")
    """`driver-validation` checks nvidia-fs and gdrcopy too; before, each had an init container (row 4)."""
    init_resources: bool = since("v26.7.0")
    """Init containers get resources (row 32)."""
    toolkit_nri_namespace: bool = since("v26.3.0")
    """The toolkit knows its namespace, for the NRI plugin (row 22)."""
    nri_replaces_runtime_config: bool = since("v26.7.0")
    """With the NRI plugin the toolkit gets nothing of the runtime but the NRI socket (row 23)."""
    gfd_names_its_pod: bool = since("v26.3.0")
    """GFD knows its pod's name and may read pods; off the NodeFeature API on OpenShift (row 21)."""
    plugin_detects_modules: bool = since("v26.3.3")
    """The plugin's entry point turns features on by the modules that are loaded (row 24)."""
    mig_manager_discovers_layouts: bool = since("v26.3.0")
    """The MIG manager makes a node's layouts itself; the ConfigMap is its fallback (rows 16 and 41)."""
    mig_manager_lists_pods: bool = since("v26.7.0")
    """The MIG manager may list the pods of all namespaces (row 40)."""
    dcgm_probes: bool = since("v26.3.0")
    """DCGM and its exporter have liveness and readiness probes (row 17)."""
    exporter_pod_metadata: bool = since("v26.3.2")
    """The exporter has switches for pod labels and UIDs, and else no token (row 19)."""
    exporter_env_pod_metadata: bool = since("v26.7.0")
    """The exporter gets rights and a token also when its environment turns pod metadata on (row 19)."""
    exporter_without_pods: bool = since("v26.7.0")
    """The exporter's Role has no right to pods (row 41)."""
    exporter_without_relabelling: bool = since("v26.3.0")
    """On OpenShift no init container relabels the kubelet's folder for the exporter (row 18)."""
    no_foreign_pull_secrets: bool = since("v26.3.0")
    """Driver and node status exporter take no pull secrets of the validator, which they don't run (row 33)."""
    kata_mode: bool = since("v26.3.0")
    """`sandboxWorkloads.mode` and the device plugin for Kata containers (row 25)."""
    cc_manager_for_kata: bool = since("v26.3.0")
    """The cc-manager runs in mode kata alone, and asks GPUs what they can (row 27)."""
    vfio_manager_program: bool = since("v26.3.0")
    """The vfio-manager is a program of the driver manager's image, and no script in a ConfigMap (row 28)."""
    vfio_manager_unbinds: bool = since("v26.7.0")
    """The vfio-manager gives GPUs back at its end. v26.3 names a program that can't exist (row 28)."""
    sandbox_plugin_writes_cdi: bool = since("v26.3.0")
    """KubeVirt's device plugin knows its node and writes CDI files (row 29)."""
    vgpu_manager_module_config: bool = since("v26.3.0")
    """The vGPU manager takes parameters of kernel modules (row 30)."""
    vgpu_manager_of_the_node: bool = since("v26.7.0")
    """The vGPU device manager also takes a vGPU manager that the node brings (row 31)."""
    no_kata_manager: bool = since("v26.7.0")
    """The Kata manager is never deployed (row 26)."""
    driver_probe_script: bool = since("v26.3.0")
    """The driver's startup probe is a script in a ConfigMap, and says which features it found (row 1)."""
    driver_daemons_status: bool = since("v26.7.0")
    """The driver says whether its daemons are ready: the probe looks, and the end removes it (rows 1, 6)."""
    driver_digest: bool = since("v26.3.0")
    """Driver and manager know by a digest whether anything has to be installed anew (row 2)."""
    driver_announces_modules: bool = since("v26.3.0")
    """The driver's container knows whether nvidia-fs and gdrdrv are built beside it (row 3)."""
    driver_sees_system_devices: bool = since("v26.7.0")
    """The driver sees all of /sys/devices/system, and not one file of it (row 5)."""
    driver_reads_claims: bool = since("v26.7.0")
    """The driver manager may read claims to GPUs (row 40)."""
    driver_suse_modules: bool = since("v26.3.1")
    """A precompiled driver on SUSE sees the node's modules (row 15)."""
    repo_replaces_subscription: bool = since("v26.7.0")
    """Package sources of the policy stand in for the subscription of a RHEL node (row 14)."""
    driver_owner_label: bool = since("v26.7.0")
    """A label of the node names its NVIDIADriver, and a default one takes what is left (row 38)."""
    driver_major_selector: bool = since("v26.7.0")
    """NVIDIADriver selects nodes by the major version of their OS where images are made for it (section 7)."""
    driver_short_tags: bool = since("v26.3.1")
    """NVIDIADriver shortens versions of an OS as ClusterPolicy does (rows 7 and 8)."""
    driver_labels_on_daemonset: bool = since("v26.3.0")
    """Labels and annotations of an NVIDIADriver are on the DaemonSet, not on its pods alone (section 7)."""

    @classmethod
    def of(cls, release: str) -> Traits:
        """Those that RELEASE has."""
        here = _versions.key(release)
        return cls(**{one.name: here >= _versions.key(one.metadata["since"]) for one in fields(cls)})
