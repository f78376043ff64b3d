"""gpustack push: the artifact that Flux and Argo CD unpack, the same bytes everywhere, and only what was rendered."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from gpustack.gitops.engines.flux import ENGINE
from gpustack.registry.artifact import archive, artifact, stored
from gpustack.registry.client import Client
from gpustack.registry.credentials import Credentials
from gpustack.registry.reference import parse
from tests.project import Project, Ran

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
FLUX = "application/vnd.cncf.flux.content.v1.tar+gzip"
OCI = "application/vnd.oci.image.layer.v1.tar+gzip"
TARGET = "oci://r.example.com/gpu/one:v1"


def git(project: Project, *words: str) -> str:
    """Run git in the project."""
    done = subprocess.run(
        ["git", *words], cwd=project.folder, env={**os.environ, **GIT}, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def rendered(project: Project) -> Project:
    """A project with the cluster `one` rendered and committed, whose remote has a token in its address."""
    project.policy("one")
    assert project.run("render").code == 0
    git(project, "init", "-q")
    git(project, "remote", "add", "origin", "https://ci:tok3n@git.example.com/team/gpu.git")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "one")
    return project


def dry(project: Project, *words: str) -> Any:
    """What a push would write."""
    ran = project.run("push", TARGET, *words, "--dry-run", "--format", "json", env=GIT)
    assert ran.code == 0, ran.err
    return ran.json


def pull(reference: str) -> tuple[dict[str, Any], bytes]:
    """The manifest of REFERENCE and its layer, as an engine gets them."""
    image = parse(reference)
    assert image
    with Client(Credentials({})) as client:
        manifest = json.loads(client.manifest(image).content)
        (layer,) = manifest["layers"]
        content = client.blob(image, layer["digest"])
        assert len(content) == layer["size"]
        assert client.blob(image, manifest["config"]["digest"]) == b"{}"
    return manifest, content


@pytest.mark.parametrize(
    ("words", "layer", "config"),
    [
        ((), FLUX, "application/vnd.cncf.flux.config.v1+json"),
        (("--for", "argocd"), OCI, "application/vnd.oci.empty.v1+json"),
    ],
)
def test_pushed_and_pulled(rendered: Project, host: str, words: tuple[str, ...], layer: str, config: str) -> None:
    """What an engine pulls is the cluster's folder, file by file, in one layer of the media type that it takes; the
    annotations say from where, without the token.
    """
    ran = rendered.run("push", f"oci://{host}/gpu/one:v1", "one", *words, env=GIT)
    assert ran.code == 0, ran.err
    manifest, content = pull(f"{host}/gpu/one:v1")
    assert (manifest["layers"][0]["mediaType"], manifest["config"]["mediaType"]) == (layer, config)
    assert manifest["annotations"] == {
        "org.opencontainers.image.source": "https://git.example.com/team/gpu.git",
        "org.opencontainers.image.revision": f"sha1:{git(rendered, 'rev-parse', 'HEAD')}",
    }
    assert "tok3n" not in ran.out
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content))) as tar:
        found = {entry.name: tar.extractfile(entry) for entry in tar if entry.isfile()}
        unpacked = {name: file.read() for name, file in found.items() if file}
    folder = rendered.dist / "one"
    assert unpacked == {name: (folder / name).read_bytes() for name in unpacked}
    assert set(unpacked) == {path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml")}


def test_again_is_the_same(rendered: Project, host: str) -> None:
    """The same folder pushed twice is the same digest, which --dry-run knows beforehand."""
    first = rendered.run("push", f"oci://{host}/gpu/one:v1", "--format", "json", env=GIT).json
    second = rendered.run("push", f"oci://{host}/gpu/one:v2", "--format", "json", env=GIT).json
    assert first["digest"] == second["digest"] == dry(rendered)["digest"]


def test_other_times_and_modes(rendered: Project) -> None:
    """When and how a file was written is no part of the artifact."""
    before = dry(rendered)
    for path in (rendered.dist / "one").rglob("*.yaml"):
        os.utime(path, (1, 1))
    assert dry(rendered) == before


def test_commits_that_do_not_concern_the_cluster(rendered: Project) -> None:
    """A later commit elsewhere changes neither revision nor digest: no engine has anything to do."""
    before = dry(rendered)
    rendered.policy("two")
    rendered.run("render")
    git(rendered, "add", "-A")
    git(rendered, "commit", "-q", "-m", "two")
    assert dry(rendered, "one") == before


def refused(project: Project, *words: str) -> Ran:
    """A push that must not ask any registry."""
    return project.run("push", TARGET, *words, env=GIT)


def test_what_was_edited_is_not_pushed(rendered: Project) -> None:
    """Neither a file that was changed by hand, nor a folder where one is missing."""
    path = next((rendered.dist / "one").rglob("*.yaml"))
    text = path.read_bytes()
    path.write_bytes(text + b"# mine\n")
    assert (refused(rendered).code, "GPU967" in refused(rendered).err) == (3, True)
    path.unlink()
    assert "GPU967" in refused(rendered).err
    path.symlink_to("/etc/hostname")
    assert "GPU967" in refused(rendered).err


def test_what_is_not_committed(rendered: Project) -> None:
    """A revision that doesn't hold what is pushed would be a lie; --revision says one's own."""
    rendered.policy("one", validator={"version": "v1"})
    rendered.run("render")
    ran = refused(rendered)
    assert (ran.code, "GPU968" in ran.err) == (3, True)
    said = dry(rendered, "--revision", "build-7", "--source", "https://u:p@x.example.com/y")["annotations"]
    assert list(said.values()) == ["https://x.example.com/y", "build-7"]


def test_files_of_others_stay_here(rendered: Project) -> None:
    """What somebody else put into the folder is said, and nothing is pushed as long as it is there."""
    rendered.write("dist/one/base/mine.yaml", "a: b\n")
    git(rendered, "add", "-A")
    git(rendered, "commit", "-q", "-m", "mine")
    ran = rendered.run("push", TARGET, "--dry-run", "--format", "json", env=GIT)
    assert ran.code == 3
    assert [(one["rule"], one["file"]) for one in ran.json["findings"]] == [("GPU976", "dist/one/base/mine.yaml")]


def test_without_git(project: Project) -> None:
    """A folder that is in no repository is pushed without annotations."""
    project.policy("one")
    project.run("render")
    ran = project.run(
        "push", TARGET, "--dry-run", "--format", "json", env={"GIT_CEILING_DIRECTORIES": str(project.folder.parent)}
    )
    assert ran.json["annotations"] == {}


@pytest.mark.parametrize(
    "target",
    [
        "r.example.com/a:1",
        "oci://",
        "oci://r.example.com/A:1",
        "oci://r.example.com/a@sha256:" + "0" * 64,
        "https://r/a",
    ],
)
def test_no_place(rendered: Project, target: str) -> None:
    """What is no repository of a registry is refused with an example."""
    ran = rendered.run("push", target)
    assert (ran.code, "GPU966" in ran.err) == (4, True)


def test_which_cluster(rendered: Project) -> None:
    """An artifact is one cluster: of several, one has to be named, and it must exist."""
    rendered.policy("two")
    rendered.run("render")
    said = refused(rendered).err
    assert ("GPU033" in said, said.rstrip().endswith(": one, two")) == (True, True)
    assert "GPU021" in refused(rendered, "thre").err


ADDRESS = "oci://r.example.com/gpu"


def reading(engine: str, url: str, **repository: str) -> dict[str, Any]:
    """A section `gitops` whose ENGINE reads URL."""
    argocd = {"argocd": {"destination": {"name": "x"}}} if engine == "argocd" else {}
    return {"engine": engine, "repository": {"url": url, **repository}, **argocd}


def committed(project: Project) -> None:
    """Render what the policies say, and commit it."""
    assert project.run("render").code == 0
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "more")


@pytest.mark.parametrize("engine", ["flux", "argocd"])
@pytest.mark.parametrize("tag", ["latest", "prod"])
def test_where_the_policy_says(rendered: Project, engine: str, tag: str) -> None:
    """Without a place, an artifact goes to the address and tag that the cluster's policy has, in the engine's media
    types, and nothing is warned of; the same place in words is the same artifact.
    """
    revision = {} if tag == "latest" else {"revision": tag}
    rendered.policy("one", gitops=reading(engine, f"{ADDRESS}/one", **revision))
    committed(rendered)
    ran = rendered.run("push", "one", "--dry-run", "--format", "json", env=GIT)
    assert (ran.code, ran.json["findings"]) == (0, []), ran.err
    assert ran.json["reference"] == f"{ADDRESS}/one:{tag}"
    same = rendered.run("push", f"{ADDRESS}/one:{tag}", "--for", engine, "--dry-run", "--format", "json", env=GIT)
    assert same.json == ran.json


@pytest.mark.parametrize(
    ("gitops", "words"),
    [
        (reading("flux", f"{ADDRESS}/one"), f"its policy reads {ADDRESS}/one:latest"),
        (reading("argocd", f"{ADDRESS}/one", revision="v2"), f"its policy reads {ADDRESS}/one:v2"),
        (reading("flux", f"{ADDRESS}/other", revision="v1"), f"its policy reads {ADDRESS}/other:v1"),
        (reading("flux", f"{ADDRESS}/one", revision="v1", path="x"), f"its policy reads {ADDRESS}/one:v1, folder x"),
        (reading("argocd", f"{ADDRESS}/one", revision="v1", path="x"), "folder x"),
        (reading("flux", "https://git.example.com/gpu.git"), "its policy reads the Git repository https://git"),
    ],
    ids=["tag", "argocd", "address", "folder", "argocd-folder", "git"],
)
def test_where_nobody_reads(rendered: Project, gitops: dict[str, Any], words: str) -> None:
    """What is pushed to another place or tag than the policy reads, or not as it reads it, is warned of with what it
    reads; it is pushed all the same.
    """
    rendered.policy("one", gitops=gitops)
    committed(rendered)
    ran = rendered.run("push", TARGET, "--dry-run", env=GIT)
    assert (ran.code, "would push" in ran.out) == (0, True), ran.err
    assert "warning GPU974: nothing of this reaches one" in ran.err
    assert words in ran.err
    found = rendered.run("push", TARGET, "--dry-run", "--format", "json", env=GIT).json["findings"]
    assert [each["rule"] for each in found] == ["GPU974"]


@pytest.mark.parametrize("engine", ["flux", "argocd"])
def test_read_by_digest(rendered: Project, host: str, engine: str) -> None:
    """A policy that reads a digest is pushed to its address all the same; whoever pushes other bytes is told that
    nothing reaches the cluster, and which digest would. To name it in the policy changes no byte.
    """
    url = f"oci://{host}/gpu/one"
    rendered.policy("one", gitops=reading(engine, url, revision=f"sha256:{'0' * 64}"))
    committed(rendered)
    ran = rendered.run("push", "one", "--format", "json", env=GIT)
    assert (ran.code, ran.json["reference"]) == (0, f"{url}:latest"), ran.err
    (finding,) = ran.json["findings"]
    assert (finding["rule"], ran.json["digest"] in finding["remedy"]) == ("GPU974", True)
    rendered.policy("one", gitops=reading(engine, url, revision=ran.json["digest"]))
    committed(rendered)
    for words in (["one"], [f"{url}:v7", "one"], ["--all"]):
        again = rendered.run("push", *words, "--dry-run", env=GIT)
        assert (again.code, again.err, ran.json["digest"] in again.out) == (0, "", True)
    elsewhere = rendered.run("push", f"oci://{host}/gpu/other", "one", "--dry-run", env=GIT)
    assert f"its policy reads {url}@{ran.json['digest']}" in elsewhere.err


def test_a_source_of_somebody_else(rendered: Project) -> None:
    """Where Flux takes a source that is there already, nobody here knows what it reads: no warning, and no guess."""
    rendered.policy("one", gitops={"engine": "flux", "flux": {"source": {"kind": "OCIRepository", "name": "gpu"}}})
    committed(rendered)
    assert dry(rendered)["findings"] == []
    assert "GPU973" in rendered.run("push", "one", env=GIT).err


def test_all_of_them(rendered: Project, host: str) -> None:
    """--all pushes each cluster to the place in its policy, and says which have none; the digests are those of each
    cluster by itself.
    """
    rendered.policy("one", gitops=reading("flux", f"oci://{host}/gpu/one"))
    rendered.policy("three", gitops=reading("argocd", f"oci://{host}/gpu/three", revision="prod"))
    rendered.policy("two")
    committed(rendered)
    ran = rendered.run("push", "--all", "--format", "json", env=GIT)
    assert (ran.code, ran.err) == (0, "not pushed: two, whose policy names no OCI artifact\n")
    assert [each["cluster"] for each in ran.json["artifacts"]] == ["one", "three"]
    for each, layer in zip(ran.json["artifacts"], (FLUX, OCI), strict=True):
        alone = rendered.run("push", each["cluster"], "--dry-run", "--format", "json", env=GIT).json
        assert alone["digest"] == each["digest"]
        assert pull(each["reference"].removeprefix("oci://"))[0]["layers"][0]["mediaType"] == layer


def test_all_or_none(rendered: Project) -> None:
    """Where one cluster can't be pushed, none is: no registry was asked."""
    for name in ("one", "two"):
        rendered.policy(name, gitops=reading("flux", f"oci://127.0.0.1:1/gpu/{name}"))
    committed(rendered)
    next((rendered.dist / "two").rglob("*.yaml")).unlink()
    ran = rendered.run("push", "--all", env=GIT)
    assert (ran.code, "GPU967" in ran.err, "GPU960" in ran.err) == (3, True, False), ran.err


