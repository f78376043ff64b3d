"""Rules about GitOps, taints, second installations, and pods that the API server refuses."""

from __future__ import annotations

import pytest

from gpustack.checks.rule import all_rules
from gpustack.compiler.cache import Store, own_digest
from gpustack.model import Finding
from tests.checks.snippets import findings
from tests.checks.spec_rules import paths, said

RULES = {rule.id: rule for rule in all_rules()}
TAINT = "{key: sku, value: gpu, effect: %s}"
POOL = f"nodePools: [{{name: gpu-a, os: ubuntu22.04, nodeSelector: {{pool: a}}, taints: [{TAINT}]}}]\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all renders."""
    return Store(tmp_path_factory.mktemp("store"), own_digest())


def of(rule: str, snippet: str, store: Store) -> list[Finding]:
    """What RULE says about the render of SNIPPET."""
    return [finding for finding in findings(snippet, store) if finding.rule == rule]


def test_every_pod_of_the_stack_is_held_against_taints(store: Store) -> None:
    """Driver, operands and the worker of node feature discovery are counted; the message names taint and pool (B25)."""
    (found,) = of("GPU803", POOL % "NoSchedule", store)
    assert found.path == "spec.daemonsets.tolerations"
    assert "don't tolerate sku=gpu:NoSchedule of node pool gpu-a" in found.what
    assert "{key: sku, operator: Equal, value: gpu, effect: NoSchedule}" in found.remedy
    assert int(found.what.split(" and ")[1].split()[0]) >= 8


def test_a_worker_with_tolerations_of_its_own(store: Store) -> None:
    """Whoever gives the worker tolerations has to name all taints there, too."""
    tolerations = "daemonsets: {tolerations: [{key: sku, operator: Exists}]}\n"
    worker = "nfd: {worker: {tolerations: [{key: nvidia.com/gpu, operator: Exists}]}}\n"
    (found,) = of("GPU803", tolerations + worker + POOL % "NoSchedule", store)
    assert found.path == "spec.nfd.worker.tolerations"
    assert found.what.startswith("gpu-operator-node-feature-discovery-worker doesn't tolerate")
    assert of("GPU803", tolerations + POOL % "NoSchedule", store) == []


@pytest.mark.parametrize(
    "policy",
    [
        POOL % "PreferNoSchedule",
        POOL.replace("sku, value: gpu", "node.kubernetes.io/unschedulable") % "NoSchedule",
        "daemonsets: {tolerations: [{operator: Exists}]}\n" + POOL % "NoExecute",
        "nfd: {enabled: false}\ndaemonsets: {tolerations: [{operator: Exists}]}\n" + POOL % "NoExecute",
    ],
)
def test_taints_that_keep_nobody_away(policy: str, store: Store) -> None:
    """Preferences, what the DaemonSet controller tolerates for its pods, and a toleration for everything."""
    assert of("GPU803", policy, store) == []


def test_taints_with_dynamic_resource_allocation(store: Store) -> None:
    """The DRA driver's tolerations are those of gpuCluster."""
    policy = "gpuCluster: {}\ndrivers: [{name: a, default: true}]\ndriver: {enabled: true}\n" + POOL % "NoSchedule"
    assert "spec.gpuCluster.daemonsets.tolerations" in {found.path for found in of("GPU803", policy, store)}
    assert "spec.drivers[0].tolerations" in {found.path for found in of("GPU803", policy, store)}


RELEASE = "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: a}, spec: %s}"
IMAGE = "registry.k8s.io/nfd/node-feature-discovery:v0.18.2"
WORKER = f"{{template: {{spec: {{containers: [{{name: w, image: '{IMAGE}'}}]}}}}}}"
RULE = "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeatureRule, metadata: {name: a}, spec: {rules: []}}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (RULE, False),
        ("{apiVersion: nfd.kubernetes.io/v1, kind: NodeFeatureDiscovery, metadata: {name: a}}", True),
        (RELEASE % "{chart: {spec: {chart: node-feature-discovery}}}", True),
        (RELEASE % "{chart: {spec: {chart: x}}}", False),
        (f"{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: a}}, spec: {WORKER}}}", True),
    ],
)
def test_who_brings_node_feature_discovery(body: str, expected: bool) -> None:
    """Its workloads, its operator's object, or a release of its chart (B27)."""
    found = paths("GPU804", f"extraObjects: [{body}]\n")
    assert found == (["spec.extraObjects[0]"] if expected else [])
    assert paths("GPU804", f"nfd: {{enabled: false}}\nextraObjects: [{body}]\n") == []


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("dcgmExporter: {annotations: {argocd.argoproj.io/sync-wave: '1'}}",
         ['spec.dcgmExporter.annotations["argocd.argoproj.io/sync-wave"]']),
        ("drivers: [{name: a, labels: {kustomize.toolkit.fluxcd.io/name: x}}]",
         ['spec.drivers[0].labels["kustomize.toolkit.fluxcd.io/name"]']),
        ("dcgmExporter: {serviceMonitor: {additionalLabels: {app.kubernetes.io/instance: x}}}",
         ['spec.dcgmExporter.serviceMonitor.additionalLabels["app.kubernetes.io/instance"]']),
        ("daemonsets: {labels: {app.kubernetes.io/name: x, team: argocd}}", []),
    ],
)  # fmt: skip
def test_labels_of_engines(policy: str, expected: list[str]) -> None:
    """Every place from which a label reaches many objects or pods (B20)."""
    assert paths("GPU801", policy) == expected


