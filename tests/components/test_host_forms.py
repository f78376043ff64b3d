"""What is set up on hosts: each form is read by what reads it on a machine, where that can be had, and the script is
run."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
import yaml
from pydantic import ValidationError

from gpustack.checks.rule import all_rules
from gpustack.cluster.node_host import fitting, forms
from gpustack.cluster.resolve import Cluster, resolve
from gpustack.components.nodes.forms import MAKERS, text
from gpustack.components.nodes.nodes import Nodes
from gpustack.model import Body
from tests.components.common import chart, spec
from tests.project import ROOT
from tests.readers import modules

DROP_IN = '[plugins."io.containerd.cri.v1.runtime"]\nenable_cdi = true # isn\'t "$HOME" or 5%d \\t\n'
KERNEL = "6.8.0-50-generic"
EVERYTHING: Body = {
    "blockNouveau": True,
    "iommu": "intel",
    "vfio": ["8086:1592", "15b3:101e"],
    "hugePages": {"1Gi": 8, "2Mi": 512},
    "fabricManager": True,
    "maskImex": True,
    "containerdDropIn": DROP_IN,
    "pinKernel": True,
}
ARGUMENTS = [
    *("modprobe.blacklist=nouveau", "rd.driver.blacklist=nouveau", "intel_iommu=on", "iommu=pt"),
    *("vfio-pci.ids=8086:1592,15b3:101e", "hugepagesz=1G", "hugepages=8"),
]
"""The kernel's and dracut's own names (docs.kernel.org/admin-guide/kernel-parameters, dracut.cmdline)."""
DROPPED = "/etc/containerd/conf.d/50-gpustack.toml"


def cluster(host: Body, os: str = "ubuntu24.04", platform: str = "kubeadm-bare-metal", **said: Any) -> Cluster:
    """A cluster with one pool, whose nodes bring their driver."""
    pool = {"name": "p", "os": os, "kernel": KERNEL, "gpuProduct": "NVIDIA-H100-80GB-HBM3", "host": host, **said}
    facts: Body = {"platform": platform, **({"containerRuntime": "cri-o"} if platform == "openshift" else {})}
    return resolve(spec(cluster=facts, driver={"enabled": False}, nodePools=[pool]))


def made(form: str, host: Body = EVERYTHING, **said: Any) -> str:
    """The text in FORM."""
    return text(cluster(host, **said).pools[0], form)


def without(form: str) -> Body:
    """Everything that FORM can hold."""
    return {name: value for name, value in EVERYTHING.items() if name not in forms()[form].get("cannot", {})}


def refused(where: Cluster, rule: str) -> list[str]:
    """Where RULE speaks up."""
    (chosen,) = (each for each in all_rules() if each.id == rule)
    return [each.path for each in chosen.findings(where.spec)]


@pytest.mark.parametrize(
    ("system", "platform", "usual"),
    [
        ("ubuntu24.04", "kubeadm-bare-metal", "cloud-init"),
        ("rhel9.4", "kubeadm-bare-metal", "cloud-init"),
        ("amzn2023", "eks-al2023", "cloud-init"),
        ("talos1.11", "talos", "talos"),
        ("bottlerocket1.50", "eks-bottlerocket", "bottlerocket"),
        ("flatcar4152.2.0", "flatcar", "butane"),
        ("rhcos4.18", "openshift", "machine-config"),
        ("cos121", "gke-cos", "none"),
    ],
)
def test_the_form_follows_from_the_system(system: str, platform: str, usual: str) -> None:
    """What the pool's nodes run says in which form they take it."""
    assert fitting(cluster({"blockNouveau": True}, system, platform).pools[0])[0] == usual


@pytest.mark.parametrize("form", [name for name in forms() if name != "none"])
def test_what_a_form_cannot_hold_is_refused(form: str) -> None:
    """Each setting is in the form, needless there, or refused at its place: nothing is left out in silence."""
    known = forms()[form]
    assert known.get("cannot", {}).keys() | known.get("needless", {}).keys() <= EVERYTHING.keys()
    assert form in MAKERS
    system = {"*": "ubuntu24.04"}.get(known["systems"][0], f"{known['systems'][0]}4.18")
    platform = "openshift" if form == "machine-config" else "generic"
    if form == fitting(cluster(EVERYTHING, system, platform).pools[0])[0]:
        wanted = [f"spec.nodePools[0].host.{name}" for name in EVERYTHING if name in known.get("cannot", {})]
        assert sorted(refused(cluster(EVERYTHING, system, platform), "GPU490")) == sorted(wanted)
    for name in known.get("needless", {}):
        assert name in made(form, {name: True, "iommu": "amd"}), "the text says what is left out, and why"