def test_one_place_for_two(rendered: Project) -> None:
    """Policies that were rendered one by one may read one artifact: --all doesn't push one over the other."""
    for name in ("one", "two"):
        rendered.policy(name, gitops=reading("flux", f"{ADDRESS}/fleet"))
        assert rendered.run("render", name).code == 0
    git(rendered, "add", "-A")
    git(rendered, "commit", "-q", "-m", "two")
    ran = rendered.run("push", "--all", "--dry-run", env=GIT)
    assert (ran.code, "GPU046" in ran.err) == (4, True), ran.err


def test_no_place_at_all(rendered: Project) -> None:
    """Without a place, in words or in a policy, the person is told where one is to be written."""
    for words in ([], ["one"], ["--all"]):
        ran = rendered.run("push", *words, env=GIT)
        assert (ran.code, "GPU973" in ran.err, "spec.gitops.repository.url" in ran.err) == (4, True, True), ran.err
    assert "GPU026" in rendered.run("push", "one", "--all").err
    assert "GPU966" in rendered.run("push", "one", TARGET).err


def test_long_names_and_no_files() -> None:
    """Names of any length that an object may have fit, and nothing at all is an archive as well."""
    name = f"operands/{'x' * 253}.yaml"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(stored(archive({name: b"a"}))))) as tar:
        assert tar.getnames() == ["operands", name]
    assert gzip.decompress(stored(b"")) == b""
    assert gzip.decompress(stored(b"x" * 200_000)) == b"x" * 200_000


