"""DCGM fields and the exporter's defaults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpustack.catalog import dcgm, releases
from gpustack.catalog.dcgm import UnknownField, field


def test_default_counters() -> None:
    """Without configuration the operator's exporter serves 26 fields, the profiling ones among them."""
    names = {found.name for found in dcgm.default_counters()}
    assert len(dcgm.default_counters()) == len(names) == 26
    assert {
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_DEV_FB_RESERVED",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "DCGM_FI_DRIVER_VERSION",
    } <= names
    assert {"DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_PROF_SM_ACTIVE"}.isdisjoint(names)


@pytest.mark.parametrize(
    ("name", "number", "kind", "unit", "alias"),
    [
        ("DCGM_FI_DEV_GPU_TEMP", 150, "gauge", "celsius", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"),
        ("DCGM_FI_DEV_POWER_USAGE", 155, "gauge", "W", "DCGM_FI_DEV_BOARD_POWER_WATTS"),
        ("DCGM_FI_DEV_XID_ERRORS", 230, "gauge", "last XID number", "DCGM_FI_DEV_XID_ERROR"),
        ("DCGM_FI_DEV_FB_USED", 252, "gauge", "MiB", None),
        ("DCGM_FI_DRIVER_VERSION", 1, "label", None, "DCGM_FI_SYSTEM_DRIVER_VERSION"),
        ("DCGM_EXP_XID_ERRORS_COUNT", None, "counter", None, None),
    ],
)
def test_field_facts(name: str, number: int | None, kind: str, unit: str | None, alias: str | None) -> None:
    """A field's id, type, unit and new name, found by either name."""
    found = field(name)
    assert (found.id, found.type, found.unit, found.alias) == (number, kind, unit, alias)
    assert alias is None or field(alias) is found


def test_ids_are_unique_but_for_deprecated_names() -> None:
    """Two names with one id are the old and the new name of one field."""
    seen: dict[int, str] = {}
    new = {name: facts.get("replaced_by") for name, facts in dcgm._facts()["fields"].items()}
    for found in dcgm.fields().values():
        if found.id is not None and new[found.name] not in dcgm.fields():
            assert found.id not in seen, (found.name, seen[found.id])
            seen[found.id] = found.name
    assert new["DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"] == "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("DCGM_FI_DEV_MEM_USED", ("DCGM_FI_DEV_FB_USED",)),
        ("DCGM_FI_DEV_PCIE_THROUGHPUT", ("DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES")),
        ("DCGM_FI_DEV_NVLINK_TEMPERATURE", ()),
        ("dcgm_gpu_temp", ("DCGM_FI_DEV_GPU_TEMP",)),
    ],
)
def test_wrong_names_say_what_was_meant(written: str, meant: tuple[str, ...]) -> None:
    """Names that public files use and no DCGM defines lead to the right ones, or to none where there is none."""
    with pytest.raises(UnknownField) as caught:
        field(written)
    assert caught.value.nearest == meant


def test_a_typo_names_the_nearest_field() -> None:
    """A typo stops the exporter at start; here it leads to the field."""
    with pytest.raises(UnknownField) as caught:
        field("DCGM_FI_DEV_GPU_TMP")
    assert caught.value.nearest[0] == "DCGM_FI_DEV_GPU_TEMP"


def test_everything_that_is_named_exists() -> None:
    """Topics and corrections name real fields only."""
    for names in dcgm._facts()["topics"].values():
        for name in names:
            assert field(name).name == name
    for found in dcgm.fields().values():
        assert found.type in dcgm.csv_types()
    for wrong, right in dcgm._facts()["wrong_names"].items():
        assert wrong not in dcgm.fields()
        assert all(name in dcgm.fields() for name in right)


@pytest.mark.parametrize(
    ("topic", "missing"),
    [
        ("temperature", []),
        ("xid", []),
        ("xid_count", ["DCGM_EXP_XID_ERRORS_COUNT"]),
        ("ecc_double_bit", ["DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"]),
        ("remapped_rows_ampere_and_newer", ["DCGM_FI_DEV_ROW_REMAP_PENDING"]),
    ],
)
def test_what_an_alert_needs_enabled(topic: str, missing: list[str]) -> None:
    """Which fields a question needs beyond the defaults."""
    assert [name for name in dcgm._facts()["topics"][topic] if not field(name).default] == missing


