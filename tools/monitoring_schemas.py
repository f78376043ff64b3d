"""What scrapes and alerts for VictoriaMetrics and for Google's managed Prometheus, as JSON schemas written by hand: no
module of their API is served.

Sources: the types of operator.victoriametrics.com/v1beta1 (VictoriaMetrics/operator, api/operator/v1beta1) and of
monitoring.googleapis.com/v1 (GoogleCloudPlatform/prometheus-engine, pkg/operator/apis/monitoring/v1), as far as a GPU
stack has a use for them (docs/facts/monitoring.md).
"""

from __future__ import annotations

from tools.nfd_schemas import STRING, STRINGS, Schema, array, obj
from tools.openshift_schemas import BOOLEAN, INTEGER, one_of
from tools.readiness_schemas import SELECTOR

DURATION: Schema = {"type": "string", "pattern": "^([0-9]+(ms|s|m|h|d|w|y))+$"}
PORT: Schema = {"type": ["integer", "string"]}
RULE = obj(
    "expr",
    record=STRING,
    alert=STRING,
    expr=STRING,
    labels=STRINGS,
    annotations=STRINGS,
    **{"for": DURATION},
)
KEPT = {**RULE, "properties": {**RULE["properties"], "keep_firing_for": DURATION}}


def groups(rule: Schema) -> Schema:
    """The spec of rules, each a RULE."""
    one = obj("name rules", name=STRING, interval=DURATION, rules={**array(rule), "minItems": 1})
    return obj("groups", groups=array(one))


RELABELING = obj(
    action=STRING,
    sourceLabels=array(STRING),
    separator=STRING,
    targetLabel=STRING,
    regex={"type": ["string", "array"], "items": STRING},
    replacement=STRING,
    modulus=INTEGER,
)
SCRAPE = obj(
    "endpoints",
    jobLabel=STRING,
    targetLabels=array(STRING),
    podTargetLabels=array(STRING),
    selector=SELECTOR,
    namespaceSelector=obj(any=BOOLEAN, matchNames=array(STRING)),
    sampleLimit=INTEGER,
    seriesLimit=INTEGER,
    endpoints=array(
        obj(
            port=STRING,
            targetPort=PORT,
            path=STRING,
            scheme=one_of("http https"),
            interval=DURATION,
            scrapeTimeout=DURATION,
            honorLabels=BOOLEAN,
            honorTimestamps=BOOLEAN,
            relabelConfigs=array(RELABELING),
            metricRelabelConfigs=array(RELABELING),
        )
    ),
)
POD_MONITORING = obj(
    "selector endpoints",
    selector=SELECTOR,
    endpoints={
        **array(
            obj(
                "port interval",
                port=PORT,
                scheme=one_of("http https"),
                path=STRING,
                interval=DURATION,
                timeout=DURATION,
                metricRelabeling=array(RELABELING),
            )
        ),
        "minItems": 1,
    },
    targetLabels=obj(
        metadata=array(one_of("pod container node top_level_controller_name top_level_controller_type")),
        fromPod=array(obj("from", to=STRING, **{"from": STRING})),
    ),
    limits=obj(samples=INTEGER, labels=INTEGER, labelNameLength=INTEGER, labelValueLength=INTEGER),
    filterRunning=BOOLEAN,
)
MONITORING: dict[tuple[str, str], Schema] = {
    ("operator.victoriametrics.com/v1beta1", "VMServiceScrape"): obj("spec", spec=SCRAPE),
    ("operator.victoriametrics.com/v1beta1", "VMRule"): obj("spec", spec=groups(KEPT)),
    ("monitoring.googleapis.com/v1", "PodMonitoring"): obj("spec", spec=POD_MONITORING),
    ("monitoring.googleapis.com/v1", "ClusterRules"): obj("spec", spec=groups(RULE)),
}
"""(apiVersion, kind) -> schema without metadata, which is that of every object."""