def test_nothing_is_set_up_on_container_optimized_os() -> None:
    """Each setting is refused there."""
    assert len(refused(cluster(EVERYTHING, "cos121", "gke-cos"), "GPU490")) == len(EVERYTHING)


def test_ignition_reads_its_form() -> None:
    """Ignition itself has nothing against it, and finds what was said."""
    said = made("ignition", without("ignition"))
    assert modules.ignition(said) == ""
    assert modules.ignition(said.replace('"path": "/etc', '"path": "etc')) != "", "it is read"
    body = json.loads(said)
    assert body["kernelArguments"]["shouldExist"] == ARGUMENTS
    files = {
        each["path"]: unquote(each["contents"]["source"].removeprefix("data:,")) for each in body["storage"]["files"]
    }
    assert files["/etc/sysctl.d/50-gpustack.conf"] == "vm.nr_hugepages = 512\n"
    assert files["/etc/modules-load.d/gpustack-vfio.conf"] == "vfio-pci\n"
    assert body["systemd"]["units"] == [
        {"name": "nvidia-fabricmanager.service", "enabled": True},
        {"name": "nvidia-imex.service", "mask": True},
    ]


def test_butane_says_the_same_as_ignition() -> None:
    """Files are written as they are, and options with the names of Butane."""
    body = yaml.safe_load(made("butane", without("butane")))
    assert (body["variant"], body["version"]) == ("flatcar", "1.0.0")
    assert body["kernel_arguments"]["should_exist"] == ARGUMENTS
    other = json.loads(made("ignition", without("ignition")))
    assert [each["path"] for each in body["storage"]["files"]] == [each["path"] for each in other["storage"]["files"]]
    assert body["systemd"] == other["systemd"]


def test_a_machine_config() -> None:
    """Its Ignition is read by Ignition and has no kernel arguments, which stand beside it (nodes.md 4.1); it is
    rendered for the MachineConfigPool that is said, and for no other.
    """
    host = without("machine-config")
    said = {"os": "rhcos4.18", "platform": "openshift"}
    (found,) = Nodes(chart(), "machine-config", cluster({**host, "machineConfigPool": "gpu"}, **said)).resources()
    body = found.body
    assert body["metadata"]["labels"]["machineconfiguration.openshift.io/role"] == "gpu"
    assert body["spec"]["kernelArguments"] == ARGUMENTS
    assert "kernelArguments" not in body["spec"]["config"]
    assert modules.ignition(json.dumps(body["spec"]["config"])) == ""
    assert (found.kind, found.stage) == ("MachineConfig", "base")
    assert not Nodes(chart(), "no-machine-config", cluster(host, **said)).resources()
    assert yaml.safe_load(made("machine-config", {**host, "machineConfigPool": "gpu"}, **said)) == body


def test_a_patch_of_talos() -> None:
    """Modules have their parameters, files are containerd's one drop-in (nodes.md 4.2)."""
    machine = yaml.safe_load(made("talos", without("talos"), os="talos1.11", platform="talos"))["machine"]
    assert machine["install"]["extraKernelArgs"] == [
        each for each in ARGUMENTS[2:] if not each.startswith("vfio-pci.ids=")
    ], "and no nouveau, which Talos doesn't have"
    assert machine["kernel"]["modules"] == [{"name": "vfio_pci", "parameters": ["ids=8086:1592,15b3:101e"]}]
    assert machine["sysctls"] == {"vm.nr_hugepages": "512"}
    (file,) = machine["files"]
    assert (file["path"], file["content"]) == ("/etc/cri/conf.d/20-customization.part", DROP_IN)


def test_settings_of_bottlerocket() -> None:
    """They are TOML, with lists of values for kernel parameters (nodes.md 4.3)."""
    settings = tomllib.loads(made("bottlerocket", without("bottlerocket"), os="bottlerocket1.50"))["settings"]
    assert settings["boot"]["kernel-parameters"] == {
        "intel_iommu": ["on"],
        "iommu": ["pt"],
        "vfio-pci.ids": ["8086:1592,15b3:101e"],
        "hugepagesz": ["1G"],
        "hugepages": ["8"],
    }
    assert settings["kernel"]["sysctl"] == {"vm.nr_hugepages": "512"}
    assert settings["kernel"]["modules"]["nouveau"] == {"allowed": False}
    assert settings["kernel"]["modules"]["vfio-pci"] == {"allowed": True, "autoload": True}


