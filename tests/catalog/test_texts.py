"""ConfigMap texts of the catalogue say what its data says."""

from __future__ import annotations

import pytest
import yaml

from gpustack.catalog import gpus, releases, texts


@pytest.mark.parametrize("release", releases.names())
def test_mig_layouts_as_text_and_as_data(release: str) -> None:
    """The text of default-mig-parted-config is what the catalogue has as data, for every release (operator.md 9.4)."""
    found = yaml.safe_load(texts.mig_parted_config())
    assert found == gpus.default_mig_config(release)
    assert len(found["mig-configs"]) == 81


def test_gpu_clients_are_units() -> None:
    """default-gpu-clients names systemd services, each once."""
    services = yaml.safe_load(texts.gpu_clients())["systemd-services"]
    assert len(services) == len(set(services)) == 9
    assert all(service.endswith(".service") for service in services)
