"""The MIG manager's files: what it refuses is found where it stands, and what it takes is taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustack.catalog import gpus, texts
from gpustack.policy.configurations.mig_configs import Element, of_release, read_clients, read_layouts

HEAD = "version: v1\nmig-configs:\n"


def layout(*lines: str) -> str:
    """A file with one layout `a`, which has one item of LINES."""
    return HEAD + "  a:\n  - " + "\n    ".join(lines) + "\n"


def test_the_default_file_is_read() -> None:
    """The file of the release has no problem, and reads as the catalogue has it."""
    found = read_layouts(texts.mig_parted_config())
    assert found.problems == ()
    assert {name: [one.effect for one in items] for name, items in found.entries.items()} == {
        name: [one.effect for one in items] for name, items in of_release("v26.7.0").items()
    }
    assert read_clients(texts.gpu_clients()) == ()


def test_an_element() -> None:
    """An item of a layout, with the places of its profiles."""
    text = layout(
        "devices: [0, 1]", 'device-filter: ["0x233010DE"]', "mig-enabled: true", "mig-devices: {1g.10gb: 2, 2g.20gb: 0}"
    )
    (found,) = read_layouts(text).entries["a"]
    assert found == Element((0, 1), True, {"1g.10gb": 2}, ("0x233010DE",), (4, 5))
    assert found.places["1g.10gb"] == (7, 19)


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("", (1, 1), "the text is empty"),
        ("a: [", (1, 5), "a value is missing"),
        ("- a", (1, 1), "the file is not a mapping"),
        ("mig-configs: {a: [{devices: all, mig-enabled: false}]}", (1, 1), "version is missing"),
        (HEAD.replace("v1", "v2") + "  a: [{devices: all, mig-enabled: false}]", (1, 10), "version is not v1"),
        ("version: v1\n", (1, 1), "mig-configs is missing"),
        ("version: v1\nmig-configs: {}\n", (2, 14), "mig-configs is empty"),
        ("version: v1\nmig-configs: {a: []}\n", (2, 18), "the layout a is empty"),
        ("version: v1\nmigConfigs: {}\n", (2, 1), "migConfigs is unknown in the file"),
        (HEAD + "  a: [{devices: all, mig-enabled: false}]\n---\nb: 1", (5, 1), "a second document"),
        (HEAD + "  a: [{devices: all, mig-enabled: false}]\n  a: []", (4, 3), "a stands twice"),
        (HEAD + "  -a: [{devices: all, mig-enabled: false}]", (3, 3), "no node can ask for the layout '-a'"),
        (layout("mig-enabled: false"), (4, 5), "devices is missing"),
        (layout("devices: all"), (4, 5), "mig-enabled is missing"),
        (layout("devices: all", "mig-enabled: true"), (5, 5), "mig-enabled: true without mig-devices"),
        (layout("devices: all", "migEnabled: true"), (5, 5), "migEnabled is unknown"),
        (layout("devices: some", "mig-enabled: false"), (4, 14), "devices is 'some'"),
        (layout("devices: [-1]", "mig-enabled: false"), (4, 15), "not a whole number"),
        (layout("devices: ['0']", "mig-enabled: false"), (4, 15), "not a whole number"),
        (layout("devices: [0, 1, 0]", "mig-enabled: false"), (4, 21), "GPU 0 is listed twice"),
        (layout("devices: []", "mig-enabled: false"), (4, 14), "devices lists no GPU"),
        (layout("devices: {a: 1}", "mig-enabled: false"), (4, 14), "devices is not a list"),
        (layout("devices: all", 'mig-enabled: "true"'), (5, 18), "neither true nor false"),
        (
            layout("devices: all", "mig-enabled: false", "mig-devices: {1g.10gb: 1}"),
            (6, 5),
            "beside mig-enabled: false",
        ),
        (layout("devices: all", "mig-enabled: true", "mig-devices: {1g.10gb: 0}"), (6, 18), "all counts are 0"),
        (layout("devices: all", "mig-enabled: true", 'mig-devices: {1g.10gb: "7"}'), (6, 28), "not a whole number"),
        (layout("devices: all", "mig-enabled: true", "mig-devices: {1g.10GB: 7}"), (6, 19), "not a MIG profile"),
        (
            layout("devices: all", "mig-enabled: true", "mig-devices: [1g.10gb]"),
            (6, 18),
            "mig-devices is not a mapping",
        ),
        (layout("devices: all", "mig-enabled: false", "device-filter: 0x233010DE"), (6, 20), "which is not text"),
        (layout("devices: all", "mig-enabled: false", "device-filter: '0x10DE2330'"), (6, 20), "the vendor comes last"),
        (layout("devices: all", "mig-enabled: false", "device-filter: [H100]"), (6, 21), "not a PCI id"),
    ],
)
def test_problems_of_layouts(text: str, place: tuple[int, int], what: str) -> None:
    """Each mistake is one problem, at its line and column (reconciler.md 3.4)."""
    found = read_layouts(text)
    assert [(problem.place, what in problem.what) for problem in found.problems] == [(place, True)]
    assert found.problems[0].why
    assert found.problems[0].remedy


@pytest.mark.parametrize(
    "text",
    [
        layout("devices: all", "mig-enabled: yes", "mig-devices: {}"),
        layout("devices: all", "mig-enabled: false", "mig-devices: {}"),
        layout("devices: all", "mig-enabled: false", "device-filter: '0x2BB310DE:0x227A10DE'"),
        layout("devices: all", "mig-enabled: false", "device-filter: '0x20b010de'"),
        HEAD + "  a: &a\n  - devices: all\n    mig-enabled: false\n  b: *a\n",
        HEAD + "  a:\n  - &x\n    devices: all\n    mig-enabled: false\n  b:\n  - <<: *x\n    devices: [0]\n",
        '{"version": "v1", "mig-configs": {"a": [{"devices": "all", "mig-enabled": false}]}}',
    ],
)
def test_what_the_manager_takes(text: str) -> None:
    """What the manager's parser takes is no problem: YAML 1.1 booleans, anchors, merge keys, JSON, capitals or not."""
    assert read_layouts(text).problems == ()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("version: v1\nservices: [a.service]\n", "services is unknown"),
        ("version: v1\n", "systemd-services is missing"),
        ("version: v2\nsystemd-services: []\n", "version is not v1"),
        ("version: v1\nsystemd-services: a.service\n", "not a list"),
        ("version: v1\nsystemd-services: ['a b']\n", "not a systemd unit"),
    ],
)
def test_problems_of_clients(text: str, what: str) -> None:
    """The list of services that are stopped while a layout changes has one form (reconciler.md M23)."""
    assert [what in problem.what for problem in read_clients(text)] == [True]
    assert read_clients("systemd-services: [kubelet.service, foo@bar.service]\n") == ()


@given(st.text() | st.text("abc:-[]{}#&*<! \n\t'\"|>0137gm.+", max_size=60).map(lambda text: HEAD + text))
def test_any_text_is_read(text: str) -> None:
    """Reading never raises, whatever the text is."""
    read_layouts(text)
    read_clients(text)


@pytest.mark.parametrize(
    ("filters", "product", "matches"),
    [
        ((), None, True),
        (("0x233010DE",), None, None),
        (("0x233010DE",), "NVIDIA-H100-80GB-HBM3", True),
        (("0x233010de", "0x233110DE"), "NVIDIA-H100-PCIe", True),
        (("0x233010DE",), "NVIDIA-H200", False),
        (("0x2BB310DE:0x227A10DE",), "NVIDIA-RTX-PRO-5000-72GB-Blackwell", True),
    ],
)
def test_filters(filters: tuple[str, ...], product: str | None, matches: bool | None) -> None:
    """A filter lets boards through by PCI id, in capitals or not; without a product nobody knows."""
    found = gpus.product(product) if product else None
    assert Element(None, True, {}, filters).matches(found) is matches
