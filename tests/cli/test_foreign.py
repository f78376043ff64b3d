"""What lies under dist/ and isn't rendered: every verb that looks there names each path, in every format."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpustack.compiler import foreign
from tests.project import ROOT, Project

ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
TOOL = ROOT / ".tools/bin/kubeconform"
BINDING = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: everybody}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: "system:authenticated"}]
"""
HEADER = '# Rendered by gpustack from policies/one.yaml; change that and run "gpustack render".\n'
ENGINE = {
    "engine": "argocd",
    "repository": {"url": "https://git.example.com/gpu.git"},
    "argocd": {"destination": {"name": "one"}},
}


def git(folder: Path, *words: str) -> str:
    """Run Git in FOLDER."""
    done = subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True, env={**os.environ, **ENVIRONMENT}
    )
    return done.stdout.strip()


@pytest.fixture
def merged(project: Project) -> Project:
    """A project with one rendered cluster that Argo CD syncs, all of it committed."""
    project.policy("one", gitops=ENGINE)
    ran = project.run("render")
    assert ran.code == 0, ran.err
    git(project.folder, "init", "-q", "-b", "main")
    git(project.folder, "add", "-A")
    git(project.folder, "commit", "-qm", "one")
    return project


def a_file(project: Project) -> str:
    """A file that was rendered for the cluster, by its path from dist/one on."""
    return "operands/daemonset-nvidia-operator-validator.yaml" if project else ""


def extra(path: str, text: str = BINDING) -> Callable[[Project], list[str]]:
    """Adds a file below dist/."""

    def attack(project: Project) -> list[str]:
        project.write(f"dist/{path}", text)
        return [f"dist/{path}"]

    return attack


def a_link_for_a_folder(project: Project) -> list[str]:
    """A link in place of the engine's folder, to a copy with one more Application."""
    folder = project.dist / ".gitops/argocd/one"
    folder.rename(project.folder / "elsewhere")
    project.write("elsewhere/extra.yaml", BINDING)
    folder.symlink_to("../../../elsewhere")
    return ["dist/.gitops/argocd/one"]


def a_link_for_a_cluster(project: Project) -> list[str]:
    """A link in place of the cluster's folder."""
    (project.dist / "one").rename(project.folder / "elsewhere")
    (project.dist / "one").symlink_to("../elsewhere")
    return ["dist/one"]


def a_link_for_a_file(project: Project) -> list[str]:
    """A link in place of a rendered file, to the same content."""
    path = project.dist / "one" / a_file(project)
    path.rename(project.folder / "copy")
    path.symlink_to("../../../copy")
    return [f"dist/one/{a_file(project)}"]


def a_link_more(project: Project) -> list[str]:
    """A link beside what is rendered, to a file outside."""
    project.write("extra.yaml", BINDING)
    (project.dist / "one/base/extra.yaml").symlink_to("../../../extra.yaml")
    return ["dist/one/base/extra.yaml"]


def an_executable(project: Project) -> list[str]:
    """A rendered file that can be executed."""
    (project.dist / "one" / a_file(project)).chmod(0o755)
    return [f"dist/one/{a_file(project)}"]


def in_other_letters(project: Project) -> list[str]:
    """The name of a rendered file in other letters, which is one file on some systems."""
    name = a_file(project).replace("daemonset", "DaemonSet")
    project.write(f"dist/one/{name}", BINDING)
    project.write("dist/ONE/base/x.yaml", BINDING)
    return [f"dist/one/{name}", "dist/ONE"]


def another_content(project: Project) -> list[str]:
    """A rendered file with one object more."""
    path = project.dist / "one" / a_file(project)
    path.write_text(f"{path.read_text()}---\n{BINDING}")
    return [f"dist/one/{a_file(project)}"]


def another_content_that_the_index_lists(project: Project) -> list[str]:
    """The same, with the index edited to go with it, and an extra file that it lists."""
    path = project.dist / "one" / a_file(project)
    path.write_text(f"{path.read_text()}---\n{BINDING}")
    more = project.write("dist/one/base/extra.yaml", HEADER + BINDING)
    index = project.dist / ".index/one.json"
    data = json.loads(index.read_text())
    for file in (path, more):
        name = file.relative_to(project.dist / "one").as_posix()
        data["files"][name] = hashlib.sha256(file.read_bytes()).hexdigest()
    index.write_text(json.dumps(data, indent=1))
    return [f"dist/one/{a_file(project)}", "dist/one/base/extra.yaml", "dist/.index/one.json"]