def test_cloud_init_takes_its_form() -> None:
    """cloud-init's own schema has nothing against it (nodes.md 4.5), and what it brings along is the script."""
    subprocess.run([ROOT / "tools/cloud_init.sh"], check=True)
    schema = json.loads((ROOT / ".tools/cloud-init.schema.json").read_text(encoding="utf-8"))
    said = made("cloud-init")
    assert said.startswith("#cloud-config\n")
    body = yaml.safe_load(said)
    checker = jsonschema.Draft4Validator(schema)
    assert [error.message for error in checker.iter_errors(body)] == []
    assert [*checker.iter_errors({**body, "runcmd": 1})], "it is looked at"
    assert body["write_files"][0]["content"] == "".join(
        line for line in made("shell").splitlines(keepends=True) if not line.startswith("# Nodes of")
    )


STUBS = {
    "uname": 'echo "$RUNS"',
    "systemctl": 'case $1 in is-enabled) case $* in *imex*) cat "$STATE/imex"; ;; *) [ -e "$STATE/fm" ] ;; esac ;;\n'
    'enable) : >"$STATE/fm" ;; mask) echo masked >"$STATE/imex" ;; try-restart) echo restarted ;; esac',
    "apt-get": "exit 1",
    "update-grub": 'cp "$GPUSTACK_ROOT/etc/default/grub.d/50-gpustack.cfg" "$STATE/grub"',
}
"""What the script calls on a host of Debian's kind."""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A folder that stands for a host, with nouveau loaded, and programs that remember what they were told."""
    for name in ("proc/sys/vm", "etc/containerd", "state", "bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "proc/cmdline").write_text("BOOT_IMAGE=/vmlinuz quiet\n")
    (tmp_path / "proc/modules").write_text("nouveau 2625536 1 - Live 0x0\n")
    (tmp_path / "proc/sys/vm/nr_hugepages").write_text("0\n")
    (tmp_path / "etc/containerd/config.toml").write_text('version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n')
    (tmp_path / "state/imex").write_text("enabled\n")
    for name, body in STUBS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def run(host: Path, script: str, mode: str, kernel: str = KERNEL) -> subprocess.CompletedProcess[str]:
    """Run SCRIPT in HOST."""
    path = host / "script"
    path.write_text(script, encoding="utf-8")
    state = {"GPUSTACK_ROOT": str(host), "STATE": str(host / "state"), "RUNS": kernel}
    search = os.pathsep.join((str(host / "bin"), "/usr/bin", "/bin"))
    command = ["/bin/sh", str(path), mode]
    return subprocess.run(command, env={"PATH": search, **state}, capture_output=True, text=True, check=False)


def tree(host: Path) -> dict[str, bytes]:
    """All that is on HOST."""
    return {str(path): path.read_bytes() for path in host.rglob("*") if path.is_file() and path.name != "script"}


def test_the_script_only_looks(host: Path) -> None:
    """`check` names each difference, changes nothing, and exits with 1; `sh -n` has nothing against the script."""
    script = made("shell")
    before = tree(host)
    ran = run(host, script, "check")
    assert (ran.returncode, ran.stderr) == (1, "")
    for word in (DROPPED, "module nouveau", "nvidia-fabricmanager", "nvidia-imex", "vm.nr_hugepages", *ARGUMENTS):
        assert [line for line in ran.stdout.splitlines() if line.startswith("differs: ") and word in line], word
    assert tree(host) == before
    assert subprocess.run(["/bin/sh", "-n", host / "script"], check=False).returncode == 0
    assert run(host, script, "remove").returncode == 64


def test_the_script_sets_up_and_is_content(host: Path) -> None:
    """`apply` does all of it once, asks for a restart, and after that nothing differs; contents are what they were."""
    script = made("shell")
    assert run(host, script, "apply").returncode == 0
    assert (host / DROPPED[1:]).read_text(encoding="utf-8") == DROP_IN, "nothing of it is the shell's"
    assert (host / "proc/sys/vm/nr_hugepages").read_text() == "512\n"
    assert stat.S_IMODE((host / DROPPED[1:]).stat().st_mode) == 0o644
    assert "Pin-Priority: -1\n" in (host / "etc/apt/preferences.d/gpustack-kernel").read_text()
    wanted = f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {" ".join(ARGUMENTS)}"\n'
    assert (host / "state/grub").read_text() == wanted
    assert (host / "run/gpustack-host.reboot").exists()
    (host / "proc/cmdline").write_text(" ".join(ARGUMENTS) + "\n")  # the host restarts
    (host / "proc/modules").write_text("nvidia 1 1 - Live 0x0\n")
    after = tree(host)
    ran = run(host, script, "check")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert run(host, script, "apply").returncode == 0
    assert tree(host) == after


@pytest.mark.parametrize("mode", ["check", "apply"])
def test_another_kernel_is_not_held(host: Path, mode: str) -> None:
    """The kernel that is wanted couldn't be installed any more: the script says so and holds nothing."""
    ran = run(host, made("shell", {"pinKernel": True}), mode, "6.8.0-60-generic")
    assert ran.returncode == 1
    assert f"not {KERNEL}" in ran.stdout
    assert not (host / "etc/apt/preferences.d/gpustack-kernel").exists()


