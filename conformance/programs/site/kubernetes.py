"""The manifests of deploy/, checked against the schemas of Kubernetes, which refuse mistyped keys.

Takes the root of the checkout.
"""

import copy
import sys
from pathlib import Path

import kubernetes_validate
import yaml

VERSION = "1.37.0"


def error(manifest):
    """Why the schemas refuse it, or None."""
    try:
        kubernetes_validate.validate(manifest, VERSION, strict=True)
    except (kubernetes_validate.ValidationError, kubernetes_validate.InvalidSchemaError) as refused:
        return str(refused)
    return None


def main(root):
    manifests = list(yaml.safe_load_all((root / "deploy/kubernetes.yaml").read_text()))
    failures = []
    for manifest in manifests:
        name = f"{manifest['kind']} {manifest['metadata']['name']}"
        if why := error(manifest):
            failures.append(f"{name}: {why}")
        mistyped = copy.deepcopy(manifest)
        mistyped["spec"]["unknown"] = 1
        if not error(mistyped):
            failures.append(f"accepted: {name} with an unknown key")
    for line in failures:
        print(f"FAILED {line}")
    print(f"{len(manifests)} manifest accepted for Kubernetes {VERSION}")
    return 1 if failures or not manifests else 0


sys.exit(main(Path(sys.argv[1])))