def a_cluster_of_another_project(project: Project) -> list[str]:
    """A folder without a policy, whose index claims another project."""
    project.write("dist/second/base/binding.yaml", HEADER + BINDING)
    digest = hashlib.sha256((HEADER + BINDING).encode()).hexdigest()
    data = {"format": 1, "cluster": "second", "source": "policies/second.yaml", "kubernetes": "1.34"}
    data |= {"project": "0123456789abcdef", "files": {"base/binding.yaml": digest}}
    project.write("dist/.index/second.json", json.dumps(data))
    return ["dist/second", "dist/second/base/binding.yaml", "dist/.index/second.json"]


def a_cluster_without_policy(project: Project) -> list[str]:
    """The same, with an index that claims to be ours."""
    found = a_cluster_of_another_project(project)
    path = project.dist / ".index/second.json"
    data = json.loads(path.read_text())
    del data["project"]
    path.write_text(json.dumps(data))
    return found[1:2]


def the_index_claims_another_project(project: Project) -> list[str]:
    """The index of a cluster of ours says that another project rendered it, so that nobody prunes it later."""
    path = project.dist / ".index/one.json"
    path.write_text(path.read_text().replace(',\n "engine"', ',\n "project": "0123456789abcdef",\n "engine"', 1))
    return ["dist/.index/one.json"]


def an_empty_folder(project: Project) -> list[str]:
    """A folder that nothing is in: Git has none, so it is a submodule's, or nobody's."""
    (project.dist / "one/sub").mkdir()
    return ["dist/one/sub"]


def a_pipe(project: Project) -> list[str]:
    """A pipe: whoever opens it waits."""
    os.mkfifo(project.dist / "one/base/pipe.yaml")
    return ["dist/one/base/pipe.yaml"]


ATTACKS: list[Callable[[Project], list[str]]] = [
    extra("one/base/binding.yaml"),
    extra("one/base/binding.yaml", HEADER + BINDING),
    extra("one/kustomization.yaml", "resources: [https://example.com/x]\n"),
    extra("one/base/binding.json", "{}"),
    extra("one/.hidden.yaml"),
    extra("one/base/odd\x1b[2J::error::x.yaml"),
    extra(".gitops/argocd/one/extra.yaml"),
    extra(".gitops/argocd/zz/extra.yaml"),
    extra(".gitops/flux/one/extra.yaml"),
    extra(".gitops/helm/one/extra.yaml"),
    extra(".gitops/kustomization.yaml"),
    extra(".index/zz.json", "{}"),
    extra(".index/note.txt"),
    extra("zz/base/binding.yaml"),
    extra("binding.yaml"),
    extra(".gpustack-new-x/base/x.yaml"),
    a_link_for_a_folder,
    a_link_for_a_cluster,
    a_link_for_a_file,
    a_link_more,
    an_executable,
    in_other_letters,
    another_content,
    another_content_that_the_index_lists,
    a_cluster_of_another_project,
    a_cluster_without_policy,
    the_index_claims_another_project,
    an_empty_folder,
    a_pipe,
]


def shown(path: str) -> str:
    """PATH as text has it."""
    return path.replace("\x1b", "\\x1b")


@pytest.mark.parametrize(
    ("attack", "staged"), [*((each, True) for each in ATTACKS), *((each, False) for each in ATTACKS[-14::3])]
)
def test_every_verb_names_it(merged: Project, attack: Callable[[Project], list[str]], staged: bool) -> None:
    """check is exit 3, diff and report have it as IMP001, validate refuses it, also as JSON; committed or not."""
    paths = attack(merged)
    if staged:
        git(merged.folder, "add", "-Af")
        git(merged.folder, "commit", "-qm", "attack", "--allow-empty")
    base = "HEAD~1" if staged else "HEAD"
    check = merged.run("check")
    assert check.code == 3
    assert [path for path in paths if shown(path) not in check.out] == []
    as_json = merged.run("check", "--format", "json")
    assert (as_json.code, as_json.json["exit"]) == (3, 3)
    assert [path for path in paths if json.dumps(Path(path).name)[1:-1] not in as_json.out] == []
    diff = merged.run("diff", "--base", base, "--format", "json")
    told = {effect["where"] for effect in diff.json["impact"] if (effect["rule"], effect["tier"]) == ("IMP001", 0)}
    assert diff.code == 1
    assert set(paths) <= told, told
    for how in ("text", "markdown"):
        ran = merged.run("diff", "--base", base, "--format", how)
        assert (ran.code, "IMP001" in ran.out, "\x1b[2J" in ran.out) == (1, True, False)
    report = merged.run("report", "--base", base, "--file", "-")
    assert "IMP001" in report.out
    if not staged:
        alone = merged.run("report", "--file", "-").out
        assert attack is another_content or "GPU976" in alone
    validate = merged.run("validate", "--kubeconform", TOOL, "--format", "json")
    assert validate.code == 2
    assert set(paths) <= {finding["file"] for finding in validate.json["findings"]}