def test_the_digest_for_ever() -> None:
    """Other versions of Python and of its libraries make these bytes too: a digest that was written down stays."""
    made = artifact({"base/a.yaml": b"a: 1\n"}, ENGINE.media, {})
    assert stored(b"abc").hex() == "1f8b08000000000000ff010300fcff616263c241243503000000"
    assert made.digest == artifact({"base/a.yaml": b"a: 1\n"}, ENGINE.media, {}).digest
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(made.layer))) as tar:
        assert [(e.name, e.mode, e.mtime, e.uid, e.gid, e.uname, e.gname) for e in tar] == [
            ("base", 0o755, 0, 0, 0, "", ""),
            ("base/a.yaml", 0o644, 0, 0, 0, "", ""),
        ]


def test_folders_come_first(tmp_path: Path) -> None:
    """Folders are entries of their own, before their files, so that whoever unpacks needs to make none."""
    with tarfile.open(fileobj=io.BytesIO(archive({"b/c/d": b"", "a": b""}))) as tar:
        assert tar.getnames() == ["a", "b", "b/c", "b/c/d"]
        tar.extractall(tmp_path, filter="data")


@pytest.mark.parametrize(
    "address",
    [
        "https://me:s3cret@git.example.com/team/gpu.git",
        "https://me:s3cret/s3cret@git.example.com/team/gpu.git",
        "https://me:s3cret@s3cret@git.example.com/team/gpu.git",
        "https://s3cret@git.example.com/team/gpu.git",
        "https://git.example.com/team/gpu.git?private_token=s3cret",
    ],
)
def test_no_secret_is_pushed(rendered: Project, address: str) -> None:
    """An artifact is read by more people than the repository: its source is an address alone, however it is said."""
    git(rendered, "config", "remote.origin.url", address)
    said = (dry(rendered), dry(rendered, "--source", address))
    assert {each["annotations"]["org.opencontainers.image.source"] for each in said} == {
        "https://git.example.com/team/gpu.git"
    }


