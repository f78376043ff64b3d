"""ExternalSecret and SealedSecret as JSON schemas written by hand.

The API of External Secrets Operator is a Go module with dozens of cloud SDKs behind it, that of Sealed Secrets a part
of its program's: controller-gen is run over neither. Source: the types ExternalSecretSpec of external-secrets.io/v1 and
SealedSecretSpec of bitnami.com/v1alpha1, and their documentation.
"""

from __future__ import annotations

from tools.nfd_schemas import STRING, STRINGS, Schema, array, mapping, obj


def one_of(*values: str) -> Schema:
    """Return one of VALUES."""
    return {"type": "string", "enum": list(values)}


STORE = obj(name=STRING, kind=one_of("SecretStore", "ClusterSecretStore"))
GENERATOR = obj("kind name", apiVersion=STRING, kind=STRING, name=STRING)
REMOTE: dict[str, Schema] = {
    "conversionStrategy": one_of("Default", "Unicode"),
    "decodingStrategy": one_of("Auto", "Base64", "Base64URL", "None"),
    "metadataPolicy": one_of("Fetch", "None"),
}
KEY = obj("key", key=STRING, property=STRING, version=STRING, **REMOTE)
FIND = obj(
    path=STRING,
    name=obj(regexp=STRING),
    tags=STRINGS,
    conversionStrategy=REMOTE["conversionStrategy"],
    decodingStrategy=REMOTE["decodingStrategy"],
)
REWRITE = array(
    obj(
        regexp=obj("source target", source=STRING, target=STRING),
        transform=obj("template", template=STRING),
        merge=obj(
            into=STRING,
            conflictPolicy=one_of("Ignore", "Error"),
            priority=array(STRING),
            strategy=one_of("Extract", "JSON"),
        ),
    )
)
ITEMS = array(obj("key", key=STRING, templateAs=one_of("Values", "KeysAndValues")))
TEMPLATE = obj(
    type=STRING,
    engineVersion=one_of("v2"),
    mergePolicy=one_of("Replace", "Merge"),
    metadata=obj(annotations=STRINGS, labels=STRINGS, finalizers=array(STRING)),
    data=STRINGS,
    templateFrom=array(
        obj(
            configMap=obj("items name", name=STRING, items=ITEMS),
            secret=obj("items name", name=STRING, items=ITEMS),
            target=STRING,
            literal=STRING,
        )
    ),
)

SECRETS: dict[tuple[str, str], Schema] = {
    ("external-secrets.io/v1", "ExternalSecret"): obj(
        "spec",
        spec=obj(
            secretStoreRef=STORE,
            target=obj(
                name=STRING,
                creationPolicy=one_of("Owner", "Orphan", "Merge", "None"),
                deletionPolicy=one_of("Delete", "Merge", "Retain"),
                immutable={"type": "boolean"},
                template=TEMPLATE,
            ),
            refreshPolicy=one_of("CreatedOnce", "Periodic", "OnChange"),
            refreshInterval=STRING,
            data=array(
                obj(
                    "remoteRef secretKey",
                    secretKey=STRING,
                    remoteRef=KEY,
                    sourceRef=obj(storeRef=STORE, generatorRef=GENERATOR),
                )
            ),
            dataFrom=array(
                obj(
                    extract=KEY,
                    find=FIND,
                    rewrite=REWRITE,
                    sourceRef=obj(storeRef=STORE, generatorRef=GENERATOR),
                )
            ),
        ),
    ),
    ("bitnami.com/v1alpha1", "SealedSecret"): obj(
        "spec",
        spec=obj(
            "encryptedData",
            encryptedData=mapping(STRING),
            template=obj(
                type=STRING,
                immutable={"type": "boolean"},
                data=STRINGS,
                metadata=obj(
                    name=STRING,
                    namespace=STRING,
                    labels=STRINGS,
                    annotations=STRINGS,
                ),
            ),
        ),
    ),
}
"""(apiVersion, kind) -> schema without metadata, which is that of every object."""