@pytest.mark.parametrize("attack", [each for each in ATTACKS if each is not a_cluster_without_policy])
def test_push_packs_nothing_else(merged: Project, attack: Callable[[Project], list[str]]) -> None:
    """What is in the cluster's folder, in its engine's or in its index keeps the cluster from being pushed."""
    paths = attack(merged)
    git(merged.folder, "add", "-Af")
    git(merged.folder, "commit", "-qm", "attack", "--allow-empty")
    mine = [path for path in paths if "one" in path.split("/") or path.endswith("/one.json")]
    ran = merged.run("push", "oci://r.example.com/x/one:v1", "one", "--dry-run")
    assert (ran.code, bool(mine)) in {(3, True), (0, False)}, (ran.err, mine)
    assert all(shown(path) in ran.err for path in mine)


def test_a_submodule(merged: Project) -> None:
    """A submodule under dist/, or anywhere: what is in it is in no review."""
    head = git(merged.folder, "rev-parse", "HEAD")
    for path in ("dist/one/sub", "tools"):
        git(merged.folder, "update-index", "--add", "--cacheinfo", f"160000,{head},{path}")
    git(merged.folder, "commit", "-qm", "attack")
    (merged.dist / "one/sub").mkdir()
    told = {
        effect["where"]
        for effect in merged.run("diff", "--base", "HEAD~1", "--format", "json").json["impact"]
        if effect["rule"] == "IMP001"
    }
    assert told >= {"dist/one/sub", "tools"}
    assert merged.run("check").code == 3


def test_what_git_ignores_or_leaves_out(merged: Project) -> None:
    """A file that is committed though Git ignores it, and one that is committed and not checked out."""
    merged.write(".gitignore", "dist/one/base/*.yaml\n")
    merged.write("dist/one/base/hidden.yaml", BINDING)
    merged.write("dist/one/base/gone.yaml", BINDING)
    git(merged.folder, "add", "-Af")
    git(merged.folder, "commit", "-qm", "attack")
    (merged.dist / "one/base/gone.yaml").unlink()
    told = {effect["where"] for effect in merged.run("diff", "--base", "HEAD~1", "--format", "json").json["impact"]}
    assert told >= {"dist/one/base/hidden.yaml", "dist/one/base/gone.yaml"}


@pytest.mark.parametrize("line", ["ident", "filter=x", "working-tree-encoding=UTF-16"])
def test_attributes_that_convert(merged: Project, line: str) -> None:
    """Attributes by which the checked out file isn't the committed one are told: some engines don't know them."""
    merged.write(".gitattributes", f"dist/** {line}\n")
    told = merged.run("diff", "--format", "json").json["impact"]
    assert any(line.partition("=")[0] in effect["what"] for effect in told if effect["rule"] == "IMP001")


@pytest.mark.parametrize("before", [[], ["policy"]])
def test_what_is_committed_and_not_shown(merged: Project, before: list[str]) -> None:
    """Whoever renders before reviewing sees a good work tree: another content in what is committed is told."""
    path = merged.dist / "one" / a_file(merged)
    path.write_text(path.read_text() + "# more\n")
    git(merged.folder, "commit", "-qam", "more")
    if before:
        merged.policy("one", gitops=ENGINE, validator={"version": "v1"})
    assert merged.run("render").code == 0
    told = merged.run("diff", "--base", "HEAD~1", "--format", "json").json["impact"]
    assert ("IMP001", f"dist/one/{a_file(merged)}") in {(effect["rule"], effect["where"]) for effect in told}


