"""What is stored of a Deployment."""

from typing import Any

from configurator_sdk import document

from .deployment import needed

__all__ = ["summary"]

PREFIX = "config.configurator.dev/"
"""What the key of an annotation begins with, to be configuration."""


def summary(deployment: Any, *layers: dict[str, str] | None) -> str:
    """The value of a Deployment's entry, with the configuration of these annotations. The same ones give the same text."""
    spec = needed(deployment, "spec")
    pod = needed(needed(spec, "template"), "spec")
    config = {}
    for annotations in layers:
        for key, value in (annotations or {}).items():
            if key.startswith(PREFIX):
                config[key.removeprefix(PREFIX)] = value
    replicas = spec.get("replicas")
    account = pod.get("serviceAccountName")
    return document.text(
        {
            "replicas": 1 if replicas is None else replicas,
            "serviceAccount": "default" if account is None else account,
            "containers": [_container(one) for one in pod.get("containers", ())],
            "config": dict(sorted(config.items())),
        }
    )


def _container(container: Any) -> dict[str, Any]:
    """Of the environment only names are kept: values may be secrets."""
    return {
        "name": needed(container, "name"),
        "image": container.get("image") or "",
        "ports": [needed(port, "containerPort") for port in container.get("ports") or ()],
        "env": [needed(variable, "name") for variable in container.get("env") or ()],
    }