FORMS = "${A} ${A:?x} ${A/-/_} ${A:0:3} ${A^^} ${A%.x} ${A#a} ${A:+b} ${A+b} a-${A:=4}-b ${#A}".split()
OBJECT = "extraObjects: [{apiVersion: v1, metadata: {name: a}, %s}]"
POD = "kind: Pod, spec: {containers: [{name: main, image: a, %s}]}"
READ_BY_NOBODY = {
    POD % "env: [{name: A, value: '${B}'}]": "spec.containers[0].env[0].value",
    POD % "command: [/app], args: [--url, 'http://${B}']": "spec.containers[0].args[1]",
    POD % "workingDir: '/data/${B}'": "spec.containers[0].workingDir",
    "kind: Service, spec: {type: ExternalName, externalName: '${B}.example.com'}": "spec.externalName",
    "kind: ConfigMap, metadata: {name: a, annotations: {owner: '${B}'}}": "metadata.annotations.owner",
}
READ_BY_OTHERS = (
    POD % "command: [sh, -c], args: ['echo ${B}']",
    POD % "command: [/bin/bash, -ec, 'echo ${B}']",
    POD % "args: [sh, -c, 'echo ${B}']",
    POD % "args: [--url, 'http://$(B)']",
    "kind: ConfigMap, data: {run.sh: 'echo ${B}', board.json: '{\"a\": \"${B}\"}', fluent.conf: 'host ${B}'}",
    'kind: ConfigMap, data: {alloy: "a\\n${B}\\n"}',
    "kind: Secret, stringData: {password: 'a${B}c'}",
    "kind: PrometheusRule, spec: {groups: [{name: a, rules: [{alert: A, annotations: {text: '${B} {{ $value }}'}}]}]}",
    "kind: ServiceMonitor, spec: {endpoints: [{relabelings: [{regex: '(?P<a>.*)', replacement: '${a}'}]}]}",
)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("daemonsets: {annotations: {note: '${CLUSTER}'}}", ["spec.daemonsets.annotations.note"]),
        ("driver: {env: [{name: A, value: '${A:-b}'}]}", ["spec.driver.env[0].value"]),
        ("driver: {env: [{name: A, value: 'x-${A}'}]}", ["spec.driver.env[0].value"]),
        ("driver: {env: [{name: A, value: '$(NODE_NAME)'}]}", []),
        (
            "extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '${A}'}}]",
            ["spec.extraObjects[0].data.a"],
        ),
        ("devicePlugin: {args: ['--resource=${A}']}", ["spec.devicePlugin.args[0]"]),
        ("driver: {args: [init, '${A}']}", ["spec.driver.args[1]"]),
        ("devicePlugin: {args: ['/bin/entrypoint.sh ${A}']}", []),
        *((f"driver: {{env: [{{name: A, value: '{form}'}}]}}", ["spec.driver.env[0].value"]) for form in FORMS),
        *((f"driver: {{env: [{{name: A, value: '{form}'}}]}}", []) for form in ("${1}", "${env:A}", "${}", "{{ .A }}")),
        *((OBJECT % text, ["spec.extraObjects[0]." + path]) for text, path in READ_BY_NOBODY.items()),
        *((OBJECT % text, []) for text in READ_BY_OTHERS),
    ],
)
def test_variables(policy: str, expected: list[str]) -> None:
    """A variable anywhere in a value; what is meant for a shell or a program, or is a regular expression, is left alone
    (B21). Kubernetes itself replaces $(NAME) (its documentation of env and args); the forms are those of shells and of
    Flux's postBuild."""
    assert paths("GPU802", policy) == expected


SECURITY = (
    "{metadata: {labels: {a: b}}, spec: {hostNetwork: %s, securityContext: %s, containers: [{name: a, image: a}]}}"
)
DEPLOYMENT = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: %s}}"


