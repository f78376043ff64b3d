"""What differs between releases, other than images and defaults: one name per difference.

A release's data file lists under `lacks` the traits that it does not have yet; the newest release has all. A component
asks for a trait where it renders the difference, so a new release is a data file and, where it changes behaviour, one
trait here and one place in one component. Source: facts/operator-releases.md; section 1 lists all differences.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Traits:
    """True: as in the newest release. False: as it was before."""

    peermem_validation: bool = True
    """The validator has a stand-alone check of nvidia-peermem (since v26.3.0)."""
    features_in_driver_validation: bool = True
    """`driver-validation` checks nvidia-fs and gdrcopy too; before, each had an init container (row 4, v26.3.0)."""
    init_resources: bool = True
    """Init containers get resources (row 32, v26.7.0)."""
    toolkit_nri_namespace: bool = True
    """The toolkit knows its namespace, for the NRI plugin (row 22, v26.3.0)."""
    nri_replaces_runtime_config: bool = True
    """With the NRI plugin the toolkit gets nothing of the runtime but the NRI socket (row 23, v26.7.0)."""
    gfd_names_its_pod: bool = True
    """GFD knows its pod's name and may read pods; off the NodeFeature API on OpenShift (row 21, v26.3.0)."""
    plugin_detects_modules: bool = True
    """The plugin's entry point turns features on by the modules that are loaded (row 24, v26.3.3)."""
    mig_manager_discovers_layouts: bool = True
    """The MIG manager makes a node's layouts itself; the ConfigMap is its fallback (rows 16 and 41, v26.3.0)."""
    mig_manager_lists_pods: bool = True
    """The MIG manager may list the pods of all namespaces (row 40, v26.7.0)."""
    dcgm_probes: bool = True
    """DCGM and its exporter have liveness and readiness probes (row 17, v26.3.0)."""
    exporter_pod_metadata: bool = True
    """The exporter has switches for pod labels and UIDs, and else no token (row 19, v26.3.2)."""
    exporter_env_pod_metadata: bool = True
    """The exporter gets rights and a token also when its environment turns pod metadata on (row 19, v26.7.0)."""
    exporter_without_pods: bool = True
    """The exporter's Role has no right to pods (row 41, v26.7.0)."""
    exporter_without_relabelling: bool = True
    """On OpenShift no init container relabels the kubelet's folder for the exporter (row 18, v26.3.0)."""
    no_foreign_pull_secrets: bool = True
    """Driver and node status exporter take no pull secrets of the validator, which they don't run (row 33, v26.3.0)."""
    kata_mode: bool = True
    """`sandboxWorkloads.mode` and the device plugin for Kata containers (row 25, v26.3.0)."""
    cc_manager_for_kata: bool = True
    """The cc-manager runs in mode kata alone, and asks GPUs what they can (row 27, v26.3.0)."""
    vfio_manager_program: bool = True
    """The vfio-manager is a program of the driver manager's image, and no script in a ConfigMap (row 28, v26.3.0)."""
    vfio_manager_unbinds: bool = True
    """The vfio-manager gives GPUs back at its end. v26.3 names a program that can't exist (row 28, v26.7.0)."""
    sandbox_plugin_writes_cdi: bool = True
    """KubeVirt's device plugin knows its node and writes CDI files (row 29, v26.3.0)."""
    vgpu_manager_module_config: bool = True
    """The vGPU manager takes parameters of kernel modules (row 30, v26.3.0)."""
    vgpu_manager_of_the_node: bool = True
    """The vGPU device manager also takes a vGPU manager that the node brings (row 31, v26.7.0)."""
    no_kata_manager: bool = True
    """The Kata manager is never deployed (row 26, v26.7.0)."""
    driver_probe_script: bool = True
    """The driver's startup probe is a script in a ConfigMap, and says which features it found (row 1, v26.3.0)."""
    driver_daemons_status: bool = True
    """The driver says whether its daemons are ready: the probe looks, and the end removes it (rows 1, 6, v26.7.0)."""
    driver_digest: bool = True
    """Driver and manager know by a digest whether anything has to be installed anew (row 2, v26.3.0)."""
    driver_announces_modules: bool = True
    """The driver's container knows whether nvidia-fs and gdrdrv are built beside it (row 3, v26.3.0)."""
    driver_sees_system_devices: bool = True
    """The driver sees all of /sys/devices/system, and not one file of it (row 5, v26.7.0)."""
    driver_reads_claims: bool = True
    """The driver manager may read claims to GPUs (row 40, v26.7.0)."""
    driver_suse_modules: bool = True
    """A precompiled driver on SUSE sees the node's modules (row 15, v26.3.1)."""
    repo_replaces_subscription: bool = True
    """Package sources of the policy stand in for the subscription of a RHEL node (row 14, v26.7.0)."""
    driver_owner_label: bool = True
    """A label of the node names its NVIDIADriver, and a default one takes what is left (row 38, v26.7.0)."""
    driver_major_selector: bool = True
    """NVIDIADriver selects nodes by the major version of their OS where images are made for it (section 7, v26.7.0)."""
    driver_short_tags: bool = True
    """NVIDIADriver shortens versions of an OS as ClusterPolicy does (rows 7 and 8, v26.3.1)."""
    driver_labels_on_daemonset: bool = True
    """Labels and annotations of an NVIDIADriver are on the DaemonSet, not on its pods alone (section 7, v26.3.0)."""


def without(names: list[str]) -> Traits:
    """The traits of a release that lacks NAMES. Raises ValueError for a name that no trait has."""
    known = {field.name for field in fields(Traits)}
    unknown = sorted(set(names) - known)
    if unknown:
        raise ValueError(f"no trait is called {', '.join(unknown)}")
    return Traits(**dict.fromkeys(names, False))
