"""ConfigMap texts of the catalogue are files that the programs which read them accept."""

from __future__ import annotations

import yaml

from gpustack.catalog import texts


def test_mig_layouts_have_the_form_that_the_mig_manager_demands() -> None:
    """It refuses unknown fields, and mig-devices that are missing where MIG is on or there where it is off (M19)."""
    needed = {"devices", "mig-enabled"}
    found = yaml.safe_load(texts.mig_parted_config())
    assert found.keys() == {"version", "mig-configs"}
    assert found["version"] == "v1"
    for name, elements in found["mig-configs"].items():
        assert elements, name
        for element in elements:
            assert needed <= element.keys() <= needed | {"mig-devices", "device-filter"}, name
            assert ("mig-devices" in element) == element["mig-enabled"], name
            assert all(type(count) is int and count > 0 for count in element.get("mig-devices", {}).values()), name


def test_gpu_clients_are_the_operators() -> None:
    """The services that hold GPUs on a DGX and on hosts with DCGM of their own, as units (operator.md 9.4)."""
    names = "nvsm nvsm-mqtt nvsm-core nvsm-api-gateway nvsm-notifier nv_peer_mem nvidia-dcgm dcgm dcgm-exporter"
    expected = {"version": "v1", "systemd-services": [f"{name}.service" for name in names.split()]}
    assert yaml.safe_load(texts.gpu_clients()) == expected
