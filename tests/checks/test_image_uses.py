"""The images that objects name: containers, variables, texts, custom resources; and nothing that isn't one."""

from __future__ import annotations

from typing import Any

import pytest

from gpustack.checks.objects.images import in_text, uses


def found(spec: Any, kind: str = "DaemonSet") -> list[tuple[str, str, bool]]:
    """The images of an object with SPEC: reference, place, whether a container pulls it."""
    body = {"kind": kind, "metadata": {"name": "a", "namespace": "n"}, "spec": spec}
    return [(reference, use.place, use.pulled) for reference, use in uses(body)]


def test_containers_of_all_kinds() -> None:
    """Main, init and ephemeral containers pull their image, also one without a registry; an image volume names one."""
    pod = {
        "containers": [{"image": "busybox"}],
        "initContainers": [{"image": "nvcr.io/nvidia/driver:595-ubuntu22.04"}],
        "volumes": [{"image": {"reference": "models/llama:1"}}, {"image": {"reference": "llama:1"}}],
    }
    assert found({"template": {"spec": pod}}) == [
        ("busybox", "spec.template.spec.containers[0].image", True),
        ("nvcr.io/nvidia/driver:595-ubuntu22.04", "spec.template.spec.initContainers[0].image", True),
        ("models/llama:1", "spec.template.spec.volumes[0].image.reference", False),
        ("llama:1", "spec.template.spec.volumes[1].image.reference", False),
    ]


def test_what_is_started_later() -> None:
    """A variable, an argument and a field of a custom resource name an image that no container of the object pulls."""
    container = {
        "image": "r.example.com/a:1",
        "env": [{"name": "VALIDATOR_IMAGE", "value": "r.example.com/validator:v26.7.0"}],
        "args": ["--image=localhost:5000/x@sha256:" + "a" * 64],
    }
    named = [row for row in found({"containers": [container]}) if not row[2]]
    assert named == [
        ("r.example.com/validator:v26.7.0", "spec.containers[0].env[0].value", False),
        ("localhost:5000/x@sha256:" + "a" * 64, "spec.containers[0].args[0]", False),
    ]
    assert found({"artifacts": {"url": "nvcr.io/nvidia/kata:1"}}, "Thing") == [
        ("nvcr.io/nvidia/kata:1", "spec.artifacts.url", False)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "url: nvcr.io/nvidia/kata-gpu-artifacts:ubuntu22.04-535.54.03\n",
        '{"image":"nvcr.io/nvidia/kata-gpu-artifacts:ubuntu22.04-535.54.03"}',
        "ctr image pull nvcr.io/nvidia/kata-gpu-artifacts:ubuntu22.04-535.54.03.\n",
    ],
)
def test_texts(text: str) -> None:
    """YAML, JSON and scripts inside a ConfigMap."""
    assert in_text(text) == ("nvcr.io/nvidia/kata-gpu-artifacts:ubuntu22.04-535.54.03",)


@pytest.mark.parametrize(
    "text",
    [
        "https://nvcr.io/v2/x:1",
        "nvidia.com/gpu: 4",
        '{"nvidia.com/gpu":4}',
        "/run/nvidia/driver:/run",
        "system:serviceaccount:gpu-operator/x:y",
        "10.0.0.1:8080/healthz",
        "nvidia.com/gpu.present=true",
        "dl.example.com/a//b:1",
    ],
)
def test_what_is_no_image(text: str) -> None:
    """Addresses, resources, mounts and labels are none."""
    assert in_text(text) == ()


def test_examples_in_a_crd() -> None:
    """Descriptions of a CRD hold examples, which nobody pulls."""
    assert found({"description": "such as nvcr.io/nvidia/driver:1"}, "CustomResourceDefinition") == []