def test_an_index_that_is_gone(merged: Project) -> None:
    """An index tells what was rendered: one that a change deletes is told."""
    (merged.dist / ".index/one.json").unlink()
    told = {effect["where"] for effect in merged.run("diff", "--format", "json").json["impact"]}
    assert "dist/.index/one.json" in told


def test_a_file_that_is_gone(merged: Project) -> None:
    """A rendered file that a change deletes would be pruned: it is told like one that is added."""
    (merged.dist / "one" / a_file(merged)).unlink()
    told = {effect["where"] for effect in merged.run("diff", "--format", "json").json["impact"]}
    assert f"dist/one/{a_file(merged)}" in told


def test_stale_is_not_foreign(merged: Project) -> None:
    """Who looks at a change before rendering it sees the change, and no danger in what is as it was merged."""
    merged.policy("one", validator={"version": "v1"})
    merged.policy("two")
    ran = merged.run("diff")
    assert (ran.code, "IMP001" in ran.out) == (1, False)
    merged.run("render")
    ran = merged.run("diff")
    assert (ran.code, "IMP001" in ran.out) == (1, False)
    git(merged.folder, "add", "-A")
    git(merged.folder, "commit", "-qm", "both")
    (merged.folder / "policies/one.yaml").unlink()
    assert "IMP001" not in merged.run("diff").out
    merged.run("render")
    assert "IMP001" not in merged.run("diff").out
    assert merged.run("check").code == 0


def test_what_was_merged_and_not_rendered_stays_foreign(merged: Project) -> None:
    """A file that got into the base is told as long as it is there: the engine applies it."""
    merged.write("dist/one/base/extra.yaml", HEADER + BINDING)
    git(merged.folder, "add", "-A")
    git(merged.folder, "commit", "-qm", "it got in")
    told = merged.run("diff", "--format", "json").json["impact"]
    assert [effect["where"] for effect in told if effect["rule"] == "IMP001"] == ["dist/one/base/extra.yaml"]


def test_the_list_of_exceptions(merged: Project) -> None:
    """dist.allow.yaml lets a file stay by its digest; another content, a mode and a link need another decision."""
    file = merged.write("dist/one/mine/extra.yaml", BINDING)
    entry = {"path": "dist/one/mine/extra.yaml", "sha256": hashlib.sha256(BINDING.encode()).hexdigest(), "why": "so"}
    merged.write("dist.allow.yaml", json.dumps([entry]))
    assert merged.run("check").code == 0
    assert "IMP001" not in merged.run("diff").out
    assert merged.run("validate", "--kubeconform", TOOL).code == 0
    file.write_text(f"{BINDING}---\n")
    ran = merged.run("check")
    assert (ran.code, "another content" in ran.out) == (3, True)
    file.write_text(BINDING)
    file.chmod(0o755)
    assert merged.run("check").code == 3


@pytest.mark.parametrize(
    "text",
    ["a: b", "- x", "- path: ../x\n  sha256: x\n  why: y", "- {path: dist/x, sha256: zz, why: so}", "- path: dist/x"],
)
def test_a_list_that_can_not_be_read(merged: Project, text: str) -> None:
    """A list with a mistake is refused with the line; nothing is allowed by it."""
    merged.write("dist/one/base/x.yaml", BINDING)
    merged.write("dist.allow.yaml", text)
    ran = merged.run("check")
    assert (ran.code, "dist.allow.yaml" in ran.err) == (4, True)


def test_render_warns_and_keeps(merged: Project) -> None:
    """render keeps a file that it didn't write, and says loudly that check is going to fail."""
    merged.write("dist/one/base/extra.yaml", BINDING)
    for _ in range(2):
        ran = merged.run("render")
        assert (ran.code, "warning GPU976: dist/one/base/extra.yaml" in ran.err) == (0, True)
    assert (merged.dist / "one/base/extra.yaml").read_text() == BINDING
    assert merged.run("render", "--format", "json").json["foreign"][0]["path"] == "dist/one/base/extra.yaml"


