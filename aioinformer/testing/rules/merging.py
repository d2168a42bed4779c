"""What an update keeps of the old object, by the part that it writes."""

from __future__ import annotations

from aioinformer.testing.objects import SYSTEM_METADATA, Object
from aioinformer.testing.resources import ResourceType


def with_status_of(resource: ResourceType, old: Object, new: Object) -> Object:
    """Return the old object with the new status, and a built-in's new metadata except a Deployment's labels."""
    result = {key: value for key, value in old.items() if key != "status"}
    if "status" in new:
        result["status"] = new["status"]
    result["metadata"] = dict(old["metadata"]) if resource.custom else dict(new["metadata"])
    if resource.kind == "Deployment" and not resource.custom:
        result["metadata"].pop("labels", None)
        if "labels" in old["metadata"]:
            result["metadata"]["labels"] = old["metadata"]["labels"]
    return result


def with_ephemeral_containers(old: Object, new: Object) -> Object:
    """Return the old pod with the new ephemeral containers."""
    spec = {name: value for name, value in old["spec"].items() if name != "ephemeralContainers"}
    if containers := (new.get("spec") or {}).get("ephemeralContainers"):
        spec["ephemeralContainers"] = containers
    return {**old, "metadata": dict(old["metadata"]), "spec": spec}


def with_resources(old: Object, new: Object) -> Object:
    """Return the old pod with the new resources of its containers, by their names."""
    spec = dict(old["spec"])
    for part in ("containers", "initContainers"):
        wanted = {container["name"]: container for container in (new.get("spec") or {}).get(part) or ()}
        kept = ("resizePolicy", "resources")
        if part in spec:
            spec[part] = [
                {key: value for key, value in container.items() if key not in kept}
                | {
                    key: value
                    for key, value in wanted.get(container["name"], container).items()
                    if key in kept
                }
                for container in spec[part]
            ]
    return {**old, "metadata": dict(old["metadata"]), "spec": spec}


def metadata_with_status(resource: ResourceType, metadata: Object) -> Object:
    """Return the metadata that a write of the status also writes."""
    if resource.custom:
        kept = ("name", "namespace", "uid", "resourceVersion")
        return {name: metadata[name] for name in kept if name in metadata}
    if resource.kind == "Deployment":
        return {name: value for name, value in metadata.items() if name != "labels"}
    return metadata


def keep_system_fields(old: Object, new: Object) -> None:
    """Restore the fields that no update can change."""
    for name in SYSTEM_METADATA:
        if name in old:
            new[name] = old[name]
        else:
            new.pop(name, None)


def keep_owners(old: Object, new: Object, result: Object, *, applied: bool) -> None:
    """Set `managedFields`: from an apply, or else from the old object unless the client sets or resets them."""
    given = new.get("managedFields")
    entries = given if applied or given is not None else old.get("managedFields")
    if entries and entries != [{}]:
        result["managedFields"] = entries
    else:
        result.pop("managedFields", None)


def counted_part(resource: ResourceType, obj: Object) -> Object:
    """Return the part of an object whose changes metadata.generation counts."""
    metadata = obj["metadata"]
    if resource.custom:
        ignored = ("metadata", "status") if resource.has_status else ("metadata",)
        return {name: value for name, value in obj.items() if name not in ignored}
    match resource.kind:
        case "Deployment":  # its annotations are copied to its ReplicaSets
            return {"spec": obj.get("spec"), "annotations": metadata.get("annotations")}
        case "EndpointSlice":
            return {**obj, "metadata": metadata.get("labels")}
        case "PodTemplate":
            return {"template": obj.get("template")}
    return {"spec": obj.get("spec"), "webhooks": obj.get("webhooks")}