def test_misleading_fields_are_explained() -> None:
    """The XID gauge is not a counter, by either of its names."""
    assert "rate()" in (dcgm.semantics("DCGM_FI_DEV_XID_ERROR") or "")
    assert dcgm.semantics("DCGM_FI_DEV_GPU_TEMP") is None


def test_exporter_facts() -> None:
    """Ports and file names that other objects refer to."""
    assert (dcgm.exporter()["port"], dcgm.exporter()["host_engine_port"]) == (9400, 5555)
    assert dcgm.exporter()["config_key"] == "dcgm-metrics.csv"


def test_names_that_the_exporter_takes() -> None:
    """The list is cumulative: an exporter knows what earlier ones know. Every field of the catalogue is in it."""
    old, new = dcgm.exported("4.4.2-4.7.0-distroless"), dcgm.exported("4.6.0-4.8.3-distroless")
    assert old < dcgm.exported("4.5.3-4.8.2") < new
    assert {"DCGM_FI_DEV_GPU_TEMP", "dcgm_gpu_temp", "DCGM_EXP_XID_ERRORS_COUNT"} <= old
    assert "DCGM_FI_DEV_GPU_TEMP_CELSIUS" in new - old
    assert set(dcgm.fields()) | set(dcgm.new_names().values()) <= new
    assert not set(dcgm._facts()["wrong_names"]) & {name for name in new if name.isupper()}
    assert dcgm.not_exported() <= new
    assert not dcgm.not_exported() & {found.name for found in dcgm.default_counters()}


@pytest.mark.parametrize("tag", ["", "latest", "sha256:0123", "3.3.5-3.4.1-ubuntu22.04"])
def test_unknown_exporters_take_every_name(tag: str) -> None:
    """Where nobody knows which exporter it is, no name is called unknown."""
    assert dcgm.exported(tag) == dcgm.exported("4.6.0-4.8.3-distroless")


@pytest.mark.parametrize("release", releases.names())
def test_releases_have_an_exporter_of_the_list(release: str) -> None:
    """The exporter of each release of the catalogue is one whose names are known."""
    version = releases.release(release).defaults["dcgmExporter"]["version"]
    assert {found.name for found in dcgm.default_counters()} <= dcgm.exported(version)
    assert dcgm._TAG.match(version)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("nvidia_gpu_duty_cycle", ("DCGM_FI_DEV_GPU_UTIL",)),
        ("nvidia_gpu_minor", ()),
        ("nvml_gpu_temperature", ()),
        ("nv_gpu_utilization", ()),
        ("node_load1", None),
    ],
)
def test_metrics_of_other_exporters(written: str, meant: tuple[str, ...] | None) -> None:
    """Those of NVIDIA's GPUs lead to DCGM's name where there is one; all others are none of ours."""
    assert dcgm.other_exporter(written) == meant
    assert all(name in dcgm.fields() for name in meant or ())


def test_labels_of_a_series() -> None:
    """What the exporter writes of a GPU and its pod (dcgm.yaml), and what the scrape adds; the pod's labels are
    renamed unless they are honored, and what rows of the file bring is not among them.
    """
    own = {"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname"}
    scrape = {"job", "instance", "endpoint", "service", "namespace", "pod", "container"}
    assert dcgm.series_labels(honored=True) == own | scrape
    renamed = {"exported_namespace", "exported_pod", "exported_container"}
    assert dcgm.series_labels(honored=False) == own | scrape | renamed


def test_metrics_of_our_own() -> None:
    """Those of the reconciler are those of its documentation, those of the node status exporter stand in operator.md
    14."""
    table = (Path(__file__).parents[2] / "docs" / "reconciler.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(gpustack_reconciler_\w+)` \|", table, re.MULTILINE))
    assert set(dcgm._facts()["other_exporters"]["served"]["reconciler"]) == named
    assert dcgm.served_by("gpustack_reconciler_pass_seconds_bucket") == "reconciler"
    assert dcgm.served_by("gpu_operator_node_driver_validation") == "nodeStatusExporter"
    assert not dcgm.served_by("gpustack_reconciler_nodes_total")
    assert not dcgm.served_by("gpu_operator_gpu_nodes_total")
