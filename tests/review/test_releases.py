"""What a step between releases changes, against the facts about the releases."""

from __future__ import annotations

from gpustack.review.releases import Change, compare, object_changes


def test_silent_flips_are_told_apart() -> None:
    """Defaults that change what runs are flips: CDI in v25.10 apart, these came with v26.3 and v26.7."""
    flips = {
        change.path: (change.before, change.after) for change in compare("v25.10.1", "v26.7.0").defaults if change.flips
    }
    assert flips["ccManager.enabled"] == (False, True)
    assert flips["ccManager.defaultMode"] == ("off", "on")
    assert flips["dcgmExporter.serviceMonitor.enabled"] == (False, True)


def test_images_and_driver_branch() -> None:
    """Images that differ are listed with both references, and the driver's branch is said (operator-releases.md 2)."""
    diff = compare("v26.3.1", "v26.7.0")
    assert diff.driver_branches == ("580", "595")
    assert (
        Change(
            "toolkit", "nvcr.io/nvidia/k8s/container-toolkit:v1.19.0", "nvcr.io/nvidia/k8s/container-toolkit:v1.20.0"
        )
        in diff.images
    )
    assert all(change.before != change.after for change in diff.images)


def test_fields_of_the_newer_release() -> None:
    """A field that the older release doesn't know is listed, whichever way one goes (catalog/data/fields, since)."""
    up = {change.path for change in compare("v26.3.1", "v26.7.0").fields}
    down = {change.path for change in compare("v26.7.0", "v26.3.1").fields}
    assert "hostPaths.kubeletRootDir" in up
    assert up == down
    assert "cdi.nriPluginEnabled" not in up


def test_behaviour_in_words() -> None:
    """What one of the releases renders otherwise is said in the words of the trait; back again it is 'no longer'."""
    up = compare("v26.3.1", "v26.7.0").behaviour
    assert any("Init containers get resources" in line for line in up)
    assert all(line.startswith("No longer: ") for line in compare("v26.7.0", "v26.3.1").behaviour)
    assert compare("v26.7.0", "v26.7.0").behaviour == ()


def test_what_happens_to_objects() -> None:
    """Objects are grouped by what happens to them; a changed workload restarts its pods, unless it waits (OnDelete)."""
    waiting = "  updateStrategy:\n    type: OnDelete\n"
    same = {"base/configmap-a.yaml": "1", "operands/daemonset-b.yaml": "1", "driver/daemonset-e.yaml": "1"}
    before = {**same, "operands/role-c.yaml": "1"}
    after = {path: f"2\n{waiting}" if path.startswith("driver/") else "2" for path in same} | {
        "operands/role-d.yaml": "1"
    }
    assert object_changes(before, after) == {
        "removed": ["operands/role-c.yaml"],
        "added": ["operands/role-d.yaml"],
        "changed": ["base/configmap-a.yaml"],
        "rolls": ["operands/daemonset-b.yaml"],
        "waits": ["driver/daemonset-e.yaml"],
    }