def test_remotes_of_other_names(rendered: Project) -> None:
    """A clone without `origin` has a revision nevertheless, and what isn't committed is refused in it as well."""
    git(rendered, "remote", "rename", "origin", "upstream")
    assert [*dry(rendered)["annotations"]] == ["org.opencontainers.image.revision"]
    git(rendered, "rm", "-r", "-q", "--cached", "dist/one")
    git(rendered, "commit", "-q", "-m", "without")
    assert "GPU968" in refused(rendered).err


def test_a_shallow_clone(rendered: Project, tmp_path: Path) -> None:
    """The commit at which a shallow clone ends seems to touch everything; one after it that did is known."""
    wanted = dry(rendered)["annotations"]["org.opencontainers.image.revision"]
    for name in ("a", "b"):
        rendered.write(name, name)
        git(rendered, "add", "-A")
        git(rendered, "commit", "-q", "-m", name)
    shallow = Project(tmp_path / "shallow", rendered.cache)
    for depth, code in ((2, 3), (3, 0)):  # of three commits the first made the folder
        subprocess.run(
            ["git", "clone", "-q", f"--depth={depth}", f"file://{rendered.folder}", f"{shallow.folder}"],
            env={**os.environ, **GIT},
            check=True,
        )
        ran = shallow.run("push", TARGET, "--dry-run", env=GIT)
        assert (ran.code, "shallow" in ran.err, wanted in ran.out) == (code, code == 3, code == 0)
        shutil.rmtree(shallow.folder)


