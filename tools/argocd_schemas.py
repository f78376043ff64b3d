"""The kinds of Argo CD that gpustack renders, group argoproj.io, as JSON schemas written by hand.

Argo CD's API is in its program's module, which is not served as one of its own. The structure is closed: what is not
written down here is refused, also where Argo CD knows it (Helm, Kustomize and plugin sources, hydrators).
Source: Argo CD 3.1, `Application` and `AppProject` of argoproj.io/v1alpha1, compared with the types of the npm package
@kubernetes-models/argo-cd 4.0.0.
"""

from __future__ import annotations

from tools.nfd_schemas import STRING, STRINGS, Schema, array, mapping, obj

BOOLEAN: Schema = {"type": "boolean"}
INTEGER: Schema = {"type": "integer"}
NAMES = array(STRING)

DESTINATION = obj(name=STRING, namespace=STRING, server=STRING)
DIRECTORY = obj(exclude=STRING, include=STRING, recurse=BOOLEAN)
SOURCE = obj(
    "repoURL", repoURL=STRING, path=STRING, targetRevision=STRING, directory=DIRECTORY, ref=STRING, name=STRING
)
IGNORED = obj(
    "kind",
    group=STRING,
    kind=STRING,
    name=STRING,
    namespace=STRING,
    jsonPointers=NAMES,
    jqPathExpressions=NAMES,
    managedFieldsManagers=NAMES,
)
SYNC_POLICY = obj(
    automated=obj(allowEmpty=BOOLEAN, enabled=BOOLEAN, prune=BOOLEAN, selfHeal=BOOLEAN),
    managedNamespaceMetadata=obj(annotations=STRINGS, labels=STRINGS),
    retry=obj(backoff=obj(duration=STRING, factor=INTEGER, maxDuration=STRING), limit=INTEGER),
    syncOptions=NAMES,
)
GROUP_KINDS = array(obj("group kind", group=STRING, kind=STRING))

ARGOCD: dict[tuple[str, str], Schema] = {
    ("argoproj.io/v1alpha1", "Application"): obj(
        "spec",
        spec=obj(
            "destination project",
            destination=DESTINATION,
            ignoreDifferences=array(IGNORED),
            info=array(obj("name value", name=STRING, value=STRING)),
            project=STRING,
            revisionHistoryLimit=INTEGER,
            source=SOURCE,
            sources=array(SOURCE),
            syncPolicy=SYNC_POLICY,
        ),
    ),
    ("argoproj.io/v1alpha1", "AppProject"): obj(
        "spec",
        spec=obj(
            clusterResourceBlacklist=GROUP_KINDS,
            clusterResourceWhitelist=GROUP_KINDS,
            description=STRING,
            destinations=array(DESTINATION),
            namespaceResourceBlacklist=GROUP_KINDS,
            namespaceResourceWhitelist=GROUP_KINDS,
            orphanedResources=obj(ignore=array(obj(group=STRING, kind=STRING, name=STRING)), warn=BOOLEAN),
            permitOnlyProjectScopedClusters=BOOLEAN,
            roles=array(obj("name", description=STRING, groups=NAMES, name=STRING, policies=NAMES)),
            signatureKeys=array(obj("keyID", keyID=STRING)),
            sourceNamespaces=NAMES,
            sourceRepos=NAMES,
            syncWindows=array(mapping({})),
        ),
    ),
}
"""(apiVersion, kind) -> schema without metadata, which is that of every object."""