@pytest.mark.parametrize(
    ("config", "reads"),
    [
        ("version = 3\n", False),
        ('version = 3\n# imports = ["/etc/containerd/conf.d/*.toml"]\n', False),
        ("imports = [\n  '/etc/other/*.toml', # ours\n  '/etc/containerd/conf.d/*.toml',\n]\n", True),
    ],
)
def test_a_drop_in_that_nobody_reads(host: Path, config: str, reads: bool) -> None:
    """It is told in each run, by `check` too, and isn't written; an import may stand on several lines."""
    (host / "etc/containerd/config.toml").write_text(config)
    script = made("shell", {"containerdDropIn": DROP_IN})
    assert ("doesn't import" in run(host, script, "check").stdout) is not reads
    for _ in range(2):
        assert run(host, script, "apply").returncode == (0 if reads else 1)
    assert (host / DROPPED[1:]).exists() is reads


def test_pages_that_the_kernel_does_not_find(host: Path) -> None:
    """Where it takes another number than it was given, the host restarts for it."""
    (host / "proc/sys/vm/nr_hugepages").unlink()
    (host / "proc/sys/vm/nr_hugepages").symlink_to("/dev/null")
    assert run(host, made("shell", {"hugePages": {"2Mi": 512}}), "apply").returncode == 0
    assert (host / "run/gpustack-host.reboot").exists()


@pytest.mark.parametrize(
    ("host", "word"),
    [
        ({"machineConfigPool": "gpu"}, "nothing"),
        ({"containerdDropIn": "enable_cdi = yes"}, "TOML"),
        ({"containerdDropIn": 'imports = ["/a"]\nversion = 3'}, "imports"),
        ({"containerdDropIn": '[a.b]\nauth = {password = "x"}'}, "secret"),
        ({"vfio": ["10DE:2330"]}, "PCI id"),
        ({"hugePages": {"4Mi": 1}}, "2Mi"),
    ],
)
def test_what_is_refused(host: Body, word: str) -> None:
    """It is said in words that name it."""
    with pytest.raises(ValidationError) as caught:
        cluster(host)
    (error,) = caught.value.errors()
    assert error["loc"][:3] == ("nodePools", 0, "host")
    assert word in error["msg"]


@pytest.mark.parametrize(
    ("host", "said", "at"),
    [
        ({"vfio": ["10de:2330"], "iommu": "intel"}, {}, "vfio"),
        ({"vfio": ["15b3:101e"]}, {}, "vfio"),
        ({"containerdDropIn": DROP_IN}, {"platform": "rke2"}, "containerdDropIn"),
        ({"containerdDropIn": DROP_IN}, {"platform": "k0s"}, "containerdDropIn"),
        ({"containerdDropIn": DROP_IN}, {"containerRuntime": "cri-o"}, "containerdDropIn"),
        ({"iommu": "amd"}, {"arch": "arm64"}, "iommu"),
        ({"pinKernel": True}, {"kernel": None}, "pinKernel"),
        ({"blockNouveau": True, "machineConfigPool": "gpu"}, {}, "machineConfigPool"),
    ],
)
def test_contradictions(host: Body, said: Body, at: str) -> None:
    """What contradicts the rest of the policy is an error at its place."""
    assert refused(cluster(host, **said), "GPU491") == [f"spec.nodePools[0].host.{at}"]