def test_what_git_ignores(rendered: Project) -> None:
    """A render that is in no commit has no revision, also where nobody wants to commit it."""
    git(rendered, "rm", "-q", "-r", "--cached", "dist")
    rendered.write(".gitignore", "dist\n")
    git(rendered, "add", "-A")
    git(rendered, "commit", "-q", "-m", "without dist")
    assert "GPU968" in refused(rendered).err


def test_a_repository_elsewhere(rendered: Project, tmp_path: Path) -> None:
    """The revision is that of the repository in which the folder lies, not of the one in which we are."""
    wanted = dry(rendered)["annotations"]
    other = Project(tmp_path / "other", rendered.cache)
    other.folder.mkdir()
    assert dry(other, "--out", str(rendered.dist))["annotations"] == wanted
    git(other, "init", "-q")
    assert dry(other, "--out", str(rendered.dist))["annotations"] == wanted


def test_a_hook(rendered: Project) -> None:
    """Git tells its hooks where the repository is, from the current folder on."""
    wanted = dry(rendered)["annotations"]
    ran = rendered.run("push", TARGET, "--dry-run", "--format", "json", env={**GIT, "GIT_DIR": ".git"})
    assert ran.json["annotations"] == wanted


def test_a_git_that_refuses(rendered: Project) -> None:
    """Without an answer of Git nothing is pushed as if there were no repository, in whichever language it says so."""
    with (rendered.folder / ".git" / "config").open("a", encoding="utf-8") as config:
        config.write("[bad")
    ran = rendered.run("push", TARGET, "--dry-run", env={**GIT, "LANGUAGE": "de", "LC_ALL": "C.UTF-8"})
    assert (ran.code, "bad config" in ran.err) == (4, True)
    ran = rendered.run("push", TARGET, "--dry-run", env={**GIT, "PATH": ""})
    assert (ran.code, "git is not on the PATH" in ran.err) == (5, True)


def test_bytes_that_are_no_text(rendered: Project) -> None:
    """What a shell hands over that is no UTF-8 is annotated in escapes."""
    said = dry(rendered, "--revision", os.fsdecode(b"v\xff"))["annotations"]
    assert said["org.opencontainers.image.revision"] == "v\\udcff"
