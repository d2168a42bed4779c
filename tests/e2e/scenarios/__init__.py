"""Sequences of requests, to be sent to two servers alike.

What a request needs of earlier answers, it takes from that server's. Which requests are sent does not depend on them.
"""

from __future__ import annotations

from ..recording import Scenario
from .builtin_kinds import (
    builtin_defaults,
    builtin_immutables,
    builtin_mistakes,
    field_validation,
    service_mistakes,
    service_types,
    template_mistakes,
)
from .custom import (
    columns,
    custom_resources,
    definitions,
    protected_definitions,
    pruning,
    refused_definitions,
    versions,
)
from .custom_schemas import (
    custom_defaults,
    custom_rules,
    custom_updates,
    custom_values,
    differing_versions,
    refused_schemas,
)
from .deleting import delete_options, deletions, namespaces, orphans, repeated_deletions
from .discovering import discovery, kinds, reviews
from .events import core_events, events_in_two_groups
from .identity import impersonation, tokens
from .owning import (
    owned_empties,
    owned_in_pods,
    owned_metadata,
    owned_status,
    owned_wholes,
    replaced_lists,
    reset_owners,
)
from .patching import applied, applied_by_two, applied_ports, containers, patches, scale, status
from .protobuf import answers_in_protobuf, bodies_in_protobuf, metadata_of_custom_resources_in_protobuf
from .reading import answers_in_yaml, pages, selectors, views, watched_views
from .schemas import schemas
from .values import defaults, long_numbers, readable_values, unreadable_changes, zeros
from .watching import refused_watches, streamed_lists, watches
from .writing import (
    bad_requests,
    bindings,
    dry_runs,
    life,
    names,
    other_objects,
    posted_bindings,
    posted_mistakes,
)

SCENARIOS: tuple[Scenario, ...] = (
    life,
    other_objects,
    bindings,
    bad_requests,
    names,
    patches,
    containers,
    status,
    scale,
    applied,
    applied_by_two,
    applied_ports,
    owned_in_pods,
    owned_wholes,
    owned_metadata,
    owned_empties,
    owned_status,
    replaced_lists,
    reset_owners,
    selectors,
    pages,
    views,
    watched_views,
    watches,
    refused_watches,
    streamed_lists,
    deletions,
    repeated_deletions,
    delete_options,
    orphans,
    namespaces,
    custom_resources,
    columns,
    definitions,
    refused_definitions,
    protected_definitions,
    versions,
    pruning,
    custom_values,
    custom_defaults,
    custom_updates,
    custom_rules,
    differing_versions,
    refused_schemas,
    schemas,
    discovery,
    kinds,
    reviews,
    readable_values,
    long_numbers,
    unreadable_changes,
    zeros,
    defaults,
    core_events,
    events_in_two_groups,
    tokens,
    impersonation,
    answers_in_yaml,
    posted_bindings,
    posted_mistakes,
    dry_runs,
    builtin_defaults,
    builtin_mistakes,
    template_mistakes,
    service_mistakes,
    service_types,
    builtin_immutables,
    field_validation,
    answers_in_protobuf,
    metadata_of_custom_resources_in_protobuf,
    bodies_in_protobuf,
)
