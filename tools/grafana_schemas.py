"""The Grafana operator's GrafanaDashboard as a JSON schema by hand, as no Go module of its types alone is served.

gpustack writes dashboards as JSON; policies may bring others along, from wherever the operator takes them, so all
fields are there. Source: the CRD of grafana-operator v5.24
(config/crd/bases/grafana.integreatly.org_grafanadashboards.yaml).
"""

from __future__ import annotations

from tools.nfd_schemas import STRING, STRINGS, Schema, array, obj

BOOLEAN: Schema = {"type": "boolean"}
INTEGER: Schema = {"type": "integer"}
KEY = obj("key", key=STRING, name=STRING, optional=BOOLEAN)
FROM = obj(configMapKeyRef=KEY, secretKeyRef=KEY)
SELECTOR = obj(
    matchLabels=STRINGS,
    matchExpressions=array(obj("key operator", key=STRING, operator=STRING, values=array(STRING))),
)
SPEC = obj(
    "instanceSelector",
    **dict.fromkeys(("allowCrossNamespaceImport", "suspend"), BOOLEAN),
    **dict.fromkeys("folder folderRef folderUID gzipJson json jsonnet resyncPeriod uid url".split(), STRING),
    configMapRef=KEY,
    contentCacheDuration=STRING,
    datasources=array(obj("datasourceName inputName", datasourceName=STRING, inputName=STRING)),
    envFrom=array(FROM),
    envs=array(obj("name", name=STRING, value=STRING, valueFrom=FROM)),
    grafanaCom=obj("id", id=INTEGER, revision=INTEGER),
    instanceSelector=SELECTOR,
    jsonnetLib=obj("fileName gzipJsonnetProject", fileName=STRING, gzipJsonnetProject=STRING, jPath=array(STRING)),
    oci=obj(
        "path reference",
        insecurePlainHTTP=BOOLEAN,
        path=STRING,
        pullSecretRef=obj(name=STRING),
        reference=STRING,
    ),
    plugins=array(obj("name version", name=STRING, version=STRING)),
    publicSharing=obj(accessToken=STRING, annotationsEnabled=BOOLEAN, enabled=BOOLEAN, timeSelectionEnabled=BOOLEAN),
    urlAuthorization=obj(basicAuth=obj(username=KEY, password=KEY)),
    variables=array(obj("name value", name=STRING, value=STRING)),
)
GRAFANA: dict[tuple[str, str], Schema] = {
    ("grafana.integreatly.org/v1beta1", "GrafanaDashboard"): obj("spec", spec=SPEC)
}
"""(apiVersion, kind) -> schema without metadata, which is that of every object."""
