"""verify in the cluster: it may list and nothing else, and holds the cluster against what the command line does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpustack.api.expectations import kind_of
from gpustack.catalog import kubernetes
from gpustack.cluster.expectations import Expected
from gpustack.cluster.resolve import resolve
from gpustack.compiler.validate import validate
from gpustack.components.verify import verify_inputs
from gpustack.components.verify.verify import Verify
from gpustack.live import __main__ as program
from gpustack.live.state import of_files
from gpustack.live.verify import verify
from gpustack.model import Body, FindingsError
from tests.components.common import grants, render, spec
from tests.live.test_verify import POOLS, RENDERED, cluster

IMAGE = "registry.example.com/gpu/gpustack-reconciler:1"
SECTIONS: dict[str, Any] = {
    "nodePools": [{**POOLS[0], "count": {"min": 0, "max": 2}}],
    "driver": {"version": "580.126.20"},
    "reconciler": {"image": IMAGE, "startupTaints": [{"key": "starting", "effect": "NoSchedule"}]},
    "verify": {"schedule": "17 * * * *", "timeZone": "Europe/Berlin"},
}
CRD: Body = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "nodepolicies.gpustack.dev", "labels": {"a": "b"}},
    "spec": {"group": "gpustack.dev"},
}
SECRET: Body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "gpu-operator"}}
ELSEWHERE: Body = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "events", "namespace": "default"},
}


def made(rendered: list[Body] = [CRD, SECRET, ELSEWHERE, *RENDERED], **changes: Any) -> dict[str, Body]:  # noqa: B006
    """What the component makes beside what is RENDERED."""
    inputs = verify_inputs.from_cluster(resolve(spec(**SECTIONS | changes)))
    assert inputs
    return render(Verify, inputs.seeing(rendered))


def write(folder: Path, bodies: dict[str, Body]) -> None:
    """The ConfigMap's files, as they are mounted."""
    for name, text in bodies["ConfigMap/gpustack-verify"]["data"].items():
        (folder / name).write_text(text, encoding="utf-8")


def test_it_may_list_and_nothing_else() -> None:
    """The kinds that are rendered, and what tells how nodes and the stack do; no Secret, and pods here alone."""
    bodies = made()
    assert grants(bodies["ClusterRole/gpustack-verify"]) == {"nodes:list", "customresourcedefinitions:list"}
    assert bodies["Role/gpustack-verify"]["metadata"]["namespace"] == "default"  # the last of that name
    assert grants(bodies["Role/gpustack-verify"]) == {"roles:list"}
    inputs = verify_inputs.from_cluster(resolve(spec(**SECTIONS)))
    assert inputs
    alone = render(Verify, inputs.seeing([SECRET, *RENDERED]))
    here = grants(alone["Role/gpustack-verify"])
    assert {"pods:list", "configmaps:list", "deployments:list", "controllerrevisions:list"} <= here
    assert {each.partition(":")[2] for each in here} == {"list"}
    assert "secrets:list" not in here
    (subject,) = bodies["RoleBinding/gpustack-verify"]["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": "gpustack-verify", "namespace": "gpu-operator"}


def test_the_job() -> None:
    """One at a time, by the schedule and zone of the policy, tried once, with an end; as nobody, and read-only."""
    job = made()["CronJob/gpustack-verify"]
    assert not [*validate(job, kubernetes.minor("1.34"))]
    told = job["spec"]
    assert (told["schedule"], told["timeZone"], told["concurrencyPolicy"]) == ("17 * * * *", "Europe/Berlin", "Forbid")
    run = told["jobTemplate"]["spec"]
    pod = run["template"]["spec"]
    assert (run["backoffLimit"], run["activeDeadlineSeconds"], pod["restartPolicy"]) == (0, 600, "Never")
    (container,) = pod["containers"]
    assert (container["image"], container["command"]) == (IMAGE, ["python", "-m", "gpustack.live", "/etc/gpustack"])
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert container["resources"]["limits"] == {"memory": "1Gi"}


def test_both_find_the_same(tmp_path: Path) -> None:
    """What the CronJob reads is what the command line holds a cluster against, so each fault is found by both."""
    write(tmp_path, made())
    read = program.read(tmp_path)
    whole = Expected.of(resolve(spec(**SECTIONS)), [CRD, ELSEWHERE, *RENDERED])
    assert read.pools == whole.pools
    assert [kind_of(each) for each in read.rendered] == [kind_of(each) for each in whole.rendered]
    bodies = [*cluster(), CRD, ELSEWHERE]
    assert verify(read, of_files(bodies)) == verify(whole, of_files(bodies)) == []
    bodies[0]["status"]["allocatable"] = {"nvidia.com/gpu": "7"}
    bodies[0]["spec"]["taints"].append({"key": "starting", "effect": "NoSchedule"})
    bodies[1]["metadata"]["labels"]["nvidia.com/cuda.driver-version.full"] = "570.1.1"
    bodies[4]["data"]["x"] = "2"
    bodies.remove(ELSEWHERE)
    found = verify(read, of_files(bodies))
    assert found == verify(whole, of_files(bodies))
    assert {each.rule for each in found} == {"LIV102", "LIV304", "LIV402", "LIV501"}
    assert "at: spec.nodePools[0]\n" in program.told(found)
    assert program.told(found).splitlines()[-1] == "4 errors"


def test_a_pool_that_doesnt_say_its_number(tmp_path: Path) -> None:
    """Its nodes offer some GPUs, however many."""
    pool = {key: value for key, value in POOLS[0].items() if key != "gpusPerNode"}
    write(tmp_path, made(nodePools=[{**pool, "count": 2}]))
    bodies = [*cluster(), CRD, ELSEWHERE]
    assert verify(program.read(tmp_path), of_files(bodies)) == []
    bodies[0]["status"]["allocatable"] = {}
    (finding,) = verify(program.read(tmp_path), of_files(bodies))
    assert "offers 0 nvidia.com/gpu; the pool training should have some" in finding.what


def test_off_by_default() -> None:
    """Without a schedule there is nothing."""
    said: object
    for said in (None, {}):
        assert verify_inputs.from_cluster(resolve(spec(**{**SECTIONS, "verify": said}))) is None


def test_what_no_config_map_holds_is_refused() -> None:
    """By the field that asks for it: the API server takes a megabyte."""
    large = {**RENDERED[0], "data": {"a": "x" * 1_100_000}}
    with pytest.raises(FindingsError) as refused:
        made([large])
    (finding,) = refused.value.findings
    assert (finding.rule, finding.path) == ("GPU044", "spec.verify.schedule")


def test_what_could_not_be_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Is told in the log, and the Job fails."""
    assert program.main(tmp_path) == 1
    assert capsys.readouterr().out.startswith("the cluster could not be looked at: FileNotFoundError")