@pytest.mark.parametrize("path", ["dist/x/evil.yaml", "dist/one/base/evil.yaml", "dist/.gitops/argocd/one/evil.yaml"])
@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged", ""])
def test_what_is_committed_and_not_checked_out(merged: Project, path: str, flag: str) -> None:
    """check and validate ask Git too: an engine's clone has what this work tree lacks."""
    merged.write(path, BINDING)
    git(merged.folder, "add", "-A")
    git(merged.folder, "commit", "-qm", "evil")
    if flag:
        git(merged.folder, "update-index", flag, path)
    (merged.folder / path).unlink()
    if not any((merged.folder / path).parent.iterdir()):
        (merged.folder / path).parent.rmdir()
    check = merged.run("check")
    assert (check.code, path in check.out) == (3, True)
    validate = merged.run("validate", "--kubeconform", TOOL, "--format", "json")
    assert path in {finding["file"] for finding in validate.json["findings"]}
    git(merged.folder, "rm", "-q", "--cached", "--sparse", path)
    assert merged.run("check").code == 0


def test_another_content_is_committed_than_is_shown(merged: Project) -> None:
    """A file that Git is told to overlook is compared."""
    path = f"dist/one/{a_file(merged)}"
    good = (merged.folder / path).read_text()
    another_content(merged)
    git(merged.folder, "commit", "-qam", "evil")
    git(merged.folder, "update-index", "--skip-worktree", path)
    merged.write(path, good)
    check = merged.run("check")
    assert (check.code, path in check.out) == (3, True)


@pytest.mark.parametrize("line", ["dist/** ident\n", "*.yaml working-tree-encoding=UTF-16\n", "policies/* filter=x\n"])
def test_check_and_validate_see_attributes_that_convert(merged: Project, line: str) -> None:
    """What is checked out may be another than what is committed: both verbs say so."""
    merged.write(".gitattributes", line)
    check = merged.run("check")
    assert (check.code, "attribute" in check.out) == (3, True)
    assert merged.run("validate", "--kubeconform", TOOL).code == 2


def test_a_cluster_that_goes_is_current_before_it_is_staged(merged: Project) -> None:
    """What a render has pruned, and nobody has staged yet, is no stray; neither is a file that was stale."""
    merged.policy("two", gitops=ENGINE)
    assert merged.run("render").code == 0
    git(merged.folder, "add", "-A")
    git(merged.folder, "commit", "-qm", "two")
    (merged.folder / "policies/two.yaml").unlink()
    assert merged.run("render").code == 0
    ran = merged.run("check")
    assert (ran.code, ran.err) == (0, "")
    merged.policy("one")
    assert merged.run("render").code == 0
    ran = merged.run("check")
    assert (ran.code, ran.err) == (0, "")


def test_without_git_check_says_what_it_said(merged: Project, tmp_path: Path) -> None:
    """No Git and no clone: the work tree alone is judged, quietly. A clone that Git refuses is a warning."""
    (tmp_path / "bin").mkdir()
    ran = merged.run("check", env={"PATH": str(tmp_path / "bin")})
    assert (ran.code, ran.err) == (0, "")
    (merged.folder / ".git/HEAD").write_text("broken")
    ran = merged.run("check")
    assert (ran.code, "Git can't be asked" in ran.err) == (0, True)


@pytest.mark.parametrize("name", ["a\u202eb\u2066.yaml", "a\nb\x07.yaml", "a\u2028b\u200f.yaml"])
@pytest.mark.parametrize("folder", ["dist/one/base", "apps"])
def test_no_name_steers_who_reads_it(merged: Project, name: str, folder: str) -> None:
    """Bidirectional and control characters of a path are escapes in what people read."""
    merged.write(f"{folder}/{name}", BINDING)
    bad = set(name) - set("ab.yml\n")
    outs = [merged.run("diff", "--format", how).out for how in ("text", "markdown", "unified", "html")]
    outs += [merged.run("check").out, merged.run("report", "--base", "HEAD", "--file", "-").out]
    assert [out for out in outs if bad & set(out) or "a\nb" in out] == []
    assert name[-5:] in outs[0]


def test_an_engine_that_nobody_knows_serves_no_cluster(tmp_path: Path) -> None:
    """Below the folder of an engine that isn't known everything is told, also for a cluster of another project, whose
    objects for an engine that is known are that project's to tell."""
    for engine in ("helm", "argocd"):
        (tmp_path / f".gitops/{engine}/two").mkdir(parents=True)
        (tmp_path / f".gitops/{engine}/two/extra.yaml").write_text(BINDING)
    told = {each.path for each in foreign.around(tmp_path, {"one"}, {"two"})}
    assert told == {".gitops/helm", ".gitops/helm/two", ".gitops/helm/two/extra.yaml"}