@pytest.mark.parametrize(
    ("rule", "context", "kubernetes", "host_network", "expected"),
    [
        ("GPU815", "{seLinuxChangePolicy: MountOption}", "1.36", "false", "seLinuxChangePolicy"),
        ("GPU815", "{seLinuxChangePolicy: MountOption}", "1.37", "false", ""),
        ("GPU815", "{seLinuxChangePolicy: Recursive}", "1.36", "false", ""),
        ("GPU816", "{windowsOptions: {hostProcess: true}}", "1.37", "false", "windowsOptions.hostProcess"),
        ("GPU816", "{windowsOptions: {hostProcess: true}}", "1.37", "true", ""),
        ("GPU816", "{windowsOptions: {runAsUserName: a}}", "1.37", "false", ""),
    ],
)
def test_security_contexts(rule: str, context: str, kubernetes: str, host_network: str, expected: str) -> None:
    """What the API server refuses (applied to 1.34 to 1.37) is told wherever a policy says it: for the operands, for
    per-pool drivers, for DRA, and in pods that it brings along, where hostNetwork makes host processes valid.
    """
    cluster = f'cluster: {{kubernetesVersion: "{kubernetes}", containerRuntime: containerd}}\n'
    inside = f"podSecurityContext: {context}"
    pod = DEPLOYMENT % (SECURITY % (host_network, context))
    ours = f"spec.%s.podSecurityContext.{expected}" if expected else ""
    for text, path in (
        (f"daemonsets: {{{inside}}}", ours and ours % "daemonsets"),
        (f"drivers: [{{name: a, {inside}}}]", ours and ours % "drivers[0]"),
        (f"gpuCluster: {{daemonsets: {{{inside}}}}}", ours and ours % "gpuCluster.daemonsets"),
    ):
        if host_network == "false":
            assert paths(rule, cluster + text) == ([path] if path else [])
    place = f"spec.extraObjects[0].spec.template.spec.securityContext.{expected}"
    assert paths(rule, f"{cluster}extraObjects: [{pod}]") == ([place] if expected else [])


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ("{requests: {cpu: 2}, limits: {cpu: 1}}", 1),
        ("{requests: {cpu: 1500m}, limits: {cpu: 2}}", 0),
        ("{requests: {memory: 1G}, limits: {memory: 1Gi}}", 0),
        ("{requests: {memory: 1Gi}}", 0),
    ],
)
def test_requests_above_limits(resources: str, expected: int, store: Store) -> None:
    """Quantities are compared by how much they are; the finding stands at the section."""
    found = of("GPU807", f"dcgmExporter: {{resources: {resources}}}", store)
    assert len({finding.path for finding in found}) == expected
    assert {finding.path for finding in found} <= {"spec.dcgmExporter"}


def test_names_that_stand_twice(store: Store) -> None:
    """Variables and mount paths are keys of lists; every container is looked at, wherever the pod stands."""
    container = "{name: a, image: a, env: [{name: X, value: '1'}, {name: Y, value: '1'}, {name: X, value: '2'}]}"
    template = f"{{metadata: {{labels: {{a: b}}}}, spec: {{restartPolicy: Never, containers: [{container}]}}}}"
    job = f"{{schedule: '0 0 * * *', jobTemplate: {{spec: {{template: {template}}}}}}}"
    (found,) = of(
        "GPU808", f"extraObjects: [{{apiVersion: batch/v1, kind: CronJob, metadata: {{name: a}}, spec: {job}}}]", store
    )
    assert found.path == "spec.extraObjects[0].spec.jobTemplate.spec.template.spec.containers[0].env[2]"


def test_strict_namespaces() -> None:
    """Levels that refuse privileged pods, on the stack's own namespace (B23)."""
    body = "[{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {pod-security.kubernetes.io/%s: %s}}}]"
    assert paths("GPU805", "extraObjects: " + body % ("gpu-operator", "enforce", "restricted"))
    for name, mode, level in (
        ("gpu-operator", "enforce", "privileged"),
        ("gpu-operator", "warn", "baseline"),
        ("b", "enforce", "baseline"),
    ):
        assert said("GPU805", "extraObjects: " + body % (name, mode, level)) == ()


COMPARING = '[{key: sla, operator: %s, value: "950", effect: NoSchedule}]'


@pytest.mark.parametrize("operator", ["Lt", "Gt", "Exists", "Equal"])
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("daemonsets: {tolerations: %s}\n", "spec.daemonsets.tolerations"),
        ("gpuCluster: {daemonsets: {tolerations: %s}}\n", "spec.gpuCluster.daemonsets.tolerations"),
        ("nfd: {worker: {tolerations: %s}}\n", "spec.nfd.worker.tolerations"),
        ("reconciler: {image: a, tolerations: %s}\n", "spec.reconciler.tolerations"),
        ("drivers: [{name: a, tolerations: %s}]\n", "spec.drivers[0].tolerations"),
        (
            "extraObjects: [{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {tolerations: %s}}]\n",
            "spec.extraObjects[0].spec.tolerations",
        ),
    ],
)
def test_tolerations_that_compare(text: str, path: str, operator: str) -> None:
    """Applied to API servers of 1.35 and 1.37, Lt and Gt are refused: told wherever pods get their tolerations."""
    snippet = text % (COMPARING % operator)
    if operator == "Exists":
        snippet = snippet.replace(' value: "950",', "")
    expected = [f"{path}[0].operator"] if operator in {"Lt", "Gt"} else []
    assert paths("GPU819", snippet) == expected
